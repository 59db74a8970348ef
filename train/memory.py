"""What to turn when memory runs out: the setting that bounds the part of the step in which it happened."""

from __future__ import annotations

import traceback

from .config import TrainConfig

_SAMPLING = {"sample", "roll_out", "_generate_single_turn"}
_LEARNING = {"compute_loss", "backward", "_get_per_token_logps_and_entropies", "completion_logprobs"}


def ran_out(error: BaseException) -> bool:
    """Whether this is a lack of memory, of the machine or of a GPU."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and ("out of memory" in said or "can't allocate memory" in said)
    )


def advice(error: BaseException, config: TrainConfig) -> str:
    """One line: where memory ran out, and which setting to lower; all of them leave the result of a step as it is."""
    places = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
    if places & _LEARNING:
        part, turn = "learning", _for_learning(config)
    elif places & _SAMPLING:
        part, turn = "generating", _for_sampling(config)
    else:
        part, turn = "loading or saving", "take more GPUs, and configs/deepspeed/gpu_8_zero3.yaml to divide the weights"
    return f"out of memory while {part}: {turn}; then the same command goes on where it was saved"


def _for_learning(config: TrainConfig) -> str:
    turn = list[str]()
    if config.conversations_per_micro_batch > 1:
        turn.append(f"lower conversations_per_micro_batch (now {config.conversations_per_micro_batch})")
    if not config.gradient_checkpointing:
        turn.append("set gradient_checkpointing true")
    last = "conversations_per_micro_batch is 1 already, so take more GPUs with configs/deepspeed/gpu_8_zero3.yaml"
    return " and ".join(turn) or last


def _for_sampling(config: TrainConfig) -> str:
    if config.generation_batch > 1:
        return f"lower generation_batch (now {config.generation_batch})"
    return "generation_batch is 1 already, so take more GPUs with configs/deepspeed/gpu_8_zero3.yaml"

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
        part = "generating"
        turn = [_lower("generation_batch", config.generation_batch, "no smaller batch is left")]
    else:
        part = "loading or saving"
        turn = ["take more GPUs with configs/deepspeed/gpu_8_zero3.yaml, which divides the weights"]
    return f"out of memory while {part}: {' and '.join(turn)}; then the same command goes on where it was saved"


def _for_learning(config: TrainConfig) -> list[str]:
    turn = [_lower("conversations_per_micro_batch", config.conversations_per_micro_batch, "R cannot be lower")]
    if not config.gradient_checkpointing:
        turn.append("set gradient_checkpointing true")
    if config.conversations_per_micro_batch == 1 and config.gradient_checkpointing:
        turn.append("lower budget (another run), or take more GPUs with configs/deepspeed/gpu_8_zero3.yaml")
    return turn


def _lower(name: str, value: int, least: str) -> str:
    return f"lower {name} (now {value})" if value > 1 else f"{name} is 1 already ({least})"

"""vLLM as far as the trainer sees it: a scheduler that gives each of a few running requests one token a step, over a
transformers copy of the weights that were sent. Its log-probabilities are off by a known pattern and some are missing,
as those of another implementation in another number format are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

PLACES = 3
"""Requests that run at once."""
MOST = 1.3
"""Importance ratios above it are cut."""
OFF = (0.4, -0.5, 0.1, math.nan, -0.2, 0.0, None)


@dataclass
class Job:
    """A request and what it has generated."""

    number: str
    ids: list[int]
    params: Any
    made: list[int] = field(default_factory=list)
    told: list[dict[int, Any]] = field(default_factory=list)


class Core:
    """In place of vLLM's `LLMEngine`."""

    def __init__(self, model: Any) -> None:
        self.model_config = SimpleNamespace(max_model_len=512)
        runner = SimpleNamespace(model_runner=SimpleNamespace(model=model))
        self.model_executor = SimpleNamespace(driver_worker=runner)
        self.model = model
        self.jobs: list[Job] = []
        self.seeds: list[int] = []
        self.steps: list[int] = []

    def add_request(self, number: str, prompt: Any, params: Any) -> None:
        if params.max_tokens > 400:
            raise ValueError("too long")
        self.jobs.append(Job(number, list(prompt["prompt_token_ids"]), params))
        self.seeds.append(params.seed)

    def abort_request(self, numbers: list[str]) -> None:
        self.jobs = [job for job in self.jobs if job.number not in numbers]

    def step(self) -> list[Any]:
        running = self.jobs[:PLACES]
        self.steps.append(len(running))
        for job in running:
            self._token(job)
        ended = [job for job in running if self._has_ended(job)]
        self.jobs = [job for job in self.jobs if job not in ended]
        return [
            SimpleNamespace(
                request_id=job.number,
                finished=True,
                outputs=[SimpleNamespace(token_ids=tuple(job.made), logprobs=job.told)],
            )
            for job in ended
        ]

    @torch.no_grad()
    def _token(self, job: Job) -> None:
        logps = self.model(torch.tensor([[*job.ids, *job.made]])).logits[0, -1].log_softmax(-1)
        if job.params.temperature == 0:
            token = int(logps.argmax())
        else:
            generator = torch.Generator().manual_seed(job.params.seed + len(job.made))
            token = int(torch.multinomial(logps.exp(), 1, generator=generator))
        off = OFF[len(job.told) % len(OFF)] if job.params.temperature else 0.0
        job.made.append(token)
        job.told.append({token: SimpleNamespace(logprob=None if off is None else float(logps[token]) + off)})

    def _has_ended(self, job: Job) -> bool:
        return job.made[-1] in job.params.stop_token_ids or len(job.made) == job.params.max_tokens


class StubGeneration:
    """In place of TRL's `VLLMGeneration` in colocate mode."""

    spoils: bool = False

    def __init__(self, model: Any, accelerator: Any, **settings: Any) -> None:
        from safetensors.torch import load_model
        from transformers import Qwen3Config, Qwen3ForCausalLM
        from trl.distributed import DistributedBackend

        self.model, self.settings, self.syncs = model, settings, 0
        self._dist = DistributedBackend(accelerator)
        # not from_pretrained, which would cut it up under ZeRO-3
        self.served: Any = Qwen3ForCausalLM(Qwen3Config.from_pretrained(model.name_or_path)).eval()
        load_model(self.served, Path(model.name_or_path, "model.safetensors"))
        self.llm = SimpleNamespace(llm_engine=Core(self.served))

    def sync_weights(self) -> None:
        self.syncs += 1
        there = dict(self.served.named_parameters())
        with torch.no_grad():
            for name, value in self._iter_named_params():
                there[name].copy_(value)
            if self.spoils:
                self.served.model.layers[0].mlp.up_proj.weight[0, 0] += 1e-3

    def _iter_named_params(self) -> Any:
        raise AssertionError("the trainer has its own")


def options(mode: str) -> dict[str, Any]:
    """Of a trainer that samples here."""
    return {
        "params": SimpleNamespace,
        "trl_use_vllm": True,
        "trl_vllm_importance_sampling_mode": mode,
        "trl_vllm_importance_sampling_clip_max": MOST,
    }


def install(put: Callable[[Any, str, Any], None], kind: type[StubGeneration] = StubGeneration) -> None:
    """Puts the stub where TRL looks for its own."""
    from trl.trainer import grpo_trainer

    put(grpo_trainer, "VLLMGeneration", kind)

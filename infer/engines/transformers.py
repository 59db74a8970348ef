"""Local models through transformers: batched, left-padded generation, greedy or sampled, on a CPU or a GPU.

1. The prompt is the chat template's token ids; prompt and completion ids are recorded as the model saw them, never
   re-encoded. Requests that think are asked first for their thinking, and then, with the others, for the rest.
2. Batches are made of requests of like length, so that little is padding. A row ends at its own limit, whatever the
   others do.
3. Only the given `Sampling` counts: what a model's own generation_config would change (repetition penalty, top_k) is
   switched off.
4. Each batch draws from a seed of its own, made of `Sampling.seed` and the batch's prompts: a repeated call repeats
   its replies, and no random state outside is touched.
5. A batch that does not fit into memory is halved; a single request that does not fit becomes a reply with
   `finish="error"`. Any other fault is ours and is raised: a table of silent zeros would be worse.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList

from ...data.rollout import Reply, Request
from . import Batched, Sampling, chat, thinking
from .thinking import Opening

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Job:
    """One sequence to go on from: the place of its request, its ids, and the most tokens to generate."""

    place: int
    prompt: list[int]
    max_tokens: int


@dataclass(frozen=True)
class _Said:
    """What was generated for a job, perhaps beyond its end, or why nothing was."""

    ids: Sequence[int] = ()
    logprobs: Sequence[float] | None = None
    error: str = ""


class Transformers(Batched):
    """A causal language model and its transformers tokenizer (with a chat template) as an engine."""

    def __init__(self, model: Any, tokenizer: Any, *, batch_size: int = 8, logprobs: bool = False) -> None:
        """`logprobs`: record for each generated token its log-probability under the model itself (temperature 1, no
        top_p or top_k). Raises ModelError if the tokenizer has no chat template."""
        super().__init__()
        chat.check(tokenizer)
        self.model, self.tokenizer = model, tokenizer
        self.batch_size, self.logprobs = batch_size, logprobs
        self.positions: int | None = getattr(model.config, "max_position_embeddings", None)
        self._ends = end_ids(model, tokenizer)
        self._pad = pad_id(tokenizer, self._ends)

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Reply]:
        """One reply for each request, in order."""
        replies: dict[int, Reply] = {}
        prompts: dict[int, list[int]] = {}
        for place, request in enumerate(requests):
            prompt = chat.prompt_ids(self.tokenizer, request)
            if refused := chat.overflow(request, prompt, self.positions):
                replies[place] = refused
            else:
                prompts[place] = prompt
        repeats: Counter[str] = Counter()
        thinkers = [place for place in prompts if requests[place].think_tokens]
        with _evaluating(self.model):
            thoughts = self._say([_Job(i, prompts[i], requests[i].think_tokens) for i in thinkers], sampling, repeats)
            openings = self._openings(requests, thoughts)
            jobs = [
                _Job(i, [*prompt, *openings[i].ids] if i in openings else prompt, requests[i].max_tokens)
                for i, prompt in prompts.items()
                if i in openings or i not in thoughts
            ]
            said = thoughts | self._say(jobs, sampling, repeats)
        for i, prompt in prompts.items():
            replies[i] = self._reply(requests[i], prompt, openings.get(i), said[i])
        return [replies[place] for place in range(len(requests))]

    def _openings(self, requests: Sequence[Request], thoughts: Mapping[int, _Said]) -> dict[int, Opening]:
        return {
            place: thinking.continue_ids(
                self.tokenizer,
                said.ids,
                said.logprobs,
                think_tokens=requests[place].think_tokens,
                ends=self._ends,
            )
            for place, said in thoughts.items()
            if not said.error
        }

    def _reply(self, request: Request, prompt: Sequence[int], opening: Opening | None, said: _Said) -> Reply:
        if said.error:
            return chat.failed(prompt, opening, said.error)
        how: dict[str, Any] = {"max_tokens": request.max_tokens, "ends": self._ends}
        if opening is None:
            return chat.reply(self.tokenizer, prompt, said.ids, said.logprobs, **how)
        return chat.two_stage_reply(self.tokenizer, prompt, opening, said.ids, said.logprobs, **how)

    def _say(self, jobs: Sequence[_Job], sampling: Sampling, repeats: Counter[str]) -> dict[int, _Said]:
        """What is generated for each job, by place, in batches of jobs of like length."""
        ordered = sorted(jobs, key=lambda job: (-len(job.prompt), job.place))
        said: dict[int, _Said] = {}
        for start in range(0, len(ordered), self.batch_size):
            said |= self._answer(ordered[start : start + self.batch_size], sampling, repeats)
        return said

    def _answer(self, batch: Sequence[_Job], sampling: Sampling, repeats: Counter[str]) -> dict[int, _Said]:
        """What is generated for a batch, by place; halves it while memory does not suffice."""
        try:
            return self._run(batch, sampling, repeats)
        except (MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            message = f"out of memory: {len(batch)} request(s), {len(batch[0].prompt)} prompt tokens"
        log.warning("%s", message)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if len(batch) == 1:
            return {batch[0].place: _Said(error=message)}
        half = (len(batch) + 1) // 2
        return {**self._answer(batch[:half], sampling, repeats), **self._answer(batch[half:], sampling, repeats)}

    def _run(self, batch: Sequence[_Job], sampling: Sampling, repeats: Counter[str]) -> dict[int, _Said]:
        device = next(self.model.parameters()).device
        width = max(len(job.prompt) for job in batch)
        ids = [[self._pad] * (width - len(job.prompt)) + job.prompt for job in batch]
        mask = [[0] * (width - len(job.prompt)) + [1] * len(job.prompt) for job in batch]
        limits = torch.tensor([job.max_tokens for job in batch], device=device)
        config = generation_config(sampling, self._ends, self._pad, int(limits.max()))
        config.update(output_logits=self.logprobs, return_dict_in_generate=True)
        with torch.inference_mode(), _seeded(_seed(batch, sampling, repeats), device):
            out = self.model.generate(
                input_ids=torch.tensor(ids, device=device),
                attention_mask=torch.tensor(mask, device=device),
                generation_config=config,
                stopping_criteria=StoppingCriteriaList([_RowLimits(width, limits)]),
            )
        logprobs = _logprobs(out) if self.logprobs else [None] * len(batch)
        rows = out.sequences[:, width:].tolist()
        return {job.place: _Said(row, lps) for job, row, lps in zip(batch, rows, logprobs, strict=True)}


def generation_config(sampling: Sampling, ends: Sequence[int], pad: int, max_tokens: int) -> GenerationConfig:
    """The sampling as transformers wants it, with every knob set that a model's own generation_config might turn."""
    sampled = sampling.temperature > 0
    return GenerationConfig(
        max_new_tokens=max_tokens,
        min_new_tokens=0,
        do_sample=sampled,
        temperature=sampling.temperature if sampled else 1.0,
        top_p=sampling.top_p if sampled else 1.0,
        top_k=sampling.top_k if sampled else 50,  # 50 is what transformers takes for unset
        num_beams=1,
        repetition_penalty=1.0,
        no_repeat_ngram_size=0,
        eos_token_id=list(ends) or None,
        pad_token_id=pad,
    )


def end_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Ids that end a reply: the model's and the tokenizer's."""
    named = getattr(model, "generation_config", None)
    ids = getattr(named, "eos_token_id", None)
    ids = ids if isinstance(ids, list) else [ids]
    return tuple(sorted({i for i in (*ids, tokenizer.eos_token_id) if i is not None}))


def pad_id(tokenizer: Any, ends: Sequence[int]) -> int:
    """An id to fill rows with: the tokenizer's, or one that ends a reply."""
    return next((i for i in (tokenizer.pad_token_id, *ends) if i is not None), 0)


class _RowLimits(StoppingCriteria):
    """Ends each row at its own number of generated tokens."""

    def __init__(self, width: int, limits: torch.Tensor) -> None:
        self.width, self.limits = width, limits

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> Any:
        return self.limits <= input_ids.shape[1] - self.width


def _seed(batch: Sequence[_Job], sampling: Sampling, repeats: Counter[str]) -> int:
    """From the seed, the prompts and limits, and how often this very batch came before in the same call."""
    content = repr((sampling.seed, [(job.prompt, job.max_tokens) for job in batch]))
    key = hashlib.sha256(content.encode()).hexdigest()
    repeats[key] += 1
    return int.from_bytes(hashlib.sha256(f"{key} {repeats[key]}".encode()).digest()[:7])


def _logprobs(out: Any) -> list[list[float]]:
    """Log-probabilities of the generated tokens, one list a row."""
    tokens = out.sequences[:, -len(out.logits) :]
    steps = [
        torch.log_softmax(logits.float(), -1).gather(1, tokens[:, i : i + 1].to(logits.device))
        for i, logits in enumerate(out.logits)
    ]
    return torch.cat(steps, 1).tolist()


def _is_out_of_memory(error: BaseException) -> bool:
    """CPU allocators raise a plain RuntimeError."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "allocate memory" in str(error)


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Dropout off, and on again if it was."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield

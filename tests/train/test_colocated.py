"""Rollouts by vLLM in the trainer's process, with a stub at its seam: sent weights, importance ratios, batching."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import stub_vllm
import torch
from objective import Terms
from step_harness import check_steps
from stub_vllm import PLACES, StubGeneration
from train_harness import Questions, build_trainer, example
from treeagent.data.rollout import Request
from treeagent.errors import ConfigError, RunError
from treeagent.infer.engines import Sampling
from treeagent.train.colocated import Colocated

EXAMPLES = [example(i) for i in range(12)]


@pytest.fixture(autouse=True)
def _stub(monkeypatch: pytest.MonkeyPatch) -> None:
    stub_vllm.install(monkeypatch.setattr)


def trainer(model: Path, out: Path, **more: Any) -> Any:
    settings: dict[str, Any] = {"dev_examples": EXAMPLES[:3], **stub_vllm.options("token_truncate"), **more}
    return build_trainer(model, out, Questions(), EXAMPLES, **settings)


def ask(text: str, max_tokens: int) -> Request:
    return Request("memory", ({"role": "user", "content": text},), max_tokens)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"])
def test_the_step_is_corrected_for_what_the_sampler_is_off(tiny_model: Path, tmp_path: Path, mode: str) -> None:
    """Also where it could not tell a log-probability. Weights go to the sampler once a step, however many calls."""
    terms = Terms(sampling=mode, most=stub_vllm.MOST)
    facts = check_steps(tiny_model, tmp_path, terms=terms, trl_max_steps=2, **stub_vllm.options(mode))
    assert max(facts["errors"]) <= 2e-5
    assert min(facts["norms"]) > 0
    assert facts["syncs"] == 2
    assert all(log["sampling/sampling_logp_difference/mean"] > 0.1 for log in facts["logs"])
    first, second = (log["sampler/checksum"] for log in facts["logs"])
    assert first != second


def test_the_sampler_samples_from_the_adapted_model_and_the_base_stays_bit_for_bit(
    tiny_model: Path, tmp_path: Path
) -> None:
    made = trainer(tiny_model, tmp_path, trl_max_steps=3, trl_learning_rate=0.1)
    base = {name: p.detach().clone() for name, p in made.policy.named_parameters() if not p.requires_grad}
    made.train()
    made.roll_out(EXAMPLES[:1])
    assert all(torch.equal(p, base[name]) for name, p in made.policy.named_parameters() if name in base)
    ids = torch.tensor([[2, 4, 5, 6, 3]])
    got, want = made.vllm_generation.served(ids).logits, made.policy(ids).logits
    assert torch.allclose(got, want, atol=1e-4)
    with made.policy.disable_adapter():
        assert not torch.allclose(got, made.policy(ids).logits, atol=1e-2)


def test_a_sampler_that_holds_other_weights_stops_the_run(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StubGeneration, "spoils", True)
    with pytest.raises(RunError, match="does not hold the trainer's weights"):
        trainer(tiny_model, tmp_path).train()


def test_evaluation_is_greedy_and_sends_no_weights_a_second_time(tiny_model: Path, tmp_path: Path) -> None:
    made = trainer(tiny_model, tmp_path)
    names = ("eval_rewards/early_letters/mean", "eval_rewards/length/mean")
    first, second = made.evaluate(), made.evaluate()
    assert [first[name] for name in names] == [second[name] for name in names]
    assert made.vllm_generation.syncs == 1
    for reply in (call.reply for one in made.roll_out(EXAMPLES[:2], greedy=True) for call in one.calls):
        for i, token in enumerate(reply.completion_ids):
            ids = torch.tensor([[*reply.prompt_ids, *reply.completion_ids[:i]]])
            assert made.policy(input_ids=ids).logits[0, -1].argmax() == token


def test_rollouts_ask_on_while_others_are_answered(tiny_model: Path, tmp_path: Path) -> None:
    """In step, places would stay empty at the end of every turn; here only when few rollouts are left."""
    made = trainer(tiny_model, tmp_path)
    rollouts = made.roll_out(EXAMPLES)
    core = made.vllm_generation.llm.llm_engine
    tokens = sum(len(call.reply.completion_ids) for one in rollouts for call in one.calls)
    assert sum(core.steps) == tokens
    short = next(i for i, running in enumerate(core.steps) if running < PLACES)
    assert core.steps[short:] == sorted(core.steps[short:], reverse=True)
    assert [one.key for one in rollouts] == [one.key for one in EXAMPLES]


def test_equal_prompts_get_seeds_of_their_own_and_a_repeated_step_the_same_ones(
    tiny_model: Path, tmp_path: Path
) -> None:
    made = trainer(tiny_model, tmp_path)
    core = made.vllm_generation.llm.llm_engine

    def ids() -> list[list[Any]]:
        return [[call.reply.completion_ids for call in one.calls] for one in made.roll_out([EXAMPLES[0]] * 4)]

    first, seeds = ids(), list(core.seeds)
    assert len(set(seeds)) == len(seeds)
    assert ids() == first
    made.state.global_step = 1
    assert ids() != first


def answered(engine: Colocated, *requests: Request) -> Any:
    futures: list[Future[Any]] = [engine.submit(request, Sampling(1.0)) for request in requests]
    while not all(future.done() for future in futures):
        engine.flush()
    return [future.result() for future in futures]


def test_thinking_is_closed_in_one_row_and_refused_requests_come_back(tiny_model: Path, tmp_path: Path) -> None:
    engine = trainer(tiny_model, tmp_path)._served
    thought, plain, over, refused = answered(
        engine,
        replace(ask("abc", 3), think_tokens=5),
        ask("abc", 3),
        replace(ask("abc", 3), limit=7),
        ask("abc", 401),
    )
    start, end = thought.inserted
    assert (thought.n_requests, thought.forced_close, plain.n_requests) == (2, True, 1)
    assert 0 <= start <= 5 < end < len(thought.completion_ids) <= end + 3
    assert thought.logprobs[start:end] == (0.0,) * (end - start)
    assert (over.finish, over.n_requests) == ("overflow", 0)
    assert (refused.finish, refused.error) == ("error", "vLLM: too long")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"trl_vllm_enable_sleep_mode": True}, "sleep"),
        ({"trl_vllm_tensor_parallel_size": 2}, "tensor_parallel"),
        ({"trl_vllm_mode": "server"}, "colocate"),
        ({"trl_gradient_accumulation_steps": 2}, "gradient_accumulation_steps"),
        ({"trl_steps_per_generation": 2}, "steps_per_generation"),
        ({"trl_loss_type": "grpo"}, "loss_type"),
    ],
)
def test_settings_that_would_be_wrong_or_slow_are_refused(
    tiny_model: Path, tmp_path: Path, settings: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        trainer(tiny_model, tmp_path, **settings)

"""What the trainer does around the gradient: sampling limits, recorded ids, metrics, resuming, evaluation, learning."""

from __future__ import annotations

import inspect
import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from train_harness import (
    FLAGS,
    Questions,
    build_trainer,
    example,
    group_advantages,
    length,
)
from treeagent.data.rollout import Call, Example, Outcome, Reply, Request, Rollout
from treeagent.train.batches import merged
from treeagent.train.grpo import check_trl
from treeagent.train.rows import from_rollouts
from treeagent.train.trainer import ConversationTrainer

EXAMPLES = [example(i) for i in range(12)]


@dataclass
class OneCall:
    """An environment of a single question with this limit on the reply."""

    max_tokens: int = 8

    def rollout(self, example: Example) -> Generator[Request, Reply, Rollout]:
        request = Request("answer", ({"role": "user", "content": example.question},), self.max_tokens)
        reply = yield request
        return Rollout(example.key, (Call(request, reply),), Outcome(reply.text, "", None, FLAGS), n_sections=1)


def ask(text: str, max_tokens: int) -> Request:
    return Request("memory", ({"role": "user", "content": text},), max_tokens)


@pytest.fixture
def trainer(tiny_model: Path, tmp_path: Path) -> Any:
    return build_trainer(tiny_model, tmp_path, Questions(), EXAMPLES, dev_examples=[example(i) for i in range(3)])


def test_each_reply_keeps_to_its_own_requests_limit(trainer: Any) -> None:
    replies = trainer.sample([ask("abc", 2), ask("d", 7), ask("e", 4)])
    for reply, limit in zip(replies, (2, 7, 4), strict=True):
        assert 0 < len(reply.completion_ids) <= limit
        assert reply.finish == ("stop" if reply.completion_ids[-1] in trainer.eos_token_ids else "length")


def test_the_recorded_prompt_is_the_chat_template_of_the_request(trainer: Any) -> None:
    (reply,) = trainer.sample([ask("abc", 2)])
    tokenizer = trainer.processing_class
    assert list(reply.prompt_ids) == tokenizer.convert_tokens_to_ids(["<user>", "a", "b", "c", "<reply>"])
    assert reply.text == tokenizer.decode(list(reply.completion_ids), skip_special_tokens=True)


def test_a_request_beyond_the_limit_is_not_sent(trainer: Any) -> None:
    trainer.positions = 10  # "<user>", seven letters, "<reply>": 9 tokens
    fits, too_long = trainer.sample([ask("a" * 7, 1), ask("a" * 7, 2)])
    assert fits.finish != "overflow"
    assert (too_long.finish, too_long.completion_ids, too_long.n_requests) == ("overflow", (), 0)


def test_thinking_takes_its_own_request_and_is_closed_in_one_row(trainer: Any) -> None:
    """The tiny vocabulary has no `</think>`, so the thinking is always closed for it, in characters that it knows."""
    plain, thought = trainer.sample([ask("abc", 3), replace(ask("abc", 3), think_tokens=5)])
    assert (plain.n_requests, plain.inserted) == (1, (0, 0))
    start, end = thought.inserted
    assert (thought.n_requests, thought.forced_close) == (2, True)
    assert 0 <= start <= 5 < end < len(thought.completion_ids) <= end + 3
    assert thought.prompt_ids == plain.prompt_ids
    (row,) = from_rollouts([Rollout("", (Call(ask("abc", 3), thought),), Outcome("", "", None, FLAGS), 1)])
    assert row.mask == (1,) * start + (0,) * (end - start) + (1,) * (len(thought.completion_ids) - end)


def test_a_rank_without_requests_still_takes_part(trainer: Any) -> None:
    assert trainer.sample([]) == []


def test_training_rows_hold_the_ids_that_were_sampled(trainer: Any) -> None:
    seen = trainer.roll_out(EXAMPLES[:4])
    trainer.roll_out = lambda examples, **_: seen  # the very same rollouts again
    tasks = [{"prompt": EXAMPLES[i].question, "example": i} for i in range(4)]
    batch = trainer._generate_and_score_completions(tasks)
    rows = {
        (tuple(prompt[pm.bool()].tolist()), tuple(completion[cm.bool()].tolist()))
        for prompt, pm, completion, cm, mask in zip(
            *(batch[k] for k in ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "tool_mask")),
            strict=True,
        )
        if mask.all()
    }
    assert rows == {(call.reply.prompt_ids, call.reply.completion_ids) for one in seen for call in one.calls}


def test_logged_entropy_is_the_mean_over_tokens_whatever_the_micro_batches(tiny_model: Path, tmp_path: Path) -> None:
    from transformers import TrainerCallback

    facts: list[float] = []

    class Recording(ConversationTrainer):
        def roll_out(self, *args: Any, **kwargs: Any) -> list[Rollout]:
            self.seen = super().roll_out(*args, **kwargs)
            return self.seen

    class Expect(TrainerCallback):
        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
            entropies = []
            for reply in (call.reply for one in trainer.seen for call in one.calls):
                ids = torch.tensor([[*reply.prompt_ids, *reply.completion_ids]])
                logps = model(input_ids=ids).logits[0, len(reply.prompt_ids) - 1 : -1].log_softmax(-1)
                entropies += (-(logps.exp() * logps).sum(-1)).tolist()
            facts.append(sum(entropies) / len(entropies))

    trainer: Any = build_trainer(tiny_model, tmp_path, Questions(), EXAMPLES, kind=Recording, per_micro_batch=4)
    trainer.add_callback(Expect())
    trainer.train()
    log = trainer.state.log_history[0]
    assert log["conversations/padding_share"] > 0, "the case was meant to have padding rows"
    assert log["entropy"] == pytest.approx(facts[0], abs=1e-4)


def test_a_micro_batch_of_padding_does_not_count_in_metrics() -> None:
    assert merged("entropy", [1.0, 4.0, 0.0], [1, 3, 0]) == pytest.approx(13 / 4)
    assert merged("clip_ratio/low_min", [2.0, 1.0, 0.0], [1, 3, 0]) == 1.0
    assert merged("clip_ratio/high_max", [2.0, 1.0, 9.0], [1, 3, 0]) == 2.0
    assert math.isnan(merged("kl", [0.0], [0])), "nothing was trained: there is no value, and none is made up"


def weights(trainer: Any) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in trainer.policy.named_parameters() if p.requires_grad}


def test_a_resumed_run_is_bitwise_the_uninterrupted_one(tiny_model: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"trl_save_strategy": "steps", "trl_save_steps": 2, "trl_max_grad_norm": 1.0}
    whole = build_trainer(tiny_model, tmp_path / "a", Questions(), EXAMPLES, trl_max_steps=4, **options)
    whole.train()
    torch.manual_seed(99)
    resumed = build_trainer(tiny_model, tmp_path / "b", Questions(), EXAMPLES, trl_max_steps=4, **options)
    resumed.train(resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-2"))
    want, got = weights(whole), weights(resumed)
    assert all(torch.equal(got[name], want[name]) for name in want)
    keys = ("loss", "grad_norm", "reward", "conversations")
    lines = [[{k: log[k] for k in keys} for log in t.state.log_history if "grad_norm" in log] for t in (whole, resumed)]
    assert lines[0] == lines[1]
    start = build_trainer(tiny_model, tmp_path / "c", Questions(), EXAMPLES)
    assert not all(torch.equal(value, want[name]) for name, value in weights(start).items()), "nothing was trained"


def test_evaluation_is_greedy_and_counts_each_example_once(trainer: Any) -> None:
    before = torch.get_rng_state()
    first, second = trainer.evaluate(), trainer.evaluate()
    names = ("eval_rewards/early_letters/mean", "eval_rewards/length/mean")
    assert [first[name] for name in names] == [second[name] for name in names]
    assert torch.equal(torch.get_rng_state(), before)
    made = trainer.roll_out(trainer.dev_examples, greedy=True)
    assert first[names[1]] == pytest.approx(sum(length(one, None) for one in made) / 3)  # pyright: ignore[reportArgumentType]
    for reply in (call.reply for one in made for call in one.calls):
        for i, token in enumerate(reply.completion_ids):
            ids = torch.tensor([[*reply.prompt_ids, *reply.completion_ids[:i]]])
            assert trainer.policy(input_ids=ids).logits[0, -1].argmax() == token


def test_sampling_draws_different_replies(trainer: Any) -> None:
    replies = trainer.sample([ask("a", 6)] * 4)
    assert len({reply.completion_ids for reply in replies}) > 1


@pytest.mark.slow
def test_a_reward_that_can_be_had_grows_fivefold(tiny_model: Path, tmp_path: Path) -> None:
    """Reward: the share of one letter of 60 among the generated characters, about 0.02 at the start."""

    def letter(rollout: Rollout, example: Example) -> float:
        return rollout.outcome.answer_text.count("q") / 8

    trainer = build_trainer(
        tiny_model,
        tmp_path,
        OneCall(),
        EXAMPLES,
        rewards=[letter],
        per_micro_batch=16,
        trl_max_steps=60,
        trl_per_device_train_batch_size=32,
        trl_num_generations=8,
        trl_learning_rate=2e-2,
        trl_max_grad_norm=1.0,
    )
    trainer.train()
    rewards = [log["reward"] for log in trainer.state.log_history if "reward" in log]
    start, end = sum(rewards[:3]) / 3, sum(rewards[-3:]) / 3
    assert end >= 5 * max(start, 0.01)


def test_the_private_methods_of_trl_are_those_that_are_overridden() -> None:
    from trl.trainer.grpo_trainer import GRPOTrainer

    check_trl()
    expected = {
        "_generate": "self prompts",
        "_generate_single_turn": "self prompt_ids images multimodal_fields num_generations has_tool_images",
        "_generate_and_score_completions": "self inputs",
        "_calculate_rewards": "self inputs prompts completions completion_ids_list",
        "_get_per_token_logps_and_entropies": "self model input_ids attention_mask logits_to_keep batch_size "
        "compute_entropy compute_aux_loss pixel_values image_grid_thw num_images pixel_attention_mask spatial_shapes "
        "num_tiles image_sizes token_type_ids mm_token_type_ids image_position_ids",
        "compute_loss": "self model inputs return_outputs num_items_in_batch",
        "training_step": "self model inputs num_items_in_batch",
        "evaluate": "self eval_dataset ignore_keys metric_key_prefix",
    }
    for name, parameters in expected.items():
        assert " ".join(inspect.signature(getattr(GRPOTrainer, name)).parameters) == parameters, name


def test_the_harness_reference_is_a_policy_gradient() -> None:
    """Two rollouts of rewards 1 and 0: the deviation of (1, 0) is sqrt(1/2)."""
    assert group_advantages([1.0, 0.0], 2) == pytest.approx([0.5 / (0.5**0.5 + 1e-4), -0.5 / (0.5**0.5 + 1e-4)])

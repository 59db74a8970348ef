"""The environment on a real JSON document: what is asked, what is recorded, how a rollout ends."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from treeagent.data.rollout import Example, Outcome, Reference, Reply, Request, Rollout
from treeagent.data.tokens import Tokenizer, load_tokenizer
from treeagent.errors import ConfigError, ParseError
from treeagent.infer import agents
from treeagent.infer.documents import Documents
from treeagent.infer.engines import Sampling
from treeagent.infer.engines.scripted import Scripted
from treeagent.infer.environment import MemoryEnv
from treeagent.infer.run import drive

CITIES = {"cities": [{"name": f"Town {i}", "people": i * 1000, "note": "a place {with} braces"} for i in range(12)]}
TEXT = json.dumps(CITIES, indent=1)
EXAMPLE = Example(TEXT, "json", "How many people live in Town 7?", Reference(("7000",), "number"))


@pytest.fixture(scope="module")
def tokenizer(tiny_chat_folder: Path) -> Tokenizer:
    return load_tokenizer(str(tiny_chat_folder))


def _environment(kind: str, tokenizer: Tokenizer, **options: Any) -> MemoryEnv:
    return MemoryEnv(agents.build("memagent", tokenizer=tokenizer), kind, tokenizer, budget=100, **options)


def _rollout(environment: MemoryEnv, script: Any, example: Example = EXAMPLE) -> tuple[Rollout, list[str]]:
    """The rollout and every prompt that the engine saw."""
    engine = Scripted(script)
    ((_, rollout),) = drive([environment.rollout(example)], engine, Sampling())
    return rollout, [request.messages[0]["content"] for request in engine.seen]


def _slot(prompt: str) -> tuple[str, str]:
    """What stands around the section slot, and what stands in it."""
    before, rest = prompt.split("<section>\n")
    inside, after = rest.rsplit("\n</section>", 1)
    return f"{before}<section>\n|\n</section>{after}", inside


def _remember(request: Request) -> str:
    return "Therefore, the answer is 7000." if request.kind == "answer" else f"Town 7 was in section {request.section}."


def test_flat_shows_the_text_in_windows_and_nothing_else(tokenizer: Tokenizer) -> None:
    rollout, prompts = _rollout(_environment("flat", tokenizer), _remember)
    windows = -(-tokenizer.count(TEXT) // 100)
    assert rollout.n_sections == windows
    assert len(prompts) == windows + 1
    assert "".join(_slot(prompt)[1] for prompt in prompts[:-1]) == TEXT


def test_every_call_and_the_outcome_are_recorded(tokenizer: Tokenizer) -> None:
    rollout, prompts = _rollout(_environment("treeagent", tokenizer), _remember)
    assert rollout.key == EXAMPLE.key
    assert [call.request.messages[0]["content"] for call in rollout.calls] == prompts
    assert [call.request.section for call in rollout.calls] == [*range(rollout.n_sections), None]
    assert [call.reply.text for call in rollout.calls] == [_remember(call.request) for call in rollout.calls]
    flags = {"valid_interaction": True, "memory_complete": True}
    memory = f"Town 7 was in section {rollout.n_sections - 1}."
    assert rollout.outcome == Outcome("Therefore, the answer is 7000.", memory, None, flags)
    assert rollout.failure == ""


def test_observers_differ_in_the_section_slot_only(tokenizer: Tokenizer) -> None:
    seen = {
        kind: [_slot(prompt) for prompt in _rollout(_environment(kind, tokenizer), _remember)[1][:-1]]
        for kind in ("tree", "tree+path", "treeagent")
    }
    around = {kind: [outside for outside, _ in slots] for kind, slots in seen.items()}
    assert around["tree"] == around["tree+path"] == around["treeagent"]
    for (_, plain), (_, with_path), (_, with_spans) in zip(*seen.values(), strict=True):
        path, rest = with_path.split("\n", 1)
        assert path.startswith("$")
        assert rest == plain
        assert with_spans.startswith(with_path)


def test_a_replys_memory_returns_in_the_span_lines_of_a_linked_section(tokenizer: Tokenizer) -> None:
    """A split array links its earlier parts to its last one, whose observation quotes what was remembered there."""
    prompts = _rollout(_environment("treeagent", tokenizer), _remember)[1]
    quoting = [t for t, prompt in enumerate(prompts[:-1]) if "Town 7 was in section" in _slot(prompt)[1]]
    assert quoting
    assert all(t > 0 for t in quoting)


@pytest.mark.parametrize("failure", ["error", "overflow"])
def test_a_reply_that_could_not_be_had_ends_the_rollout_with_an_empty_answer(
    tokenizer: Tokenizer, failure: Any
) -> None:
    script = [Reply("m0"), Reply("some words", failure, error="out of memory")]
    rollout, prompts = _rollout(_environment("flat", tokenizer), script)
    assert rollout.failure == failure
    assert len(prompts) == len(rollout.calls) == 2
    assert rollout.calls[-1].reply.error == "out of memory"
    assert rollout.outcome.answer_text == ""
    assert rollout.outcome.flags == {"valid_interaction": False, "memory_complete": False}
    assert rollout.n_sections > 2


def test_rollouts_of_one_environment_share_no_memory(tokenizer: Tokenizer) -> None:
    environment = _environment("treeagent", tokenizer)
    alone = [_rollout(environment, lambda _, w=word: f"Town 7 {w}")[0] for word in ("here", "there")]
    engine = Scripted(lambda request: "Town 7 there" if "there" in request.messages[0]["content"] else "Town 7 here")
    both = dict(drive([environment.rollout(EXAMPLE), environment.rollout(EXAMPLE)], engine, Sampling()))
    assert both[0] == both[1] == alone[0] != alone[1]


def test_a_document_of_another_format_is_refused_with_its_place(tokenizer: Tokenizer) -> None:
    with pytest.raises(ParseError, match="line 1, column"):
        _rollout(_environment("tree", tokenizer), [], Example("{oops", "json", "?", Reference(("x",))))


def test_reset_and_step_walk_through_the_same_rollout_and_end_with_its_score(tokenizer: Tokenizer) -> None:
    environment = _environment("treeagent", tokenizer)
    expected, _ = _rollout(environment, _remember)
    observation: Request | None = environment.reset(EXAMPLE)
    steps: list[tuple[float, bool, dict[str, Any]]] = []
    while observation is not None:
        observation, reward, done, info = environment.step(_remember(observation))
        steps.append((reward, done, info))
    assert steps[:-1] == [(0.0, False, {})] * expected.n_sections
    assert steps[-1] == (1.0, True, {"rollout": expected})
    with pytest.raises(RuntimeError, match="reset first"):
        environment.step("more")
    assert environment.reset(EXAMPLE).section == 0
    assert environment.reset(EXAMPLE).section == 0


def test_after_a_reset_that_failed_no_rollout_is_under_way(tokenizer: Tokenizer) -> None:
    environment = _environment("tree", tokenizer)
    environment.reset(EXAMPLE)
    with pytest.raises(ParseError):
        environment.reset(dataclasses.replace(EXAMPLE, context="{oops"))
    with pytest.raises(RuntimeError, match="reset first"):
        environment.step("a reply")


def test_a_wrong_answer_earns_nothing(tokenizer: Tokenizer) -> None:
    environment = _environment("flat", tokenizer)
    environment.reset(dataclasses.replace(EXAMPLE, context="[1]"))
    environment.step("a memory")
    assert environment.step("the answer is 8")[:3] == (None, 0.0, True)


def test_a_reward_of_ones_own_is_asked_at_the_end(tokenizer: Tokenizer) -> None:
    environment = _environment(
        "flat", tokenizer, reward=lambda rollout, example: len(rollout.calls) + len(example.format)
    )
    environment.reset(dataclasses.replace(EXAMPLE, context="[1]"))
    assert environment.step("a memory")[1] == 0
    assert environment.step("the answer is 8")[1] == 2 + len("json")


def test_a_reply_that_could_not_be_had_ends_the_walk(tokenizer: Tokenizer) -> None:
    environment = _environment("flat", tokenizer)
    environment.reset(EXAMPLE)
    observation, reward, done, info = environment.step(Reply("", "error", error="gone"))
    assert (observation, reward, done, info["rollout"].failure) == (None, 0.0, True, "error")


def test_calls_are_recorded_without_prompts_and_ids_where_only_the_outcome_counts(tokenizer: Tokenizer) -> None:
    def reply(request: Request) -> Reply:
        return Reply(_remember(request), prompt_ids=(1, 2), completion_ids=(3,), logprobs=(-0.5,), prompt_tokens=2)

    whole, _ = _rollout(_environment("tree", tokenizer), reply)
    light, _ = _rollout(_environment("tree", tokenizer, prompts=False), reply)
    assert light.outcome == whole.outcome
    assert [call.request.kind for call in light.calls] == [call.request.kind for call in whole.calls]
    assert {
        (c.request.messages, c.reply.prompt_ids, c.reply.completion_ids, c.reply.logprobs) for c in light.calls
    } == {((), (), (), None)}
    assert [call.reply.prompt_tokens for call in light.calls] == [2] * len(whole.calls)


def test_shared_documents_of_another_budget_are_refused(tokenizer: Tokenizer) -> None:
    agent, documents = agents.build("memagent", tokenizer=tokenizer), Documents(tokenizer, 40)
    assert MemoryEnv(agent, "flat", tokenizer, documents=documents).documents is documents
    assert MemoryEnv(agent, "flat", tokenizer, 40, documents).documents is documents
    with pytest.raises(ConfigError, match="cut with a budget of 40, not 41"):
        MemoryEnv(agent, "flat", tokenizer, 41, documents)


def test_an_unknown_observer_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(ConfigError, match="unknown observer 'trees'; known: flat, tree, tree\\+path, treeagent"):
        _environment("trees", tokenizer)


def test_notes_count_what_lies_outside_the_budget(tokenizer: Tokenizer) -> None:
    rollout, _ = _rollout(_environment("flat", tokenizer), _remember)
    assert rollout.notes == {"wrapper_tokens": 0, "oversize": 0}
    number = Example(f'{{"a": {"7" * 400}, "b": 1}}', "json", "?", Reference(("1",)))
    assert _rollout(_environment("tree", tokenizer), _remember, number)[0].notes["oversize"] == 1

"""What is logged of rollouts: every value worked out by hand from two groups of two."""

from __future__ import annotations

from treeagent.data.rollout import Call, Example, Finish, Kind, Outcome, Reference, Reply, Request, Rollout
from treeagent.train.recording import MOST_CHARACTERS, MOST_TURNS, Facts, Recorder, RolloutRecorder, Turn, cut

FLAGS = {"valid_interaction": True, "memory_complete": True}


def call(kind: Kind, prompt: int, generated: int, finish: Finish = "stop", *, inserted: int = 0) -> Call:
    request = Request(kind, ({"role": "user", "content": f"ask {kind}"},), 9, section=0 if kind == "memory" else None)
    ids = tuple(range(generated + inserted))
    reply = Reply(
        "said", finish, inserted > 0, prompt_ids=(7,) * prompt, completion_ids=ids, inserted=(1, 1 + inserted)
    )
    return Call(request, reply)


def rollout(key: str, memory: str, *calls: Call, stopped_at: int | None = None) -> Rollout:
    return Rollout(key, calls, Outcome("answer", memory, stopped_at, FLAGS), n_sections=2)


def example(task: str) -> Example:
    return Example("{}", "json", "?", Reference(("x",)), task=task)


ROLLOUTS = [
    rollout("a", "one two", call("memory", 10, 3), call("answer", 5, 2)),
    rollout("a", "", call("memory", 10, 4, "length"), stopped_at=1),
    rollout("b", "one", call("memory", 20, 5, inserted=2), call("controller", 1, 1)),
    rollout("b", "a b c"),
]
EXAMPLES = [example("count"), example("count"), example("find"), example("find")]
TERMS = [[1.0, 1.0], [0.0, 1.0], [0.5, 0.0], [0.5, 0.0]]


def recorder(**options: object) -> RolloutRecorder:
    return RolloutRecorder([1.0, 0.05], 2, lambda text: len(text.split()), **options)  # pyright: ignore[reportArgumentType]


def test_values_are_those_worked_out_by_hand() -> None:
    values = recorder().step(3, ROLLOUTS, EXAMPLES, TERMS)
    assert values["score/count"] == 0.5
    assert values["score/find"] == 0.5
    # Rewards 1.05 and 0.05 deviate by 1 / sqrt(2), those of the second group not at all.
    assert abs(values["group_std"] - (0.5**0.5) / 2) < 1e-12
    assert values["rollouts/early_stop_share"] == 0.25
    assert (values["memory_tokens/mean"], values["memory_tokens/max"]) == (6 / 4, 3)
    assert values["calls/forced_close_share"] == 1 / 5
    assert (values["calls/memory"], values["calls/answer"], values["calls/controller"]) == (3, 1, 1)
    assert (values["tokens/memory/prompt"], values["tokens/memory/generated"]) == (40, 12)
    assert (values["tokens/answer/generated"], values["tokens/controller/generated"]) == (2, 1)
    assert (values["calls/memory/cut_share"], values["calls/answer/cut_share"]) == (1 / 3, 0)


def test_values_of_a_process_are_those_of_all() -> None:
    """Two processes with one group each: what they send, put together, is what one process would have seen."""
    sent: list[Facts] = []

    def send(facts: list[Facts]) -> list[Facts]:
        sent.extend(facts)
        return sent

    recorder(gather=send).step(1, ROLLOUTS[:2], EXAMPLES[:2], TERMS[:2])
    got = recorder(gather=send).step(1, ROLLOUTS[2:], EXAMPLES[2:], TERMS[2:])
    assert got == recorder().step(1, ROLLOUTS, EXAMPLES, TERMS)


def test_the_first_rollouts_are_kept_turn_by_turn() -> None:
    kept: list[tuple[int, list[Turn]]] = []
    recorder(shown=2, keep=lambda step, turns: kept.append((step, list(turns)))).step(7, ROLLOUTS, EXAMPLES, TERMS)
    ((step, turns),) = kept
    assert step == 7
    assert [(t.rollout, t.turn, t.kind, t.section, t.finish) for t in turns] == [
        (0, 1, "memory", 0, "stop"),
        (0, 2, "answer", None, "stop"),
        (1, 1, "memory", 0, "length"),
    ]
    assert (turns[0].prompt, turns[0].reply, turns[0].reward, turns[0].score) == ("ask memory", "said", 1.05, 1.0)
    assert (turns[1].prompt_tokens, turns[1].generated_tokens) == (5, 2)


def test_a_step_of_long_rollouts_is_cut_to_a_table_that_can_be_shown() -> None:
    kept: list[Turn] = []
    long = [rollout("a", "", *[call("memory", 1, 1)] * 200) for _ in range(2)]
    recorder(shown=2, keep=lambda step, turns: kept.extend(turns)).step(1, long, EXAMPLES[:2], TERMS[:2])
    assert len(kept) == MOST_TURNS
    text = "a" * MOST_CHARACTERS + "b" * 3 * MOST_CHARACTERS
    assert cut(text[:MOST_CHARACTERS]) == text[:MOST_CHARACTERS]
    assert cut(text) == "a" * 1000 + "\n[6000 characters left out]\n" + "b" * 1000


def test_the_null_recorder_records_nothing() -> None:
    assert Recorder().step(1, ROLLOUTS, EXAMPLES, TERMS) == {}

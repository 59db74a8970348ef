"""The stored specification, executed: which records are meant, which values answer, and why there is no one answer.

Records are told apart as people read them: a rival whose name differs in case or white space alone makes a question
unclear. An extremum must stand clear of the next value by more than the score tolerates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from .reading import Record
from .values import amount, equal, folded, inside, spelling

TASKS: Mapping[str, tuple[int, int]] = {
    "single_field": (1, 1),
    "two_fields": (1, 2),
    "four_fields": (1, 4),
    "two_records": (2, 1),
    "four_records": (4, 1),
    "conditional_count": (0, 0),
    "most_frequent": (0, 0),
    "numerical_extremum": (0, 1),
}
"""How many records a task names, and how many fields it asks for."""
TOLERANCE, SHARE = Decimal("0.01"), Decimal("0.001")
_KEYS = {"task", "scope", "answer_kind", "selectors", "fields", "conditions", "measure", "extreme", "group", "ordered"}
_OPERATORS = ("=", ">", "<", "contains")
Spec = Mapping[str, Any]
Test = Mapping[str, Any]


@dataclass
class Answer:
    """Values as the source spells them, the records that they rest on, and what is wrong."""

    values: list[str] = field(default_factory=list)
    supports: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def is_lookup(spec: Spec) -> bool:
    """Whether records are named."""
    return bool(TASKS.get(spec.get("task", ""), (0, 0))[0])


def form(spec: Any) -> list[str]:
    """What is wrong with the specification itself; only one without faults can be executed."""
    if not isinstance(spec, dict) or not set(spec) <= _KEYS or spec.get("task") not in TASKS:
        return ["the specification is none"]
    tests = [*spec.get("conditions", ()), *(test for selector in spec.get("selectors", ()) for test in selector)]
    paths = [*spec.get("fields", ()), *(test.get("field") for test in tests if isinstance(test, dict))]
    paths += [spec[key] for key in ("measure", "group") if key in spec]
    if not all(isinstance(test, dict) and test.get("op") in _OPERATORS and "value" in test for test in tests):
        return ["the specification has a test that is none"]
    if not all(isinstance(path, list) and path and all(isinstance(step, str) for step in path) for path in paths):
        return ["the specification has a field that is none"]
    return _shape(spec)


def _shape(spec: Spec) -> list[str]:
    """What does not belong to its task."""
    task, records = spec["task"], len(spec.get("selectors", ()))
    named, asked = TASKS[task]
    problems = []
    if (records, len(spec.get("fields", ()))) != (named, asked):
        problems.append(f"{task} names {named} records and asks for {asked} fields, the specification others")
    if bool(spec.get("group")) != (task == "most_frequent"):
        problems.append("only most_frequent has a group")
    if bool(spec.get("measure")) != (task == "numerical_extremum") or bool(spec.get("measure")) != (
        spec.get("extreme") in ("max", "min")
    ):
        problems.append("only numerical_extremum has a measure, and max or min")
    if (task == "conditional_count" and not spec.get("conditions")) or (named and spec.get("conditions")):
        problems.append(f"the conditions are not those of {task}")
    if any(not selector for selector in spec.get("selectors", ())):
        problems.append("a record is named by nothing")
    if bool(spec.get("ordered")) != (named * asked > 1):
        problems.append("several values of a lookup are ordered, no others")
    return problems


def execute(spec: Spec, records: Sequence[Record]) -> Answer:
    """The answer over the records of the scope."""
    if not records:
        return Answer(problems=["nothing lies at the scope"])
    if is_lookup(spec):
        return _lookup(spec, records)
    tests = spec.get("conditions", ())
    within = [i for i, record in enumerate(records) if all(holds(test, record.value) for test in tests)]
    unclear = [problem for test in tests for problem in _nearly(test, records)]
    answer = {"conditional_count": _count, "most_frequent": _frequent, "numerical_extremum": _extremum}[spec["task"]](
        spec, records, within
    )
    answer.problems = [*unclear[:1], *answer.problems]
    return answer


def _lookup(spec: Spec, records: Sequence[Record]) -> Answer:
    answer = Answer()
    for selector in spec["selectors"]:
        hits = [i for i, record in enumerate(records) if all(holds(test, record.value) for test in selector)]
        rivals = [i for i, record in enumerate(records) if all(_resembles(test, record.value) for test in selector)]
        if len(hits) != 1 or rivals != hits:
            seen = f", {len(rivals)} but for case and blanks" if rivals != hits else ""
            answer.problems.append(f"{len(hits)} records are {words(selector)}{seen}, not one")
            continue
        answer.supports += hits
        for path in (*spec["fields"], *(test["field"] for test in selector)):
            if path[0] in records[hits[0]].unclear:
                answer.problems.append(f"the record has several {path[0]}")
    for i in answer.supports:
        for path in spec["fields"]:
            _state(answer, inside(records[i].value, path), path)
    if len(set(answer.supports)) < len(answer.supports):
        answer.problems.append("one record is named twice")
    return answer


def _state(answer: Answer, value: Any, path: Sequence[str]) -> None:
    said = spelling(value)
    if said is None or not said.strip():
        answer.problems.append(f"a record has no single value {'.'.join(path)}")
    else:
        answer.values.append(said)


def _count(spec: Spec, records: Sequence[Record], within: Sequence[int]) -> Answer:
    del spec
    problems = [] if 0 < len(within) < len(records) else ["none or all of the records are counted"]
    return Answer([str(len(within))], list(within), problems)


def _frequent(spec: Spec, records: Sequence[Record], within: Sequence[int]) -> Answer:
    """The values that occur most often, by where they first occur."""
    said = {i: text for i in within if (text := spelling(inside(records[i].value, spec["group"])))}
    counts = Counter(said.values())
    top = max(counts.values(), default=0)
    leaders = [value for value, times in counts.items() if times == top]
    alike = Counter(folded(value) for value in said.values())
    problems = []
    if top < 2 or len(leaders) == len(counts):
        problems.append("no value is more frequent than others")
    if max(alike.values(), default=0) != top or sum(times == top for times in alike.values()) != len(leaders):
        problems.append("spellings of one value are counted apart")
    if any(spec["group"][0] in records[i].unclear for i in said):
        problems.append("a record has several values of the field")
    return Answer(leaders, [i for i, text in said.items() if counts[text] == top], problems)


def _extremum(spec: Spec, records: Sequence[Record], within: Sequence[int]) -> Answer:
    """The one record with the extreme value; the next one stands clear of it."""
    sign = 1 if spec["extreme"] == "max" else -1
    numbers = ((i, amount(inside(records[i].value, spec["measure"]))) for i in within)
    measured = [(sign * number, i) for i, number in numbers if number is not None]
    measured.sort(key=lambda pair: (-pair[0], pair[1]))
    if len(measured) < 2:
        return Answer(problems=["fewer than two records in the scope have the measure"])
    (best, winner), (second, _) = measured[:2]
    answer = Answer(supports=[winner])
    if best - second <= max(TOLERANCE, SHARE * max(abs(best), abs(second))):
        answer.problems.append(f"the extremum is not unique: {sign * best} and {sign * second}")
    for path in spec["fields"]:
        _state(answer, inside(records[winner].value, path), path)
    return answer


def holds(test: Test, record: Mapping[str, Any]) -> bool:
    """Whether a record passes a test; one without the field does not."""
    found, wanted = inside(record, test["field"]), test["value"]
    if test["op"] == "contains":
        return isinstance(found, list) and any(equal(item, wanted) for item in found)
    if test["op"] == "=":
        return equal(found, wanted)
    number, bound = amount(found), None if isinstance(wanted, str) else amount(wanted)
    if number is None or bound is None:
        return False
    return number > bound if test["op"] == ">" else number < bound


def _resembles(test: Test, record: Mapping[str, Any]) -> bool:
    """Whether people would take the value for the wanted one."""
    found, wanted = inside(record, test["field"]), test["value"]
    if spelling(found) is None or spelling(wanted) is None:
        return False
    return holds(test, record) or folded(found) == folded(wanted)


def _nearly(test: Test, records: Sequence[Record]) -> list[str]:
    """Records that people would count and the specification does not."""
    if test["op"] != "=":
        return []
    near = [r for r in records if _resembles(test, r.value) and not holds(test, r.value)]
    return [f"a record almost passes: {words([test])}"] if near else []


def words(tests: Sequence[Test]) -> str:
    """Tests as they are told."""
    return " and ".join(f"{'.'.join(test['field'])} {test['op']} {test['value']!r}" for test in tests)

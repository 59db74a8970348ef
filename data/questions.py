"""Wording: a specification as a natural question, with varied words drawn by a seed.

Records are named by what is visible in them and in their unit, fields by what people call them; no key, path, position
or answer appears. Aggregations state their scope. The last sentences ask for the values only and say whether several
follow the question's order, or that all tied ones are wanted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from random import Random

from .catalog import UNIT, Field, FieldPath, Scope, Table, numeric
from .spec import Condition, Spec

_LOOKUP = (
    "What is the {fields} of {entities}{place}?",
    "What {fields} is given for {entities}{place}?",
    "Which {fields} is recorded for {entities}{place}?",
    "Find {entities}{place} and state the {fields}.",
    "According to the data, what is the {fields} of {entities}{place}?",
    "I am looking for the {fields} of {entities}{place}. What is it?",
)
_FIELDS = (
    "What are the {fields} of {entities}{place}?",
    "Find {entities}{place} and state the {fields}.",
    "For {entities}{place}, what are the {fields}?",
    "I need the {fields} of {entities}{place}. What are they?",
    "Please give the {fields} that are recorded for {entities}{place}.",
)
_RECORDS = (
    "What is the {fields} of each of these {plural}{place}: {entities}?",
    "For each of {entities}{place}, what is the {fields}?",
    "State the {fields} of {entities}{place}.",
    "Look up {entities}{place}: which {fields} does each of these {plural} have?",
    "I would like to know the {fields} of each of the following {plural}{place}: {entities}.",
)
_COUNT = (
    "Over all {plural} listed {place}, how many are there {condition}?",
    "Of all the {plural} {place}, how many are ones {condition}?",
    "Count every {singular} {place} {condition}. How many are there?",
    "Going through the complete list of {plural} {place}, how many do you find {condition}?",
)
_FREQUENT = (
    "Which {field} occurs most often among {scope}?",
    "Looking at {scope}, what is the most frequent {field}?",
    "Compare {scope}: which {field} is the most common one?",
    "Go through {scope}. Which {field} appears most frequently?",
)
_EXTREME_VALUE = (
    "What is the {extreme} {measure} among {scope}?",
    "Looking at {scope}, what is the {extreme} {measure} that occurs?",
    "Compare {scope}: what is the {extreme} {measure}?",
    "Which {measure} is the {extreme} one among {scope}?",
)
_EXTREME_FIELD = (
    "Among {scope}, which one has the {extreme} {measure}? Give its {fields}.",
    "Looking at {scope}, what is the {fields} of the one with the {extreme} {measure}?",
    "Compare {scope} and state the {fields} of the one whose {measure} is the {extreme}.",
)
_SCOPE = (
    "all {plural} {place}{condition}",
    "all the {plural} listed {place}{condition}",
    "every {singular} listed {place}{condition}",
)
_EVERYWHERE: Mapping[str, Sequence[str]] = {
    "json": ("in the data", "in the response", "in this response"),
    "html": ("on all of the pages", "across all the pages", "on the pages taken together"),
    "yaml": ("in all of the documents", "across all the documents", "in the documents taken together"),
    "javascript": ("in the whole file", "in all of the file", "in the file taken as a whole"),
}
_PAGE = ('on the page "{title}"', 'on the page titled "{title}"', 'on the page with the title "{title}"')
_DOCUMENT = (
    'in the document "{title}"',
    'in the document titled "{title}"',
    'in the document with the title "{title}"',
)
_VARIABLE = ("in {name} of the file {file}", "in {name} from {file}", "in {name}, which comes from {file}")
_UNITS: Mapping[str, Sequence[str]] = {"html": _PAGE, "yaml": _DOCUMENT, "json": _DOCUMENT, "javascript": _VARIABLE}
_LIST = {"table": "table", "definitions": "list", "items": "list", "objects": "list", "entries": "list"}
_ENTITY = ("the {singular} {name}{more}", "the {singular} named {name}{more}", "{name}{more}")
_NUMBERED = ("the {singular} with the {name}{more}",)
_EQUAL = ("whose {field} is {value}", "with {value} as the {field}", "with the {field} {value}")
_ABOVE = ("whose {field} is above {value}", "whose {field} is greater than {value}", "whose {field} exceeds {value}")
_BELOW = ("whose {field} is below {value}", "whose {field} is less than {value}", "whose {field} is lower than {value}")
_CONTAINS = ("whose {field} include {value}", "with {value} among the {field}")
_EXTREMES = {"max": ("highest", "greatest", "largest"), "min": ("lowest", "smallest")}
_ONE = ("Answer with the value only.", "Give just the value.", "Reply with nothing but the value.")
_NUMBER = ("Answer with the number only.", "Give just the number.", "Reply with nothing but the number.")
_SEVERAL = (
    "Answer with the values only, in the order asked.",
    "Give just the values, in the order of the question.",
    "Reply with nothing but the values; keep the question's order.",
)
_TIES = (
    "If several are equally frequent, give all of them, in any order. Answer with the values only.",
    "Where several tie, all of them are wanted, in any order. Give just the values.",
    "Name every one of them if there is a tie; the order does not matter. Reply with nothing but the values.",
)
_PATTERNS = {"=": _EQUAL, ">": _ABOVE, "<": _BELOW, "contains": _CONTAINS}
_BARE_WORDS = 4
_BARE = re.compile(r"\w(?:[\w '.&/+-]{0,58}[\w%])?")


def ask(rng: Random, spec: Spec, table: Table, format: str = "json") -> str:
    """A question that states `spec` in words. Equal random states give equal words."""
    if spec.selectors:
        question = _lookup(rng, spec, table, format)
    elif spec.group is not None:
        question = rng.choice(_FREQUENT).format(
            field=_field_name(table, spec.group), scope=_scope(rng, spec, table, format)
        )
    elif spec.measure is not None:
        question = _extreme(rng, spec, table, format)
    else:
        condition, place = _conditions(rng, spec, table), _place(rng, spec.scope, table, format)
        question = rng.choice(_COUNT).format(
            singular=table.singular, plural=table.plural, condition=condition, place=place
        )
    return f"{question[0].upper()}{question[1:]} {rng.choice(_endings(spec))}"


def reveals(question: str, values: Sequence[str]) -> bool:
    """Whether one of the values stands in the question as a whole word or number."""
    text = question.casefold().replace(",", "")
    return any(re.search(rf"(?<![\w.]){re.escape(v.casefold().replace(',', ''))}(?![\w])", text) for v in values)


def _endings(spec: Spec) -> Sequence[str]:
    if spec.asked is None:
        return _TIES
    if spec.asked > 1:
        return _SEVERAL
    return _NUMBER if spec.answer_kind == "number" else _ONE


def _lookup(rng: Random, spec: Spec, table: Table, format: str) -> str:
    patterns = _RECORDS if len(spec.selectors) > 1 else _FIELDS if len(spec.fields) > 1 else _LOOKUP
    place = _place(rng, spec.scope, table, format) if spec.scope.unit else ""
    entities = [_entity(rng, selector, table, len(spec.selectors)) for selector in spec.selectors]
    if place and table.naming.path[0] == UNIT:  # the list is one record, so its place is its name
        entities, place = [place.split(" ", 1)[1]], ""
    return rng.choice(patterns).format(
        fields=_listed([_field_name(table, path) for path in spec.fields]),
        entities=_listed(entities),
        plural=table.plural,
        place=f" {place}" if place else "",
    )


def _extreme(rng: Random, spec: Spec, table: Table, format: str) -> str:
    assert spec.measure is not None
    assert spec.extreme is not None
    patterns = _EXTREME_VALUE if spec.fields == (spec.measure,) else _EXTREME_FIELD
    return rng.choice(patterns).format(
        extreme=rng.choice(_EXTREMES[spec.extreme]),
        measure=_field_name(table, spec.measure),
        fields=_listed([_field_name(table, path) for path in spec.fields]),
        scope=_scope(rng, spec, table, format),
    )


def _scope(rng: Random, spec: Spec, table: Table, format: str) -> str:
    condition = f" {_conditions(rng, spec, table)}" if spec.conditions else ""
    place = _place(rng, spec.scope, table, format)
    return rng.choice(_SCOPE).format(singular=table.singular, plural=table.plural, place=place, condition=condition)


def _place(rng: Random, scope: Scope, table: Table, format: str) -> str:
    """Where the records are: in everything, or in a list of a unit, both named by what is visible of them."""
    if not scope.unit:
        return rng.choice(_EVERYWHERE[format])
    facts = {key: _inside(value) for key, value in scope.unit.items()}
    pattern = rng.choice(_UNITS[format])
    known = all(f"{{{key}}}" in pattern for key in facts)
    unit = pattern.format(**facts) if known else f"where {_listed([f'the {k} is {v}' for k, v in facts.items()])}"
    return f'in the {_LIST[scope.shape]} "{_inside(table.label)}" {unit}' if table.label else unit


def _entity(rng: Random, selector: tuple[Condition, ...], table: Table, of: int) -> str:
    """A record by its name, and by whatever else it takes to mean no other."""
    first, *rest = selector
    name, patterns = _value(first.value), _ENTITY if of == 1 else _ENTITY[2:]
    if numeric(first.value) is not None:  # a number alone says nothing
        name, patterns = f"{_field_name(table, first.field)} {name}", _NUMBERED
    more = [f"{_field_name(table, c.field)} {_value(c.value)}" for c in rest]
    words = f" ({', '.join(more)})" if more else ""
    return rng.choice(patterns).format(singular=table.singular, name=name, more=words)


def _conditions(rng: Random, spec: Spec, table: Table) -> str:
    return " and ".join(
        rng.choice(_PATTERNS[c.op] if not isinstance(c.value, bool) else _EQUAL[:1]).format(
            field=_field_name(table, c.field), value=_amount(c.value)
        )
        for c in spec.conditions
    )


def _amount(value: str | float) -> str:
    """A value that is compared: numbers grouped as people write them."""
    return _value(value) if isinstance(value, str | bool) else f"{value:,}"


def _value(value: str | float) -> str:
    """A value as it is spelled, in quotation marks where it is no plain word or number."""
    text = value if isinstance(value, str) else json.dumps(value)
    bare = len(text.split()) <= _BARE_WORDS and _BARE.fullmatch(text)
    return text if bare or numeric(text) is not None else f'"{_inside(text)}"'


def _inside(text: str) -> str:
    """Text that stands between quotation marks."""
    return text.replace('"', "'") if '"' in text and "'" not in text else text


def _field_name(table: Table, path: FieldPath) -> str:
    if path[0] == UNIT and not any(field.path == path for field in _known(table)):
        return path[-1]
    return table.field(path).name


def _known(table: Table) -> tuple[Field, ...]:
    return (table.naming, *table.qualifiers, *table.fields)


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"

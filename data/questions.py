"""Wording: a specification as a natural question, with varied words drawn by a seed.

Records are named by what is visible in them, fields by what people call them; no key, path, position or answer appears.
The last sentence asks for the values only and, where several are asked, says that they follow the question's order.
"""

from __future__ import annotations

import re
from random import Random

from .catalog import Collection, FieldPath
from .tasks import Condition, Spec, spelled

_LOOKUP = (
    "What is the {fields} of {entities}?",
    "What {fields} is given for {entities}?",
    "Which {fields} is recorded for {entities}?",
    "Find {entities} and state the {fields}.",
    "According to the data, what is the {fields} of {entities}?",
    "I am looking for the {fields} of {entities}. What is it?",
)
_COUNT = (
    "Over all {plural} listed in the data, how many are there {condition}?",
    "Of all the {plural} in the response, how many are ones {condition}?",
    "Count every listed {singular} {condition}. How many are there?",
    "Going through the complete list of {plural}, how many do you find {condition}?",
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
    "all {plural} in the data{condition}",
    "all the {plural} listed{condition}",
    "every listed {singular}{condition}",
)
_ENTITY = ("the {singular} {name}{more}", "the {singular} named {name}{more}", "{name}{more}")
_EQUAL = ("whose {field} is {value}", "with {value} as the {field}", "with the {field} {value}")
_ABOVE = ("whose {field} is above {value}", "whose {field} is greater than {value}", "whose {field} exceeds {value}")
_BELOW = ("whose {field} is below {value}", "whose {field} is less than {value}", "whose {field} is lower than {value}")
_CONTAINS = ("whose {field} include {value}", "with {value} among the {field}")
_EXTREMES = {"max": ("highest", "greatest", "largest"), "min": ("lowest", "smallest")}
_ONE = ("Answer with the value only.", "Give just the value.", "Reply with nothing but the value.")
_NUMBER = ("Answer with the number only.", "Give just the number.", "Reply with nothing but the number.")
_SEVERAL = ("Answer with the values only, in the order asked.", "Give just the values, in the order of the question.")
_PATTERNS = {"=": _EQUAL, ">": _ABOVE, "<": _BELOW, "contains": _CONTAINS}


def ask(rng: Random, spec: Spec, collection: Collection) -> str:
    """A question that states `spec` in words. Equal random states give equal words."""
    if spec.selectors:
        question = rng.choice(_LOOKUP).format(
            fields=_listed([_field_name(collection, path) for path in spec.fields]),
            entities=_listed([_entity(rng, selector, collection) for selector in spec.selectors]),
        )
    elif spec.measure is not None:
        question = _extreme(rng, spec, collection)
    else:
        question = rng.choice(_COUNT).format(
            singular=collection.singular, plural=collection.plural, condition=_conditions(rng, spec, collection)
        )
    several = len(spec.selectors) * len(spec.fields) > 1
    endings = _SEVERAL if several else _NUMBER if spec.answer_kind == "number" else _ONE
    return f"{question[0].upper()}{question[1:]} {rng.choice(endings)}"


def reveals(question: str, values: list[str]) -> bool:
    """Whether one of the values stands in the question as a whole word or number."""
    text = question.casefold().replace(",", "")
    return any(re.search(rf"(?<![\w.]){re.escape(v.casefold().replace(',', ''))}(?![\w])", text) for v in values)


def _extreme(rng: Random, spec: Spec, collection: Collection) -> str:
    assert spec.measure is not None
    assert spec.extreme is not None
    condition = f" {_conditions(rng, spec, collection)}" if spec.conditions else ""
    scope = rng.choice(_SCOPE).format(singular=collection.singular, plural=collection.plural, condition=condition)
    patterns = _EXTREME_VALUE if spec.fields == (spec.measure,) else _EXTREME_FIELD
    return rng.choice(patterns).format(
        extreme=rng.choice(_EXTREMES[spec.extreme]),
        measure=_field_name(collection, spec.measure),
        fields=_listed([_field_name(collection, path) for path in spec.fields]),
        scope=scope,
    )


def _entity(rng: Random, selector: tuple[Condition, ...], collection: Collection) -> str:
    """A record by its name, and by whatever else it takes to mean no other."""
    first, *rest = selector
    more = [f"{_field_name(collection, c.field)} {spelled(c.value)}" for c in rest]
    words = f" ({', '.join(more)})" if more else ""
    return rng.choice(_ENTITY).format(singular=collection.singular, name=spelled(first.value), more=words)


def _conditions(rng: Random, spec: Spec, collection: Collection) -> str:
    return " and ".join(
        rng.choice(_PATTERNS[c.op]).format(field=_field_name(collection, c.field), value=_value(c.value))
        for c in spec.conditions
    )


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _field_name(collection: Collection, path: FieldPath) -> str:
    return collection.field(path).name


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"

"""What InfMem's planner says, read as its released evaluation reads it; and what it is told of its searches so far.

A reply is either STOP (anywhere in it, thinking included), or calls in the function-call format of Qwen-Agent, or
neither. Replies are hostile input: the expression is linear in each call, and nothing here raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TOOL = "retrievesearch"
TOP_K = 8
"""How many passages a call asks for that does not say."""

_STOP = "STOP"
# The name stands on one line; the arguments hold no marker. Possessive quantifiers keep runs of blanks from being split
# in every possible way; the second branch is a name of blanks only.
_CALL = re.compile(
    r"✿FUNCTION✿:(?:\s*+([^\n]+)(?<=\S)\s*+|(?=\n*+[^\S\n])\s*+)✿ARGS✿:([^✿]++)(?=✿(?:RESULT|RETURN|FUNCTION)✿|\Z)"
)


@dataclass(frozen=True)
class ToolCall:
    """One function call: its name, and its arguments as text."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Search:
    """A search as the model asked for it. `query` and `top_k` are what its JSON holds, of any type; `shown` is how the
    history shows them; `well_formed` says whether they are what the tool's schema asks for."""

    query: Any
    top_k: Any
    shown: str
    well_formed: bool


def parse_plan(text: str) -> tuple[tuple[ToolCall, ...], bool]:
    """The calls in a planner reply, and whether it says STOP; a reply that does has no calls."""
    if _STOP in text:
        return (), True
    return tuple(ToolCall((m[1] or "").strip(), _arguments(m[2])) for m in _CALL.finditer(text)), False


def _arguments(text: str) -> str:
    """Without what follows the last brace of an object, or the end of a code block."""
    text = text.strip()
    if text.startswith("{") and (end := text.rfind("}")) > 0:
        return text[: end + 1]
    if text.startswith("```") and (end := text.rfind("\n```")) > 0:
        return text[: end + 4]
    return text


def parse_search(call: ToolCall, question: str) -> Search:
    """The search that a call of the tool asks for. Missing keys, and arguments that are no JSON object, stand for the
    question and 8."""
    try:
        arguments = json.loads(call.arguments)
        query, top_k = arguments.get("query", question), arguments.get("top_k", TOP_K)
        shown = f"query={query!r}, top_k={top_k}"
    except (ValueError, AttributeError, RecursionError):  # not JSON; no object; nested beyond reading
        return Search(question, TOP_K, f"query={question!r}, top_k={TOP_K}", False)
    asked = arguments.get("query")
    well_formed = isinstance(asked, str) and bool(asked.strip()) and type(top_k) is int
    return Search(query, top_k, shown, well_formed)


def history_text(t: int, n: int, searches: Sequence[Search]) -> str:
    """What the planner is shown before section `t` (0-based) of `n`: the step, a newline, a line for each search."""
    lines = [f"Step {i}: {search.shown}" for i, search in enumerate(searches, 1)]
    return f"Current retrieval step: {t + 1}  Maximum allowed retrieval steps: {n}\n" + "\n".join(lines)

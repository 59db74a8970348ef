"""What InfMem's planner says, read as its released evaluation reads it; and what it is told of its searches so far.

A reply is either STOP (anywhere in it, thinking included), or calls in the function-call format of Qwen-Agent, or
neither. Replies are hostile input: reading one takes time in proportion to its length, and nothing here raises.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

TOOL = "retrievesearch"
TOP_K = 8
"""How many passages a call asks for that does not say."""

_STOP = "STOP"
_FUNCTION = "✿FUNCTION✿:"
_ARGUMENTS = re.compile(r"✿ARGS✿:([^✿]++)(?=✿(?:RESULT|RETURN|FUNCTION)✿|\Z)")
_SOLID = re.compile(r"\S")


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
    return tuple(_calls(text)), False


def _calls(text: str) -> Iterator[ToolCall]:
    """What the released expression finds, `✿FUNCTION✿:\\s*([^\\n]+)\\s*✿ARGS✿:...`: the name stands on one line, and on
    the last of several arguments that may follow it. As an expression it would go through a line once for each call."""
    arguments = {match.start(): match for match in _ARGUMENTS.finditer(text)}
    places = list(arguments)
    end = line_end = following = -1
    while arguments and (found := text.find(_FUNCTION, max(end, 0))) >= 0:
        end = found + len(_FUNCTION)
        name = _solid(text, end)
        if name > line_end:
            line_end = text.find("\n", name) % (len(text) + 1)  # the end of the text where there is no newline
            following = _solid(text, line_end)
        nearest = bisect_left(places, line_end) - 1
        if following in arguments:
            chosen = following
        elif nearest >= 0 and places[nearest] > name:
            chosen = places[nearest]
        elif name in arguments and text[end:name].strip("\n"):  # a name of blanks only
            chosen = name
        else:
            continue
        yield ToolCall(text[end:chosen].strip(), _arguments(arguments[chosen][1]))
        end = arguments[chosen].end()


def _solid(text: str, start: int) -> int:
    """Where the first character from `start` on is that is no blank; the end of the text if there is none."""
    match = _SOLID.search(text, start)
    return match.start() if match else len(text)


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

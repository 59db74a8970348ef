"""Thinking in two stages: a first request of bounded length, a closing if it did not close its thinking by itself, and
a second request that goes on from there (as InfMem's released evaluation generates).

Everything exists twice: on token ids, for engines that run a model, and on text, for servers that take only text. On
ids nothing is decoded and encoded again but a last token that is only partly blank. An engine asks for at most
`think_tokens` after the prompt, gives them to `continue_ids` (or `continue_text`), asks for at most `max_tokens` after
prompt and opening, and joins both by `chat.two_stage_reply` (or `joined`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

START, END = "<think>", "</think>"
CLOSING = "I have thought for long enough and reply with what I know."
"""Said in the model's place when it runs out of thinking tokens. It must hold no word that agents react to."""
INSERTED = f"\n\n{CLOSING}\n{END}\n\n"
_ANCHORS = ("a", "\n", ".", "")


@dataclass(frozen=True)
class Opening:
    """What the second request finds after the prompt. `inserted`: start and end, in `ids`, of what the model did not
    generate. `logprobs`: one for each id, 0.0 where it was inserted. `generated`: the tokens that the first request
    gave out, with its end token and what was taken off."""

    ids: tuple[int, ...]
    inserted: tuple[int, int] = (0, 0)
    forced_close: bool = False
    logprobs: tuple[float, ...] | None = None
    generated: int = 0


def continue_text(first: str) -> tuple[str, bool]:
    """What the second request finds after the prompt, and whether the thinking had to be closed."""
    return (first, False) if END in first else (first.rstrip() + INSERTED, True)


def joined(opening: str, second: str) -> str:
    """The whole reply. Words are glued where the first request ended in the middle of what follows the thinking."""
    return (opening + second.strip()).strip()


def continue_ids(
    tokenizer: Any,
    generated: Sequence[int],
    logprobs: Sequence[float] | None = None,
    *,
    think_tokens: int,
    ends: Collection[int],
) -> Opening:
    """The opening that the ids of a first request make: cut at `think_tokens` and before the first end token, and
    closed if its text is not."""
    row = list(generated[:think_tokens])
    end = next((i for i, token in enumerate(row) if token in ends), None)
    ids, given = row[:end], len(row) if end is None else end + 1
    text = decode(tokenizer, ids)
    if END in text:
        return Opening(tuple(ids), logprobs=None if logprobs is None else tuple(logprobs[: len(ids)]), generated=given)
    kept, rest = _without_trailing_blanks(tokenizer, ids, text)
    closing = (*_encode(tokenizer, rest), *_encode(tokenizer, INSERTED))
    return Opening(
        (*ids[:kept], *closing),
        (kept, kept + len(closing)),
        forced_close=True,
        logprobs=None if logprobs is None else (*logprobs[:kept], *[0.0] * len(closing)),
        generated=given,
    )


def joined_ids(tokenizer: Any, opening: Sequence[int], second: Sequence[int]) -> str:
    """`joined` of what the ids say; a character whose bytes the first request only began is whole."""
    whole, before = decode(tokenizer, [*opening, *second]), decode(tokenizer, opening)
    if not whole.startswith(before):
        before = before.rstrip("\ufffd")
    return joined(before, whole[len(before) :])


def decode(tokenizer: Any, ids: Sequence[int]) -> str:
    """Text without special tokens, but with the marks of thinking also where a tokenizer calls them special."""
    special = _special_tokens(tokenizer)
    if not {START, END} & set(special.values()):
        return tokenizer.decode(list(ids), skip_special_tokens=True)
    shown = [i for i in ids if special.get(i, START) in (START, END)]
    return tokenizer.decode(shown, skip_special_tokens=False)


def _special_tokens(tokenizer: Any) -> dict[int, str]:
    """Of the tokens that were added to a tokenizer, those that it calls special; none where it does not tell."""
    try:
        added = tokenizer.added_tokens_decoder
    except (AttributeError, NotImplementedError):
        return {}
    return {i: str(token) for i, token in added.items() if token.special}


def _without_trailing_blanks(tokenizer: Any, ids: Sequence[int], text: str) -> tuple[int, str]:
    """How many ids stay, and what must follow them so that they say `text` without its trailing blanks."""
    wanted, kept, said = text.rstrip(), len(ids), text
    while not wanted.startswith(said):
        kept -= 1
        said = decode(tokenizer, ids[:kept])
    return kept, wanted[len(said) :]


def _encode(tokenizer: Any, text: str) -> list[int]:
    """The ids of `text` in the middle of a text: some tokenizers put a blank before whatever comes first."""
    for anchor in _ANCHORS if text else ():
        before = tokenizer.encode(anchor, add_special_tokens=False)
        both = tokenizer.encode(anchor + text, add_special_tokens=False)
        if both[: len(before)] == before and decode(tokenizer, both) == anchor + text:
            return both[len(before) :]
    return tokenizer.encode(text, add_special_tokens=False)

"""What agents read out of a model's reply, whatever their protocol. Any object with `text` and `finish` will do."""

from __future__ import annotations

from typing import Protocol

_OPEN, _CLOSE = "<think>", "</think>"


class Said(Protocol):
    """The part of a `Reply` that agents look at."""

    @property
    def text(self) -> str:
        """What the model wrote, thinking included."""
        ...

    @property
    def finish(self) -> str:
        """`stop` if the model ended by itself, `length` if it was cut."""
        ...


def after_think(text: str) -> str:
    """What follows the last `</think>`, stripped; without one the whole text as it stands, as the released MemAgent,
    InfMem and ReMemR1 do."""
    return after_think_unstripped(text).strip() if _CLOSE in text else text


def after_think_unstripped(text: str) -> str:
    """What follows the last `</think>` as it stands, as the released MemReread does."""
    return text.rpartition(_CLOSE)[2]


def encodable(text: str) -> str:
    """The text with `?` for each half of a character, which no tokenizer takes; as long as before."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def ended(reply: Said) -> bool:
    """True if the model ended its reply by itself and wrote something after any thinking."""
    return reply.finish == "stop" and bool(after_think(reply.text).strip())


def closed(reply: Said) -> bool:
    """True unless thinking was begun and not closed, or an engine had to close it."""
    if getattr(reply, "forced_close", False):
        return False
    return _OPEN not in reply.text or reply.text.rfind(_CLOSE) > reply.text.rfind(_OPEN)

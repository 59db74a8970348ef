"""Words of a command line as values: one line for every mistake, the nearest name for an unknown option."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from .config import MIN_BUDGET, suggestion
from .errors import ConfigError


class Parser(argparse.ArgumentParser):
    """Options must be written in full; mistakes raise ConfigError, and an unknown option names the nearest."""

    def __init__(self, verb: str, **options: Any) -> None:
        super().__init__(
            prog=f"treeagent {verb}".strip(),
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=34, width=110),
            **options,
        )

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (`{self.prog} --help` shows what it takes)")

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """The parsed words."""
        known = [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]
        for name in (word.partition("=")[0] for word in words):
            if name == "--":
                break
            if name.startswith("--") and name not in known:
                raise ConfigError(f"unknown option {name}; {suggestion(name, known)}")
        return self.parse_args(words)


def budget(word: str) -> int:
    """A section budget in tokens from the command line."""
    try:
        value = int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number of tokens") from None
    if value < MIN_BUDGET:
        raise argparse.ArgumentTypeError(f"{value} tokens is too small; the least is {MIN_BUDGET}")
    return value


def named(word: str) -> str:
    """A name that is not empty."""
    if not word.strip():
        raise argparse.ArgumentTypeError("the name is empty")
    return word


def positive(word: str) -> int:
    """A whole number above 0."""
    if not word.isascii() or not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number above 0")
    return int(word)

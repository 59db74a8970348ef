"""Processes that must not outlive this one, however it ends: a killed program runs no clean-up, and what it leaves
behind holds the GPU against the run that takes up its work.

A small shell waits on a pipe from this process. If the pipe closes without a word, this process is gone.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

_WATCH = 'read -r word || { kill -TERM "$@"; sleep 10; kill -KILL "$@"; }'


class Guard:
    """Ends the processes `pids` soon after this process dies, unless released before."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._watch = subprocess.Popen(  # noqa: S603 - numbers alone are handed over
            ["/bin/sh", "-c", _WATCH, "guard", *map(str, pids)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # out of reach of what interrupts this one
        )

    def release(self) -> None:
        """Leaves the processes alone."""
        self._watch.communicate(b"released\n")

"""What every worker process does first: it ends with the process that began it."""

from __future__ import annotations

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """Watches the parent from a thread. One that was killed tells its workers nothing, and they would wait for work for
    ever."""
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

"""A real llama.cpp server with the demo model, in a process of its own, for tests of whoever talks to servers.

`serving()` starts it and ends it. Run as a program, it prints its address once it is ready and ends when its standard
input does, so that it never outlives who started it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

SLOTS = 4
SLOT_TOKENS = 2048
NAME = "smollm2"


@contextmanager
def serving(model: str) -> Iterator[str]:
    """The base URL of a server of the GGUF file `model`, as long as the block lasts: 4 slots of 2,048 tokens."""
    command = [sys.executable, __file__, model]
    quiet = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=quiet
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = next((line for line in process.stdout if line.startswith("http")), "")
            assert address, "the llama.cpp server did not start"
            yield address.strip() + "/v1"
        finally:
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def main() -> None:
    """Serves until standard input ends."""
    xllamacpp: Any = import_module("xllamacpp")  # a compiled module without types

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.model_alias = {NAME}
    params.port, params.n_ctx, params.n_parallel = 0, SLOTS * SLOT_TOKENS, SLOTS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    sys.stdout.flush()
    os._exit(0)  # the server's threads would keep the process


if __name__ == "__main__":
    main()

"""Processes that end with the one that guards them, unless it lets them go."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from treeagent.infer.engines.orphans import Guard

GUARDING = """
import sys
from treeagent.infer.engines.orphans import Guard
guard = Guard([int(sys.argv[1])])
print("guarding", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for nothing."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def test_a_guarded_process_ends_when_its_guard_is_killed(bystander: subprocess.Popen[bytes]) -> None:
    command = [sys.executable, "-c", GUARDING, str(bystander.pid)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"guarding\n"
        assert bystander.poll() is None
        process.kill()
    assert bystander.wait(30) == -signal.SIGTERM


def test_a_released_process_goes_on(bystander: subprocess.Popen[bytes]) -> None:
    Guard([bystander.pid]).release()
    assert bystander.poll() is None

"""Whether a process still runs: containers repeat the numbers of processes, and may repeat the names of machines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resources.responses import processes
from resources.responses.processes import Process
from tests.conftest import ROOT

TELL = """
import json, sys
from resources.responses.processes import Process
print(json.dumps(Process.this()), flush=True)
for line in sys.stdin:
    print(json.dumps(Process(*json.loads(line)).is_dead()), flush=True)
"""
IN_A_CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
"""Process numbers of its own, under the same name."""


class Other:
    """A process that tells which one it is, and what it knows of others."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self.process = Process(*json.loads(self._out.readline()))

    def takes_for_dead(self, process: Process) -> bool:
        print(json.dumps(process), file=self._in, flush=True)
        return bool(json.loads(self._out.readline()))


@contextmanager
def other(*prefix: str) -> Iterator[Other]:
    command = [*prefix, sys.executable, "-c", TELL]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Other(process)
        assert process.stdin is not None
        process.stdin.close()


def test_a_process_of_this_machine_is_alive_until_it_ends() -> None:
    with other() as one:
        assert not one.process.is_dead()
        assert not one.takes_for_dead(Process.this())
        found = one.process
    assert found.is_dead()


@pytest.fixture
def container() -> None:
    """Skips where no namespace may be made."""
    if (
        shutil.which("unshare") is None
        or subprocess.run([*IN_A_CONTAINER, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no process namespace may be made here")


@pytest.mark.usefixtures("container")
def test_a_process_in_a_container_of_the_same_name_is_not_taken_for_dead() -> None:
    """Number 1 of a container is another process here, and the numbers of processes here are not there."""
    with other(*IN_A_CONTAINER) as one:
        assert one.process.pid == 1
        assert one.process.machine.split()[0] == Process.this().machine.split()[0]
        assert not one.process.is_dead()
        assert not one.takes_for_dead(Process.this())


@pytest.mark.skipif(sys.platform != "linux", reason="containers are Linux's")
def test_a_container_that_hides_what_tells_it_apart_is_like_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that share the network of their host have the same card; with the same name they took each other's processes for dead."""
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    mine = Process.this()
    monkeypatch.setattr(processes, "_HIDDEN", "another")
    assert Process(mine.machine, os.getpid() + 2**22, None).is_dead() is False
    assert Process.this().machine.split()[:2] == mine.machine.split()[:2]

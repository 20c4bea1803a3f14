"""Programs that do what no answer should are stopped, at every level that this machine has, and leave nothing behind."""

from __future__ import annotations

import functools
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from dtef_pipeline.judging.code_checks import CheckResult, SandboxTask
from resources.sandbox.levels import LEVELS, can_change_user
from resources.sandbox.run import found_level, run_checks
from tests.conftest import ROOT
from tests.resources.sandbox.hostile import APART, HOSTILE_DEEDS, STRONG, Hostile
from tests.resources.sandbox.hostile_answers import HOSTILE_ANSWERS

HOSTILE = {**HOSTILE_DEEDS, **HOSTILE_ANSWERS}
LIMIT = 1.0
"""For those that may last until they are ended; the others get so long that a machine that is busy lets them finish."""
LONG_LIMIT = 60.0
PATIENCE = 20.0
"""Seconds beyond the limit that a machine that is busy may take for starting and ending processes."""
AT_ONCE = 6
CASES = [(level, name) for level in LEVELS for name, case in HOSTILE.items() if level in case.stopped_at]
FORKS = ("fork bomb", "daemon by a double fork")
PLACES = ("/usr/lib", "/root", "/etc", "/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock", "/")


def needed(level: str) -> str:
    """The level; where this machine does not have it the test is skipped with the reason."""
    found = found_level(level, trust_answers=True)
    if found.level is None:
        pytest.skip(f"sandbox: {found.words}")
    return level


class Seen(NamedTuple):
    """What one hostile program came to, and did."""

    result: CheckResult
    connections: int
    datagrams: int
    processes: list[int]
    written: list[str]
    file: tuple[str, int, int]
    file_before: tuple[str, int, int]
    grown_mb: int
    """How much memory this process took at most beyond what it had, while all the programs of a level ran."""


class Outside:
    """What a hostile program may reach for: a port, a folder that everybody may write to, a file in it, a mark of its own."""

    def __init__(self) -> None:
        self.mark = f"{os.getpid()}.{time.monotonic_ns() % 10**9 + 10**9}"
        self.folder = Path("/var/tmp") / f"dtef-hostile-{self.mark}"
        self.folder.mkdir()
        self.folder.chmod(0o777)
        self.file = self.folder / "file"
        self.file.write_text("as it was", encoding="utf-8")
        self.file.chmod(0o666)
        self.before = self.state()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.local = socket.socket(socket.AF_UNIX)
        self.local.bind(str(self.folder / "socket"))
        (self.folder / "socket").chmod(0o777)
        self.local.listen()
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))

    def state(self) -> tuple[str, int, int]:
        if not self.file.exists():
            return ("deleted", 0, 0)
        found = self.file.stat()
        return self.file.read_text(encoding="utf-8"), found.st_mode, found.st_mtime_ns

    def task(self, case: Hostile) -> SandboxTask:
        ports = {"TCP_PORT": str(self.server.getsockname()[1]), "UDP_PORT": str(self.udp.getsockname()[1])}
        program = case.program
        for word, value in {
            "UNIQUE": self.mark,
            "FOLDER": str(self.folder),
            "FILE": str(self.file),
            "CHECKOUT": str(ROOT),
            **ports,
        }.items():
            program = program.replace(word, value)
        return SandboxTask(program, "f", case.tests)

    def seen(self, result: CheckResult, level: str, grown_mb: int) -> Seen:
        gone(self.mark)
        left = [path for place in (*PLACES, self.folder) if os.path.lexists(path := Path(place) / self.mark)]
        written = [str(path) for path in left if level in APART or path.stat().st_size]
        found = Seen(
            result,
            arrived(self.server.accept, self.server) + arrived(self.local.accept, self.local),
            arrived(lambda: self.udp.recv(9), self.udp),
            processes_with(self.mark),
            written,
            self.state(),
            self.before,
            grown_mb,
        )
        for path in left:
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        shutil.rmtree(self.folder)
        self.server.close()
        self.local.close()
        self.udp.close()
        return found


def arrived(take: Callable[[], object], listening: socket.socket) -> int:
    listening.setblocking(False)
    try:
        take()
    except BlockingIOError:
        return 0
    return 1


@functools.cache
def all_seen(level: str) -> dict[str, Seen]:
    """What the programs that a level stops did at it, several at once: most wait for their limit."""
    root_alone = os.geteuid() == 0 and not can_change_user()
    names = [name for at, name in CASES if at == level and not (root_alone and level == "rlimits" and name in FORKS)]
    outsides = {name: Outside() for name in names}
    seen = {}
    for limit in (LIMIT, LONG_LIMIT):
        some = [name for name in names if ("timeout" in HOSTILE[name].status) == (limit == LIMIT)]
        tasks = [outsides[name].task(HOSTILE[name]) for name in some]
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        before = own_memory_mb("VmRSS")
        results = list(run_checks(tasks, level=level, timeout_s=limit, trust_answers=True, workers=AT_ONCE))
        grown = own_memory_mb("VmHWM") - before
        seen |= {name: outsides[name].seen(result, level, grown) for name, result in zip(some, results, strict=True)}
    return seen


def own_memory_mb(which: str) -> int:
    """Of this process, in MB. Writing 5 to `clear_refs` begins its peak anew."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(which))


def processes_with(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def gone(mark: str, patience: float = PATIENCE) -> bool:
    end = time.monotonic() + patience
    while processes_with(mark):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize(("level", "name"), CASES)
def test_a_hostile_program_is_stopped(level: str, name: str) -> None:
    if level == "rlimits" and name in FORKS and os.geteuid() == 0 and not can_change_user():
        pytest.skip("at the level rlimits the processes of a root that may not change its user are not limited")
    seen = all_seen(needed(level))[name]
    assert seen.result.status in HOSTILE[name].status, seen.result
    assert seen.result.seconds < LIMIT + PATIENCE or seen.result.status != "timeout"
    assert seen.result.flags == (() if level in STRONG else ("weak_isolation",))
    assert (seen.connections, seen.datagrams) == (0, 0)
    assert seen.processes == []
    assert seen.written == []
    assert seen.file == seen.file_before
    assert seen.grown_mb < 200


@pytest.mark.parametrize("level", LEVELS)
def test_programs_that_do_not_end_are_ended_in_time(level: str) -> None:
    endless = [name for name, case in HOSTILE.items() if name.startswith("endless")]
    task = [SandboxTask(HOSTILE[name].program, "f", HOSTILE[name].tests) for name in endless]
    task.append(SandboxTask("import time\ndef f():\n    time.sleep(60)\n", "f", HOSTILE["endless loop"].tests))
    needed(level)
    began = time.monotonic()
    results = list(run_checks(task, level=level, timeout_s=0.5, trust_answers=True, workers=len(task)))
    assert time.monotonic() - began < 0.5 + PATIENCE
    assert {result.status for result in results} == {"timeout"}
    # How long a program had the processor tells one that is late by itself from one that waits.
    *busy, asleep = (result.cpu_seconds for result in results)
    assert 0 < sum(busy) / len(busy) < 0.5 + PATIENCE
    assert asleep < 0.1


SEES_KEYS = """
import glob, os
def f():
    seen = repr(dict(os.environ))
    for path in ["/proc/%d/environ" % os.getppid(), *glob.glob("/proc/[0-9]*/environ")]:
        try:
            seen += open(path, "rb").read().decode("latin-1")
        except OSError:
            pass
    return "read" if "planted-" + "key" in seen else "kept"
"""
OUTLIVES = """
import os
def f():
    for number in range(3, 64):
        try:
            os.set_inheritable(number, True)
        except OSError:
            pass
    os.execv("/usr/bin/sleep", ["sleep", "UNIQUE"])
"""
RUNS = """
import sys
from dtef_pipeline.judging.code_checks import SandboxTask
from resources.sandbox.run import run_checks
program, level, timeout = sys.argv[1], sys.argv[2], float(sys.argv[3])
task = SandboxTask(program, "f", "def check(candidate):\\n    assert candidate() == 'kept'\\n")
print("started", flush=True)
for result in run_checks([task] * 2, level=level, timeout_s=timeout, trust_answers=True):
    print(result.status, result.detail, flush=True)
"""


@pytest.mark.parametrize("level", LEVELS)
def test_keys_in_the_environment_are_not_seen(level: str) -> None:
    needed(level)
    if level == "rlimits" and not can_change_user():
        pytest.skip("at the level rlimits a program of the same user sees the environment")
    done = subprocess.run(
        [sys.executable, "-c", RUNS, SEES_KEYS, level, "30"],
        env={**os.environ, "ANY_API_KEY": "planted-key"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["started", "passed", "passed"]


@pytest.mark.parametrize("level", LEVELS)
def test_nobody_is_left_when_the_parent_is_killed(level: str) -> None:
    needed(level)
    mark = f"{os.getpid()}.{time.monotonic_ns() % 10**9 + 10**9}"
    program = OUTLIVES.replace("UNIQUE", mark)
    parent = subprocess.Popen([sys.executable, "-c", RUNS, program, level, "300"], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        end = time.monotonic() + 60
        while len(processes_with(mark)) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        assert len(processes_with(mark)) == 2
    finally:
        parent.kill()
        parent.communicate()
    assert gone(mark), f"left behind: {processes_with(mark)}"

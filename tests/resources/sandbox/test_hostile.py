"""Programs that do what no answer should are stopped, at every level that this machine has, and leave nothing behind."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtef_pipeline.judging.code_checks import CheckResult, SandboxTask
from resources.sandbox.levels import LEVELS
from resources.sandbox.run import choose_level, run_checks
from tests.conftest import ROOT
from tests.waiting import wait_until

HOSTILE = tomllib.loads(Path(__file__).with_name("hostile.toml").read_text(encoding="utf-8"))
DEEDS, PROGRAMS = HOSTILE["deeds"], HOSTILE["programs"]
LIMIT = 0.5
"""For those that may last until they are ended; the others get so long that a machine that is busy lets them finish."""
LONG_LIMIT = 60.0
PATIENCE = 20.0
"""Seconds beyond the limit that a machine that is busy may take for starting and ending processes."""
PLACES = ("/usr/lib", "/root", "/etc", "/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock", "/")
KEPT = "def check(candidate):\n    assert candidate() == 'kept'\n"
OTHERS_KEPT = """
def check(candidate):
    found = {name: candidate(name, source) for name, source in DEEDS.items()}
    done = {name: did for name, did in found.items() if did != "kept"}
    assert not done, done
"""
DOES = "def f(name, source):\n    space = {}\n    exec(source, space)\n    return space['f']()\n"


class Outside:
    """What a hostile program may reach for: a port, a folder that everybody may write to, a file in it, a mark of its own."""

    def __init__(self) -> None:
        self.mark = a_mark()
        self.folder = Path("/var/tmp") / f"dtef-hostile-{self.mark}"
        self.folder.mkdir()
        self.folder.chmod(0o777)
        self.file = self.folder / "file"
        self.file.write_text("as it was", encoding="utf-8")
        self.file.chmod(0o666)
        self.before = self.state()
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.local = socket.socket(socket.AF_UNIX)
        self.local.bind(str(self.folder / "socket"))
        (self.folder / "socket").chmod(0o777)
        self.local.listen()
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))

    def state(self) -> tuple[str, int, int]:
        found = self.file.stat()
        return self.file.read_text(encoding="utf-8"), found.st_mode, found.st_mtime_ns

    def aimed(self, program: str) -> str:
        """The program with what it reaches for in place of the words in capitals."""
        ports = {"TCP_PORT": str(self.tcp.getsockname()[1]), "UDP_PORT": str(self.udp.getsockname()[1])}
        places = {"UNIQUE": self.mark, "FOLDER": str(self.folder), "FILE": str(self.file), "CHECKOUT": str(ROOT)}
        for word, value in {**places, **ports}.items():
            program = program.replace(word, value)
        return program

    def arrived(self) -> list[str]:
        """What came in from a program."""
        found = []
        for name, listening in (("tcp", self.tcp), ("local", self.local), ("udp", self.udp)):
            listening.setblocking(False)
            try:
                listening.recv(9) if name == "udp" else listening.accept()[0].close()
            except BlockingIOError:
                continue
            found.append(name)
        return found

    def left(self) -> list[Path]:
        """What a program left behind."""
        return [path for place in (*PLACES, self.folder) if os.path.lexists(path := Path(place) / self.mark)]

    def close(self) -> None:
        for listening in (self.tcp, self.local, self.udp):
            listening.close()
        shutil.rmtree(self.folder)
        for path in self.left():
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


@pytest.fixture(scope="module", params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    """Each level; where this machine does not have it the test is skipped with the reason."""
    found = choose_level(request.param)
    if found.level is None:
        pytest.skip(f"sandbox: {found.words}")
    return found.level


@pytest.fixture(scope="module")
def outside(level: str) -> Iterator[Outside]:
    """Another one for each level."""
    assert level
    made = Outside()
    yield made
    made.close()


@pytest.fixture(scope="module")
def grown() -> list[float]:
    """How much memory this process took at most beyond what it had, in MB."""
    return []


@pytest.fixture(scope="module")
def results(level: str, outside: Outside, grown: list[float]) -> dict[str, CheckResult]:
    """What came of everything hostile at a level. All deeds are done by one program; several run at once: most wait for their limit."""
    deeds = {name: outside.aimed(source) for name, source in DEEDS.items()}
    tasks = {"deeds": SandboxTask(DOES, "f", f"DEEDS = {deeds!r}\n{OTHERS_KEPT}")}
    tasks |= {name: SandboxTask(outside.aimed(one["program"]), "f", KEPT) for name, one in PROGRAMS.items()}
    found: dict[str, CheckResult] = {}
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # its peak begins anew
    before = own_memory_mb("VmRSS")
    for limit in (LIMIT, LONG_LIMIT):
        some = [name for name in tasks if (name in PROGRAMS and "timeout" in PROGRAMS[name]["may_end"]) == (limit == LIMIT)]
        came = run_checks([tasks[name] for name in some], level=level, timeout_s=limit, workers=6)
        found |= dict(zip(some, came, strict=True))
    grown.append(own_memory_mb("VmHWM") - before)
    return found


def own_memory_mb(which: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(which))


def a_mark() -> str:
    """An argument of `sleep` that no other process has."""
    return f"{os.getpid()}.{time.monotonic_ns() % 10**9 + 10**9}"


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


def test_hostile_programs_are_stopped(results: dict[str, CheckResult], level: str) -> None:
    assert results["deeds"].status == "passed", results["deeds"]
    wrong = {name: one for name, one in results.items() if name != "deeds" and one.status not in PROGRAMS[name]["may_end"]}
    assert wrong == {}
    assert all(one.seconds < LIMIT + PATIENCE for one in results.values() if one.status == "timeout")
    # How long a program had the processor tells one that is late by itself from one that waits.
    assert 0 < results["endless loop"].cpu_seconds < LIMIT + PATIENCE
    assert results["asleep"].cpu_seconds < 0.1


@pytest.mark.usefixtures("results")
def test_they_leave_nothing_behind(level: str, outside: Outside, grown: list[float]) -> None:
    assert wait_until(lambda: not processes_with(outside.mark), PATIENCE)
    assert grown[-1] < 200
    assert outside.left() == []
    assert outside.state() == outside.before
    assert outside.arrived() == []


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
level, *programs = sys.argv[1:]
tasks = [SandboxTask(program, "f", "def check(candidate):\\n    assert candidate() == 'kept'\\n") for program in programs]
for result in run_checks(tasks, level=level, timeout_s=300, workers=1):
    print(result.status, flush=True)
"""


def test_keys_in_the_environment_are_not_seen_and_nobody_is_left_when_the_parent_is_killed(level: str) -> None:
    mark = a_mark()
    parent = subprocess.Popen(
        [sys.executable, "-c", RUNS, level, SEES_KEYS, OUTLIVES.replace("UNIQUE", mark)],
        env={**os.environ, "ANY_API_KEY": "planted-key"},
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"passed\n"
        assert wait_until(lambda: len(processes_with(mark)) == 1)
    finally:
        parent.kill()
        parent.communicate()
    assert wait_until(lambda: not processes_with(mark), PATIENCE)

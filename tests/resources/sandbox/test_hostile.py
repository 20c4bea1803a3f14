"""Programs that do what no answer should are stopped, at every level that this machine has, and leave nothing behind."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtef_pipeline.judging.code_checks import CheckResult, SandboxTask
from resources.sandbox.levels import LEVELS
from resources.sandbox.run import found_level, run_checks
from tests.conftest import ROOT
from tests.resources.sandbox.hostile import HOSTILE, STRONG, Hostile

LIMIT = 1.5
PATIENCE = 20.0
"""Seconds beyond the limit that a machine that is busy may take for starting and ending processes."""


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    """Each level; one that this machine does not have is skipped with the reason."""
    found = found_level(request.param, trust_answers=True)
    if found.level is None:
        pytest.skip(f"sandbox: {found.words}")
    return str(request.param)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that everybody may write to, below folders that everybody may look into."""
    made = Path("/var/tmp") / f"dtef-hostile-{os.getpid()}-{time.monotonic_ns()}"
    made.mkdir()
    made.chmod(0o777)
    yield made
    shutil.rmtree(made)


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


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_program_is_stopped(name: str, level: str, folder: Path) -> None:
    case = HOSTILE[name]
    if level not in case.stopped_at:
        pytest.skip(f"the level {level} is not made to stop: {name}")
    file = folder / "file"
    file.write_text("as it was", encoding="utf-8")
    file.chmod(0o666)
    was = file.stat()
    mark = f"{os.getpid()}.{time.monotonic_ns() % 10**9 + 10**9}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        port = server.getsockname()[1]
        datagrams.bind(("127.0.0.1", port))
        result, wall = checked(case, level, UNIQUE=mark, PORT=str(port), FOLDER=str(folder), FILE=str(file))
        for listening in (server, datagrams):
            listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
        with pytest.raises(BlockingIOError):
            datagrams.recv(10)
    assert result.status in case.status, result
    assert wall < LIMIT + PATIENCE
    assert gone(mark), f"left behind: {processes_with(mark)}"
    left = [Path(place) / mark for place in ("/usr/lib", "/root", "/etc", "/tmp", "/var/tmp", "/dev/shm", "/", folder)]
    assert [str(path) for path in left if path.exists() and (level in STRONG or path.stat().st_size)] == []
    for path in left:
        path.unlink(missing_ok=True)
    assert file.read_text(encoding="utf-8") == "as it was"
    assert (file.stat().st_mode, file.stat().st_mtime_ns) == (was.st_mode, was.st_mtime_ns)


def checked(case: Hostile, level: str, **words: str) -> tuple[CheckResult, float]:
    program = case.program
    for word, value in words.items():
        program = program.replace(word, value)
    began = time.monotonic()
    (result,) = run_checks([SandboxTask(program, "f", case.tests)], level=level, timeout_s=LIMIT, trust_answers=True)
    return result, time.monotonic() - began


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


def test_keys_in_the_environment_are_not_seen(level: str) -> None:
    if level == "rlimits" and os.geteuid() != 0:
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


def test_nobody_is_left_when_the_parent_is_killed(level: str) -> None:
    mark = f"{os.getpid()}.{time.monotonic_ns() % 10**9 + 10**9}"
    program = f"import os\ndef f():\n    os.execv('/usr/bin/sleep', ['sleep', '{mark}'])\n"
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

"""Checks of programs at the machine's best level, as many at once as it has cores."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from dtef_pipeline.cores import cores
from dtef_pipeline.judging.code_checks import CheckResult, SandboxTask
from resources.sandbox.check import NotStarted, check, check_once
from resources.sandbox.levels import (
    LEVELS,
    Interpreter,
    StartWay,
    can_change_user,
    find_interpreter,
    find_sandlock_problem,
    list_ways,
    open_complaints_file,
)
from resources.settings import Settings

CHECK_TIMEOUT = 10.0
"""Maximum seconds of a whole check."""
_LATE_BY_ITSELF = 0.9
"""Share of its time that a program must have used the processor for, so that it is late through its own fault."""
_TRIAL_PROGRAM = """
import os
def tried(path):
    try:
        open(path).close()
        readable = True
    except OSError:
        readable = False
    return os.getuid() != 0 or MAY_BE_ROOT, readable
"""
_TRIAL_TESTS = """
def check(candidate):
    ordinary_user, readable = candidate("/etc/passwd")
    assert ordinary_user, "it runs as root"
    assert not readable, "files can be read"
"""


@dataclass(frozen=True, slots=True)
class SandboxLevel:
    """The level at which programs are checked, and why no better one."""

    level: str | None
    """The level; None: none is usable, and programs are not checked."""
    reasons: Mapping[str, str]
    """Why each better level is not used, or each level if none is usable."""

    @property
    def words(self) -> str:
        """A one-line description."""
        reasons = "; ".join(f"no {level}: {reason}" for level, reason in self.reasons.items())
        return f"{self.level or 'none'}{f' ({reasons})' if reasons else ''}"


def choose_level(level: str | None = None) -> SandboxLevel:
    """Return the level that `auto` or a requested level resolves to here; None means `DTEF_SANDBOX`. Raises ConfigError for an unknown
    level.

    A level is usable if a program has been run at it; this is tried once per process.
    """
    wish = level or Settings.read_environment().sandbox
    if wish == "off":
        return SandboxLevel(None, {"sandbox": "DTEF_SANDBOX is off"})
    reasons: dict[str, str] = {}
    for name in LEVELS if wish == "auto" else (wish,):
        method = find_usable_way(name)
        if isinstance(method, StartWay):
            return SandboxLevel(name, reasons)
        reasons[name] = method
    return SandboxLevel(None, reasons)


def run_checks(
    tasks: Sequence[SandboxTask],
    *,
    level: str | None = None,
    timeout_s: float = CHECK_TIMEOUT,
    workers: int | None = None,
) -> Iterator[CheckResult]:
    """Yield the result of each program, in order, as soon as it is known.

    `level`: as for `choose_level`. `timeout_s`: seconds of wall time for one whole check. `workers`: how many checks run at once; None for
    one per core. Without a usable level every result is `sandbox_unavailable`.
    """
    choice = choose_level(level)
    method = find_usable_way(choice.level) if choice.level else None
    if not isinstance(method, StartWay):
        yield from (CheckResult("sandbox_unavailable", f"sandbox: {choice.words}"[:300]) for _ in tasks)
        return
    python = _interpreter()
    with ThreadPoolExecutor(workers or cores(), thread_name_prefix="check") as pool:
        yield from pool.map(lambda task: check(task, method, python, timeout_s), tasks)


def run_checks_twice(
    tasks: Mapping[str, SandboxTask], *, level: str | None = None, timeout_s: float = CHECK_TIMEOUT
) -> Iterator[tuple[str, CheckResult | None]]:
    """Yield the results of `run_checks` by key; a program that times out while it waits is run once more, with no check beside it.

    Such a program, which lacked the processor for more than a tenth of its time, comes twice: with None, and, after all others, with its
    second result, which no other check has slowed.
    """
    late: dict[str, SandboxTask] = {}
    results = run_checks(list(tasks.values()), level=level, timeout_s=timeout_s)
    for key, result in zip(tasks, results, strict=True):
        if result.status == "timeout" and result.cpu_seconds < _LATE_BY_ITSELF * timeout_s:
            late[key] = tasks[key]
        yield key, None if key in late else result
    repeats = run_checks(list(late.values()), level=level, timeout_s=timeout_s, workers=1)
    yield from zip(late, repeats, strict=True)


@functools.cache
def _interpreter() -> Interpreter:
    return find_interpreter()


@functools.cache
def find_usable_way(level: str) -> StartWay | str:
    """Return the first way of a level in which a program ran, or why there is none."""
    if os.name != "posix":
        return "this system has no means for it"
    if level == "sandlock" and (problem := find_sandlock_problem()):
        return problem
    reason = "its program is not installed"
    for method in list_ways(level, _interpreter()):
        reason = _try_way(method)
        if not reason:
            return method
    return reason


def _try_way(method: StartWay) -> str:
    """Return why a program cannot be run in a way, or "" if it runs and is isolated as promised."""
    task = SandboxTask(_TRIAL_PROGRAM.replace("MAY_BE_ROOT", str(not can_change_user())), "tried", _TRIAL_TESTS)
    with open_complaints_file() as complaints:
        try:
            result = check_once(task, method, _interpreter(), 30.0, complaints)
        except NotStarted as error:
            complaints.seek(0)
            lines = complaints.read(4000).decode("utf-8", "replace").strip().splitlines()
            return lines[-1][:200] if lines else str(error)
        except Exception as error:  # any error means that the level is not usable
            return f"{type(error).__name__}: {error}"[:200]
    return "" if result.status == "passed" else f"{result.status}: {result.detail}"

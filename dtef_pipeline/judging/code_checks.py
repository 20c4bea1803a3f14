"""Tasks and results of checks that run a program; the sandbox in `resources` runs them."""

from __future__ import annotations

from dataclasses import dataclass

PASSED_CHECK = "passed"
FAILED_CHECKS = ("assertion", "exception", "no_call", "syntax", "load", "empty", "crashed", "timeout")
"""Statuses that are the program's fault."""
UNDECIDED_CHECKS = ("sandbox_unavailable", "sandbox_error")
"""Statuses that are not the program's fault: it was not run, or not to its end."""
CHECK_STATUSES = (PASSED_CHECK, *FAILED_CHECKS, *UNDECIDED_CHECKS)


@dataclass(frozen=True, slots=True)
class SandboxTask:
    """One program, and the tests that check it by calling it."""

    program: str
    """Source that defines the function when it is run. It may do whatever it likes."""
    entry_point: str
    """Name of the function."""
    tests: str
    """Source that defines `check(candidate)`, which calls the function and asserts."""
    helpers: str = ""
    """Source that runs before the tests, with other definitions that they use."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of checking one program."""

    status: str
    """One of CHECK_STATUSES. `passed`: the tests called the function at least once, and all held."""
    detail: str = ""
    """The status in words: the error that ended the check, or why the program did not run; at most 300 characters."""
    level: str | None = None
    """Isolation of the program: `sandlock` or `bwrap`; None: it was not run."""
    python: str | None = None
    """Version of the interpreter that ran it."""
    seconds: float = 0.0
    """Seconds from the moment both processes were ready to the verdict."""
    calls: int = 0
    """How often the tests called the function."""
    cpu_seconds: float = 0.0
    """For a `timeout`: processor seconds that the program used; 0: it was waiting, or the time is unknown."""

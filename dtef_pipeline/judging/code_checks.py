"""Tasks and results of checks that run a program; the sandbox in `resources` runs them."""

from __future__ import annotations

from dataclasses import dataclass

PASSED_CHECK = "passed"
FAILED_CHECKS = ("assertion", "exception", "no_call", "syntax", "load", "empty", "crashed", "timeout")
"""What a program itself is at fault for."""
UNDECIDED_CHECKS = ("sandbox_unavailable", "sandbox_error")
"""What no program is at fault for: it was not run, or not to its end."""
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
    """Source that is run before the tests: what else they use."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of checking one program."""

    status: str
    """One of CHECK_STATUSES. `passed`: the tests called the function at least once, and all held."""
    detail: str = ""
    """The status in words: the error that ended the check, or why there was none; at most 300 characters."""
    level: str | None = None
    """How the program was kept apart: `sandlock`, `bwrap`, `unshare` or `rlimits`; None: it was not run."""
    python: str | None = None
    """Version of the interpreter that ran it."""
    seconds: float = 0.0
    """Seconds from the moment both processes were ready to the verdict."""
    calls: int = 0
    """How often the tests called the function."""
    flags: tuple[str, ...] = ()
    """`weak_isolation`: at this level a program could read files of this machine."""
    cpu_seconds: float = 0.0
    """Of a `timeout`: seconds for which the program had the processor; 0: it waited for something else, or that is not known."""

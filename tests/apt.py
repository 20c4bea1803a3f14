"""Programs that some tests need and apt may install: once for all processes that run tests, without questions, never for long."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

# Together below pytest's time limit for a test, which would end the whole run.
UPDATE_TIMEOUT_S = 60
INSTALL_TIMEOUT_S = 180
LOCK_TIMEOUT_S = 300
_OPTIONS = ["-qq", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=1", "-o", "DPkg::Lock::Timeout=60"]
_TEMPORARY = Path(tempfile.gettempdir())
_T = TypeVar("_T")


class NotInstalled(Exception):
    """The programs are not here; the message says why."""


def found_or_installed(find: Callable[[], _T | None], package: str) -> _T:
    """What `find` finds, if need be after the package was installed. Raises NotInstalled."""
    if (found := find()) is not None:
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NotInstalled(f"no {package} here, and no apt-get as root to install it with")
    try:
        # One of the processes that run tests at once installs, the others wait and find it done, or failed.
        with FileLock(_TEMPORARY / "dtef-apt.lock", timeout=LOCK_TIMEOUT_S):
            if (found := find()) is None:
                _install_once(package)
                found = find()
    except Timeout:
        raise NotInstalled(f"no {package} here, and others kept apt-get busy for {LOCK_TIMEOUT_S} s") from None
    if found is None:
        raise NotInstalled(f"apt-get installed {package}, but its programs are nowhere to be found")
    return found


def _install_once(package: str) -> None:
    """What failed for one process of this test run is not tried again by the next."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    failed = _TEMPORARY / f"dtef-apt-{package}-{run}.failed"
    if failed.exists():
        raise NotInstalled(failed.read_text(encoding="utf-8"))
    try:
        _apt("update", timeout=UPDATE_TIMEOUT_S)
        _apt("install", "-y", "--no-install-recommends", package, timeout=INSTALL_TIMEOUT_S)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = (error.stderr or b"").decode(errors="replace").strip().splitlines()[-1:]
        why = f"no {package} here, and apt-get {error.cmd[1]} failed: {' '.join(said) or error}"
        failed.write_text(why, encoding="utf-8")
        raise NotInstalled(why) from None


def _apt(step: str, *arguments: str, timeout: float) -> None:
    subprocess.run(
        ["apt-get", step, *_OPTIONS, *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=timeout,
    )

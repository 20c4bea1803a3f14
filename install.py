"""What `make setup` does: .venv with exactly the packages of requirements.lock, and how far it is.

It runs before any package is there, so it needs Python's own library alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

HERE = Path(__file__).resolve().parent
VENV, LOCK = HERE / ".venv", HERE / "requirements.lock"
PIP = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-deps"]
# Python compiles a module when it is first imported. Compiling all of them here takes as long as unpacking them, and most are never imported.
PIP += ["--no-compile"]
_WIDTH = 30
SAID_EVERY = 15.0
"""Seconds between two lines where there is no terminal."""


class Progress:
    """A bar with the time left on a terminal; elsewhere a line now and then."""

    def __init__(self, what: str, total: int, out: TextIO) -> None:
        self._what, self._total, self._out = what, total, out
        self._began = self._said = time.monotonic()

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        line = f"{self._what} {done} of {self._total} packages{self._left(done, now - self._began)}"
        if self._out.isatty():
            filled = _WIDTH * done // max(1, self._total)
            self._out.write(f"\r[{'#' * filled}{'.' * (_WIDTH - filled)}] {line:<60}")
            self._out.flush()
        elif now - self._said >= SAID_EVERY:
            self._said = now
            print(line, file=self._out, flush=True)

    def _left(self, done: int, seconds: float) -> str:
        if not 0 < done < self._total or seconds < 3:
            return ""
        return f", {seconds * (self._total - done) / done:.0f} s left"

    def close(self) -> None:
        if self._out.isatty():
            self._out.write("\r" + " " * (_WIDTH + 64) + "\r")
            self._out.flush()


def expected(lock: str) -> int:
    """The packages of a lock file."""
    return len(re.findall(r"^[\w.-]+(?:\[[^]]*\])?==", lock, re.MULTILINE))


def found(lines: Iterable[str]) -> Iterator[int]:
    """How many packages pip has looked at, by what it prints; those that are not for this system count too."""
    number = 0
    for line in lines:
        if line.startswith(("Collecting ", "Ignoring ", "Requirement already satisfied")):
            number += 1
            yield number
        elif line.startswith("Installing collected packages"):
            return


def unpacked() -> int:
    return sum(1 for _ in VENV.glob("lib/python*/site-packages/*.dist-info"))


def install() -> int:
    """pip's exit code."""
    total = expected(LOCK.read_text(encoding="utf-8"))
    command = [*PIP, "--require-hashes", "--progress-bar", "off", "--requirement", str(LOCK)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as pip:  # noqa: S603 - our own interpreter and arguments
        assert pip.stdout is not None
        finding = Progress("fetched", total, sys.stdout)
        for number in found(pip.stdout):
            finding(number)
        finding.close()
        # What it prints from here on is its list of packages; a pipe that nobody reads would stop it.
        threading.Thread(target=pip.stdout.read, daemon=True).start()
        unpacking = Progress("installed", total, sys.stdout)
        while pip.poll() is None:
            unpacking(unpacked())
            time.sleep(0.5)
        unpacking.close()
    return pip.returncode


def main() -> int:
    began = time.monotonic()
    total = expected(LOCK.read_text(encoding="utf-8"))
    print(f"Setting up {VENV.name}: {total} packages, about a minute (longer when they have to be downloaded)", flush=True)
    venv.create(VENV, clear=True, with_pip=True)
    if code := install():
        return code
    own = [*PIP, "--quiet", "--no-build-isolation", "--editable", str(HERE)]
    if code := subprocess.call(own):  # noqa: S603 - our own interpreter and arguments
        return code
    print(f"{VENV.name} is ready, {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

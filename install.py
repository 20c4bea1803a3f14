"""What `make setup` does: .venv with exactly the packages of requirements.lock, and how far it is.

Without an argument, a new .venv with what the pipeline needs to run, which is enough for the demo; with `--all`, the rest into it: what
tests and servers need. `--lock EXTRA ...` prints the part of the lock file that the pipeline needs with these extras, and installs nothing.
It runs before any package is there, so it needs Python's own library alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
import tomllib
import venv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

HERE = Path(__file__).resolve().parent
VENV, LOCK = HERE / ".venv", HERE / "requirements.lock"
PIP = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-deps"]
# Python compiles a module when it is first imported. Compiling all of them here takes as long as unpacking them, and most are never imported.
PIP += ["--no-compile"]
# What commands import is compiled at the end: where Python may keep no bytecode, each of them would compile it again, for seconds.
IMPORTED = "import assets.definitions, assets.launch, dtef_pipeline.cli.read, dtef_pipeline.cli.survey.survey_run"
_WIDTH = 30
FETCHED, INSTALLED = "fetched", "installed"
SAID_EVERY = 15.0
"""Seconds between two lines where there is no terminal."""


class Progress:
    """A bar with the time left on a terminal; elsewhere a line now and then. Every package is fetched, then every one is installed."""

    def __init__(self, total: int, out: TextIO) -> None:
        self._total, self._out = total, out
        self._began = self._said = time.monotonic()

    def __call__(self, what: str, done: int) -> None:
        """`what`: fetched or installed, of all packages."""
        now = time.monotonic()
        steps = done + (self._total if what == INSTALLED else 0)
        line = f"{what} {done} of {self._total} packages{self._left(steps, now - self._began)}"
        if self._out.isatty():
            filled = min(_WIDTH, _WIDTH * steps // max(1, 2 * self._total))
            self._out.write(f"\r[{'#' * filled}{'.' * (_WIDTH - filled)}] {line:<60}")
            self._out.flush()
        elif now - self._said >= SAID_EVERY:
            self._said = now
            print(line, file=self._out, flush=True)

    def _left(self, steps: int, seconds: float) -> str:
        """Of both halves: that of one alone was over when the other began anew."""
        if not 0 < steps < 2 * self._total or seconds < 3:
            return ""
        return f", about {seconds * (2 * self._total - steps) / steps:.0f} s left"

    def close(self) -> None:
        if self._out.isatty():
            self._out.write("\r" + " " * (_WIDTH + 64) + "\r")
            self._out.flush()


def expected(lock: str) -> int:
    """The packages of a lock file."""
    return len(re.findall(r"^[\w.-]+(?:\[[^]]*\])?==", lock, re.MULTILINE))


def to_run(lock: str, project: Mapping[str, Any], extras: Sequence[str] = ("local",)) -> str:
    """The part of a lock file that the pipeline needs to run with these extras, the building of its own package included."""
    optional = project["project"]["optional-dependencies"]
    if unknown := [extra for extra in extras if extra not in optional]:
        raise SystemExit(f"no extra {', '.join(unknown)}; allowed: {', '.join(optional)}")
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"], "editables"]
    wanted += [requirement for extra in extras for requirement in optional[extra]]
    # A package may have several entries: one for each range of Python versions.
    entries = [entry for entry in re.split(r"^(?=[\w.-]+(?:\[[^]]*\])?==)", lock, flags=re.MULTILINE) if "==" in entry]
    needs = defaultdict(set)
    for entry in entries:
        # uv writes who needs a package below it: `# via a`, or one name per line after `# via`.
        for parent in re.findall(r"^    #(?: via)? +([\w.-]+)", entry, re.MULTILINE):
            needs[_name(parent)].add(_name(entry))
    kept, todo = set(), [_name(requirement) for requirement in wanted]
    while todo:
        if (name := todo.pop()) not in kept:
            kept.add(name)
            todo += needs[name]
    return "".join(entry for entry in entries if _name(entry) in kept)


def _name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


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


def install(lock: Path, total: int) -> int:
    """pip's exit code."""
    command = [*PIP, "--require-hashes", "--progress-bar", "off", "--requirement", str(lock)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as pip:  # noqa: S603 - our own interpreter and arguments
        assert pip.stdout is not None
        progress = Progress(total, sys.stdout)
        for number in found(pip.stdout):
            progress(FETCHED, number)
        # What it prints from here on is its list of packages; a pipe that nobody reads would stop it.
        threading.Thread(target=pip.stdout.read, daemon=True).start()
        while pip.poll() is None:
            progress(INSTALLED, unpacked())
            time.sleep(0.5)
        progress.close()
    return pip.returncode


def main(arguments: Sequence[str]) -> int:
    began, everything = time.monotonic(), "--all" in arguments
    lock, chosen = LOCK.read_text(encoding="utf-8"), LOCK
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    if arguments[:1] == ["--lock"]:
        print(to_run(lock, project, arguments[1:]), end="")
        return 0
    if not everything:
        lock = to_run(lock, project)
    total = expected(lock)
    which = "all packages" if everything else f"a new {VENV.name}"
    print(f"Setting up {which}: {total} packages, one to three minutes (longer over a slow network)", flush=True)
    if not everything:
        venv.create(VENV, clear=True, with_pip=True)
        chosen = VENV / "to-run.lock"
        chosen.write_text(lock, encoding="utf-8")
    if code := install(chosen, total):
        return code
    own = [*PIP, "--quiet", "--no-build-isolation", "--editable", str(HERE)]
    if code := subprocess.call(own):  # noqa: S603 - our own interpreter and arguments
        return code
    keeping = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if code := subprocess.call([PIP[0], "-c", IMPORTED], cwd=HERE, env=keeping):  # noqa: S603 - our own interpreter and modules
        return code
    print(f"{VENV.name} is ready, {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

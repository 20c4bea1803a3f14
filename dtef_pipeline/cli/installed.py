"""Whether what is installed is what the pipeline needs: Python, packages, the lock file of a checkout."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from dtef_pipeline.cli.findings import Diagnosis
from dtef_pipeline.text.counted import and_more
from resources.settings import shipped

_US = "dtef-pipeline"
_MAIN_PACKAGES = (_US, "dagster", "duckdb", "litellm", "pyarrow", "pandas", "sqlalchemy")
"""Packages whose versions a report of a fault should have."""
_MOST_PACKAGES = 5


def check_installation() -> Iterator[Diagnosis]:
    """Python, the packages that are needed, those of the lock file, and the versions of the main ones."""
    yield _python()
    yield _needed(requires(_US) or [])
    lock = shipped("workspace.yaml").parent / "requirements.lock"
    if lock.is_file():
        yield _locked(lock)
    yield Diagnosis("versions", "ok", ", ".join(f"{name} {found}" for name in _MAIN_PACKAGES if (found := _version(name))))


def _python() -> Diagnosis:
    found, wanted = platform.python_version(), metadata(_US)["Requires-Python"]
    if SpecifierSet(wanted).contains(found, prereleases=True):
        return Diagnosis("Python", "ok", found)
    return Diagnosis("Python", "problem", f"{found}, where {wanted} is needed", "install a newer Python and set up again")


def _needed(stated: list[str]) -> Diagnosis:
    """The requirements of the distribution's metadata, without those of extras."""
    wanted = [Requirement(text) for text in stated]
    needed = [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]
    wrong = []
    for one in needed:
        found = _version(one.name)
        if found is None:
            wrong.append(f"{one.name} is not installed")
        elif not one.specifier.contains(found, prereleases=True):
            wrong.append(f"{one.name} {found} is installed, {one.specifier} is needed")
    if wrong:
        return Diagnosis("packages", "problem", "; ".join(wrong), "install dtef-pipeline again in this environment")
    return Diagnosis("packages", "ok", f"all {len(needed)} that are needed are installed")


def _locked(lock: Path) -> Diagnosis:
    pins = locked_versions(lock.read_text(encoding="utf-8"))
    there = {name: (pin, found) for name, pin in pins.items() if (found := _version(name))}
    other = [f"{name} {found} in place of {pin}" for name, (pin, found) in there.items() if found != pin]
    if other:
        return Diagnosis(
            "lock",
            "warning",
            f"not as locked: {and_more(other, _MOST_PACKAGES)}",
            f"make setup, or pip install --require-hashes -r {lock.name}",
        )
    return Diagnosis("lock", "ok", f"{len(there)} packages have the versions of {lock.name}")


def locked_versions(text: str) -> Mapping[str, str]:
    """Name and version of each package that a lock file has for this Python."""
    entries = (line.rstrip("\\ ") for line in text.splitlines() if line[:1].isalnum())
    wanted = [one for one in map(Requirement, entries) if one.marker is None or one.marker.evaluate()]
    return {one.name: next(iter(one.specifier)).version for one in wanted}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None

"""Checks of paths for `dtef doctor`: whether they exist, and can be created or written."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

State = Literal["ok", "warning", "problem"]


class Diagnosis(NamedTuple):
    """The result of one check. `warning`: something is unusual, but most commands work. `problem`: some command will fail."""

    check: str
    state: State
    message: str
    remedy: str = ""
    """What to do; empty if all is well."""


def diagnose_absent(check: str, path: Path, variable: str, maker: str = "the first command that needs it") -> Diagnosis:
    """Check whether a file or folder that does not exist yet can be created."""
    parent = find_nearest_path(path)
    problem = f"{path} cannot be made: "
    if not parent.is_dir():
        problem += f"{parent} is a file, where a folder is needed"
    elif not is_disk_present(parent):
        problem += f"{parent} cannot hold files of users"
    elif not os.access(parent, os.W_OK | os.X_OK):
        problem += f"{parent} is not writable"
    else:
        return Diagnosis(check, "ok", f"{path} does not exist yet; {maker} creates it")
    return Diagnosis(check, "problem", problem, suggest_other_place(variable))


def diagnose_writable(check: str, path: Path, message: str, variable: str, below: Iterable[Path] = ()) -> Diagnosis:
    """Check whether an existing file or folder, and the paths `below` it, can be written. `message`: the finding if so."""
    places = [path, *below] if path.is_dir() else [path, path.parent]
    obstacle = next((place for place in places if not os.access(place, os.W_OK)), None)
    if obstacle is None:
        return Diagnosis(check, "ok", message)
    remedy = f"give this user write access (if it is yours: chmod u+w {shlex.quote(str(obstacle))}); or {suggest_other_place(variable)}"
    return Diagnosis(check, "problem", f"{obstacle} is not writable", remedy)


def suggest_other_place(variable: str) -> str:
    """Return how to choose another place, and the default if the variable is set."""
    usual = f"use the default: unset {variable}; or " if os.environ.get(variable) else ""
    return f"{usual}choose another place: export {variable}=PATH"


def is_disk_present(folder: Path) -> bool:
    """Return whether a disk is behind a folder. /proc claims to be writable but is not."""
    return shutil.disk_usage(folder).total > 0


def find_nearest_path(path: Path) -> Path:
    """Return the path, or its nearest existing parent."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if os.path.lexists(place))

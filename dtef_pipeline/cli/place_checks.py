"""What lies at a path, for `dtef doctor`: whether it is there, and whether it can be made or written."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

State = Literal["ok", "warning", "problem"]


class Diagnosis(NamedTuple):
    """The result of one check. `warning`: something is not as usual, and most commands work. `problem`: some command will fail."""

    check: str
    state: State
    found: str
    remedy: str = ""
    """What to do; nothing where all is well."""


def diagnose_absent(check: str, path: Path, variable: str, maker: str = "the first command that needs it") -> Diagnosis:
    """Of a file or folder that is not there yet: whether its maker can make it."""
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
    """Of a file or folder that is there, and of what is `below` it. `message`: what is said of it when it can be written."""
    places = [path, *below] if path.is_dir() else [path, path.parent]
    obstacle = next((place for place in places if not os.access(place, os.W_OK)), None)
    if obstacle is None:
        return Diagnosis(check, "ok", message)
    remedy = f"give this user write access (if it is yours: chmod u+w {shlex.quote(str(obstacle))}); or {suggest_other_place(variable)}"
    return Diagnosis(check, "problem", f"{obstacle} is not writable", remedy)


def suggest_other_place(variable: str) -> str:
    """How to name another place: the usual one, where it is the variable that names this."""
    usual = f"use the default: unset {variable}; or " if os.environ.get(variable) else ""
    return f"{usual}choose another place: export {variable}=PATH"


def is_disk_present(folder: Path) -> bool:
    """Whether a disk is behind a folder: /proc says that it can be written, and it cannot."""
    return shutil.disk_usage(folder).total > 0


def find_nearest_path(path: Path) -> Path:
    """The path, or the nearest folder or file above it that is there."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if os.path.lexists(place))

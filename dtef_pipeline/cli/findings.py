"""What `dtef doctor` finds: one line per check, with what to do about it."""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["ok", "warning", "problem"]


class Diagnosis(NamedTuple):
    """The result of one check. `warning`: something is not as usual, and most commands work. `problem`: some command will fail."""

    check: str
    state: State
    found: str
    remedy: str = ""
    """What to do; nothing where all is well."""

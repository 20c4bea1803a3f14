"""Who is best or worst where several are equally so: none of them is named as if it were alone."""

from __future__ import annotations

from collections.abc import Sequence

_MOST_NAMED = 3


def all_of(names: Sequence[str]) -> str:
    """One name, a few that tie, or how many do."""
    if len(names) == 1:
        return names[0]
    return f"{len(names)} tied" + (f": {', '.join(names)}" if len(names) <= _MOST_NAMED else "")

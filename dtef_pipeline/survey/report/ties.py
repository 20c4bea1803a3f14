"""Who is best or worst where several are equally so: none of them is named as if it were alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtef_pipeline.report.markup import is_unknown

_MOST_NAMED = 3


def all_of(names: Sequence[str]) -> str:
    """One name, a few that tie, or how many do."""
    if len(names) == 1:
        return names[0]
    return f"{len(names)} tied" + (f": {', '.join(names)}" if len(names) <= _MOST_NAMED else "")


def one_of(name: Any, tied: Any) -> Any:
    """A name, and how many it ties with; `tied` counts it too, unknown: not counted."""
    return name if is_unknown(name) or is_unknown(tied) or tied <= 1 else f"{name} ({int(tied)} tied)"

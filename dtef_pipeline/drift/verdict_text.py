"""Verdicts on drift in words and numbers that people read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import shorten
from typing import Any

from dtef_pipeline.drift.changes import WHATS
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.keys import Keys

VERDICTS = ("drift", "watch", "none")
"""Worst first."""
NEWS = ("drift", "watch")
"""Verdicts of series that moved."""
_QUOTED = 60
"""Characters of an item's text that are shown."""
_HUGE = 6.0
"""log10 from which odds are written as a power of ten."""


def odds(log10_e: float | None) -> str:
    """How much more likely the snapshots are with a shift than without: `1,200 to 1`, `10^14 to 1`; `-` where it is not known."""
    if log10_e is None or log10_e != log10_e:
        return "-"
    if log10_e >= _HUGE:
        return f"10^{log10_e:.0f} to 1"
    return f"{float(f'{10**log10_e:.2g}'):,.3g} to 1" if log10_e < 1 else f"{float(f'{10**log10_e:.2g}'):,.0f} to 1"


def place_words(row: Mapping[str, Any], keys: Keys) -> str:
    """` on GD4/country:kenya`, to follow a model's name; nothing for a series over all partitions."""
    place = "/".join(row[name] for name in keys.space if row.get(name))
    return f" on {place}" if place else ""


def change_words(change: Mapping[str, Any], subject: Subject) -> str:
    """`parse rate since 2026-01-11: parsed 98.0 %, then parsed 85.0 %`."""
    what = {**WHATS, subject.truth: subject.truths}.get(change["what"], change["what"])
    return f"{what} since {change['snapshot']}: {change['before']}, then {change['after']}"


def moved_words(moved: Sequence[Mapping[str, Any]], subject: Subject) -> str:
    """`GD4/q26 “Do you trust …?” -0.2144, GD4/q21 “How often do you …” -0.2132`."""
    return ", ".join(f"{one[subject.keys.noun]}{_quoted(one.get('text'))} {one['shift']:+.4f}" for one in moved)


def _quoted(text: str | None) -> str:
    return f" “{shorten(text, _QUOTED, placeholder=' …')}”" if text else ""


def by_verdict(keys: Keys) -> Callable[[Mapping[str, Any]], tuple[int, float, str, str]]:
    """The sort key of rows with a verdict: drift first, then the largest shift or range."""

    def place(row: Mapping[str, Any]) -> tuple[int, float, str, str]:
        rank = VERDICTS.index(row["verdict"]) if row["verdict"] in VERDICTS else len(VERDICTS)
        size = (row["shift"] if row["verdict"] == "drift" else row["gap"]) or 0.0
        return rank, -abs(size), row["model_variant"], row[keys.asked[0]]

    return place


def reaches(rows: Sequence[Mapping[str, Any]], verdict: str) -> bool:
    """Whether a row has this verdict or a worse one."""
    return any(row["verdict"] in VERDICTS[: VERDICTS.index(verdict) + 1] for row in rows)

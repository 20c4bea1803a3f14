"""Where two models of the board change places as the weight of the similarity goes from 0 to 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dtef_pipeline.report.isolated import inline, wrapping_name
from dtef_pipeline.report.markup import Column, as_is, fold, named, table, whole
from dtef_pipeline.rubric.hybrid import crossing, hybrid_at

_MOST_CHANGES = 60
"""Changes that are listed, those of the best places."""
_EDGE = 1e-9
"""What differs by less is the same weight, or the same score."""
_CHANGE_COLUMNS = (
    Column(
        "beta",
        "Weight (beta)",
        as_is,
        "Weight of similarity at which the two have the same score; a press shows the board there",
    ),
    Column("rises", "Model ahead above it", named, "Better where similarity weighs more"),
    Column("falls", "Model ahead below it", named, "Better where coverage weighs more"),
    Column("place", "Place", whole, "Place that they change about, 1 is the best"),
)


class PlaceChange(NamedTuple):
    """Two models that have the same score at one weight, and change places there."""

    beta: float
    """Weight of the similarity, above 0 and below 1."""
    rises: str
    """The model that is better above it."""
    falls: str
    place: int
    """The place of both at this weight, from 1."""


def place_changes(models: Sequence[Mapping[str, Any]], least: int) -> list[PlaceChange]:
    """All changes among the ranked, by weight. `models`: as of `slider_data`; ranked are those with a score in at least `least` blueprints."""
    ranked = [one for one in models if one["at_0"] is not None and one["n"] >= least]
    at_0, slope = (np.array([one[name] for one in ranked], dtype=np.float64) for name in ("at_0", "slope"))
    found = []
    for one, other in combinations(ranked, 2):
        beta = crossing((one["at_0"], one["slope"]), (other["at_0"], other["slope"]))
        if beta is None or not _EDGE < beta < 1 - _EDGE:
            continue
        rises, falls = (one, other) if one["slope"] > other["slope"] else (other, one)
        ahead = hybrid_at(at_0, slope, beta) > float(hybrid_at(one["at_0"], one["slope"], beta)) + _EDGE
        found.append(PlaceChange(beta, str(rises["model"]), str(falls["model"]), int(ahead.sum()) + 1))
    return sorted(found)


def changes_part(changes: Sequence[PlaceChange]) -> str:
    """The changes in words and as a table, beneath the slider; of many, those of the best places."""
    listed = sorted(sorted(changes, key=lambda change: (change.place, change))[:_MOST_CHANGES])
    if not listed:
        return '<p class="count">No two ranked models change places at any weight.</p>'
    frame = pd.DataFrame(listed)
    shown = frame.assign(
        beta=[f'<button type="button" class="to-beta" data-beta="{beta:.4f}">{beta:.3f}</button>' for beta in frame["beta"]],
        rises=frame["rises"].map(wrapping_name),
        falls=frame["falls"].map(wrapping_name),
    )
    more = f" Listed are the {len(listed)} at the best places." if len(changes) > len(listed) else ""
    body = table(shown, _CHANGE_COLUMNS, caption="Weights at which two models change places", data=frame)
    return f'<p class="count">{_first_place(changes)}.{more}</p>' + fold("Where models change places", body)


def _first_place(changes: Sequence[PlaceChange]) -> str:
    first = [change for change in changes if change.place == 1]
    told = "; ".join(f"from {change.beta:.3f} on {inline(change.rises)} is before {inline(change.falls)}" for change in first)
    times = "once" if len(changes) == 1 else f"{len(changes):,} times"
    leader = f", and the first place changes: {told}" if told else ", and the first place never"
    return f"Between 0 and 1 two models change places {times}{leader}"

"""Charts of what only surveys have: scores over the context levels, and gaps between groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dtef_pipeline.report.charts import (
    DOT,
    LONGEST_NAME,
    ROW,
    SAME_SCORE,
    Mark,
    bands_of,
    facet,
    facets,
    forest,
    heat_map,
    score_domain,
)
from dtef_pipeline.report.markup import is_unknown, shortened
from dtef_pipeline.report.svg import Place, across, axis, domain, dot, drawing, group, label, line
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE
from dtef_pipeline.statistics.ranks import ranks
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL, UNIFORM
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.report.groups import asked_alike
from dtef_pipeline.text.counted import counted

_LINES = {
    LEAVE_ONE_OUT: ("leave-one-out marginal", "others"),
    POPULATION_MARGINAL: ("population marginal", "population"),
    UNIFORM: ("uniform", "uniform"),
}
"""What the line of a baseline is called, and its class."""


def references(rows: pd.DataFrame) -> list[Mark]:
    """The lines to read a board by, where known: what a score could be at best, and those of knowing nothing about the group."""
    scores = {model: float(score) for model, score in zip(rows["model"], rows["score"], strict=True) if score == score}
    ceilings = rows["ceiling"].dropna() if "ceiling" in rows else pd.Series(dtype=float)
    best = [Mark("ceiling", float(ceilings.median()), "ceiling")] if len(ceilings) else []
    return [*best, *(Mark(name, scores[model], kind) for model, (name, kind) in _LINES.items() if model in scores)]


def board_chart(frame: pd.DataFrame) -> str:
    """The models of a leaderboard with the marginals and the ceiling as lines; it stands alone."""
    rows = one_group(frame)
    return forest(rows, references(rows[rows["score"].notna()]))


def segment_heat_map(frame: pd.DataFrame) -> str:
    """Segments down, models across. Takes rows of `breakdown_segment`; it stands alone."""
    return heat_map(one_group(frame), ["attribute", "segment"], "segments")


def context_curves(frame: pd.DataFrame) -> str:
    """A small chart for each model: its mean score over the context levels, with intervals. It stands alone.

    Takes leaderboard rows of several levels, as of `on_shared_pairs`.
    """
    first = sorted(frame["condition"].astype(str).unique())[:1]
    rows = frame[frame["condition"].isin(first) & frame["score"].notna()]
    marks = references(rows)
    bounds = score_domain(rows, [mark.value for mark in marks])
    levels = sorted(rows["context_level"].astype(str).unique(), key=lambda level: ContextLevel(level).order)
    drawn = [
        facet(str(own["model"].iloc[0]), levels, _by(own, "context_level"), bounds, marks)
        for _, own in moving(rows).groupby("model_variant", sort=True, observed=True)
    ]
    return facets(drawn, "Mean score over the number of context questions, one small chart for each model")


def moving(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of models whose score is not the same at every level that they have: a baseline that reads no prompt has no curve."""
    spread = rows.groupby("model_variant", observed=True)["score"].agg(lambda scores: scores.max() - scores.min())
    return rows[rows["model_variant"].isin(spread[spread > SAME_SCORE].index)]


def _by(rows: pd.DataFrame, key: str) -> dict[str, Mapping[Any, Any]]:
    return {str(row[key]): row for row in rows.to_dict("records")}


def gap_chart(frame: pd.DataFrame, *, standalone: bool = True, most: int = 24) -> str:
    """The observed gap of a model within an attribute as a dot, over the range expected of equal groups. Takes rows of `gaps`.

    A dot is filled where the gap is significant: p, adjusted for the number of gaps tested, below .05. At most `most` rows, smallest adjusted p
    first, then the largest excess.
    """
    rows = one_group(frame)
    rows = by_significance(rows[rows["gap"].notna()]).head(most)
    low, high = domain([0.0, *rows["gap"], *rows["expected_high"].dropna()])
    place = across(low, high)
    bottom = 8 + ROW * len(rows)
    parts = [_gap_row(row, place, 4 + ROW * at) for at, row in enumerate(rows.to_dict("records"))]
    title = f"Gap between the best and the worst segment, beside the gap expected from sample size, {counted(len(rows), 'row')}"
    return drawing([axis(place, low, high, bands_of(4, len(rows)), bottom), *parts], bottom + 22, title, standalone=standalone)


def by_significance(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `gaps` in the order of their adjusted p, smallest first, then of their excess, largest first.

    Rows of `question_gaps`, which are not tested, in the order of their excess.
    """
    placed = rows.assign(place=ranks(rows["excess"]))
    keys = [*([adjusted(rows)] if "p_holm" in rows else []), "place", "attribute", "model"]
    return placed.sort_values(keys, kind="stable", na_position="last").drop(columns="place")


def adjusted(rows: pd.DataFrame) -> str:
    """The column of the p that the verdicts go by; tables of earlier versions have Holm's alone."""
    return "p_bh" if "p_bh" in rows else "p_holm"


def _gap_row(row: Mapping[Any, Any], place: Place, y: float) -> str:
    parts = [line(0, y + ROW, 100, y + ROW, "grid")]
    parts.append(label(0, y + 14, shortened(f"{row['attribute']}: {row['model']}", LONGEST_NAME), anchor="start"))
    low, high, expected = row["expected_low"], row["expected_high"], row["expected_gap"]
    if not is_unknown(low) and not is_unknown(high):
        parts.append(line(place(low), y + DOT, place(high), y + DOT, "expected"))
    if not is_unknown(expected):
        parts.append(line(place(expected), y + DOT - 5, place(expected), y + DOT + 5, "middle"))
    p = row.get("p_bh", row["p_holm"])
    is_significant = not is_unknown(p) and p < SIGNIFICANCE
    parts.append(dot(place(row["gap"]), y + DOT, "dot beyond" if is_significant else "dot within"))
    words = f"{row['attribute']}, {row['model']}: gap {row['gap']:.4f}"
    words += "" if is_unknown(expected) else f", expected {expected:.4f}"
    return group(parts, words + ("" if is_unknown(p) else f", adjusted p {p:.3f}"))


def one_group(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first condition with most context: what one chart can show, for the others do not compare with it."""
    return next((rows for _, rows in asked_alike(frame, richest=True)), frame)

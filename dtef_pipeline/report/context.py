"""What context does: the score over the context levels, and the verdicts on whether a model uses it."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dtef_pipeline.report.charts import line_key, moving, panel, references, score_domain
from dtef_pipeline.report.markup import (
    DASH,
    Column,
    as_is,
    is_unknown,
    level_order,
    note,
    p_value,
    paragraph,
    section,
    signed,
    signed_three,
    table,
    text,
    whole,
    with_intervals,
    without_lone_condition,
)
from dtef_pipeline.report.svg import drawing

_HOW = (
    "Mean score over the number of context questions shown; the lines across are the ceiling and the marginals. A model that uses the "
    "group's other answers rises from left to right; a flat line says that it answers from what it believes about the group."
)
_COLUMNS = [
    Column("model", "Model", text),
    Column("condition", "Asked as", text),
    Column("levels", "Levels", text),
    Column("least_score", "Least context", as_is),
    Column("most_score", "Most context", as_is),
    Column("difference", "Difference", as_is, "Score at the highest level less that at the lowest, within (segment, question)"),
    Column("slope", "Per question shown", as_is, "Change of score per context question"),
    Column("p", "p", p_value),
    Column("p_holm", "p (Holm)", p_value),
    Column("n_questions", "Questions", whole),
    Column("n_pairs", "Pairs", whole),
    Column("verdict", "Verdict", text),
    Column("note", "Note", note),
]


def context(board: pd.DataFrame, verdicts: pd.DataFrame) -> str:
    """The section, from the overall board and the rows of `responsiveness` (empty: there is no such table)."""
    parts = [
        _curves(rows, len(set(board["condition"])) > 1) for _, rows in board.groupby("condition", sort=True, observed=True)
    ]
    return section("context", "Context", _HOW, "".join(parts) + _verdicts(verdicts))


def _curves(board: pd.DataFrame, titled: bool) -> str:
    rows = board[board["score"].notna()]
    levels = sorted(rows["context_level"].astype(str).unique(), key=level_order)
    if len(levels) < 2:
        return paragraph("One context level: there is nothing to compare.")
    curved = moving(rows)
    still = sorted(set(rows["model"]) - set(curved["model"]))
    marks = references(rows)
    bounds = score_domain(curved, marks.values())
    panels = "".join(
        _panel(str(own["model"].iloc[0]), levels, own, bounds, marks)
        for _, own in curved.groupby("model_variant", sort=True, observed=True)
    )
    same = paragraph(f"The same at every level: {', '.join(still)}.") if still else ""
    condition = paragraph(f"Asked as {board['condition'].iloc[0]}.") if titled else ""
    return f'{condition}{line_key(marks)}<div class="panels">{panels}</div>{same}'


def _panel(title: str, levels: list[str], own: pd.DataFrame, bounds: tuple[float, float], marks: dict[str, float]) -> str:
    by_level = {str(row["context_level"]): row for row in own.to_dict("records")}
    said = ", ".join(f"{level}: {by_level[level]['score']:.3f}" for level in levels if level in by_level)
    return drawing([panel(title, levels, by_level, bounds, marks)], 170, f"{title} by context level: {said}", standalone=False)


def _verdicts(frame: pd.DataFrame) -> str:
    if not len(frame):
        return paragraph("No test of responsiveness yet.")
    shown = with_intervals(frame, [("slope", "slope_low", "slope_high")], shown=_small, bounds=_small)
    shown = with_intervals(shown, [("difference", "low", "high")], shown=signed, bounds=signed_three)
    for score, asked in (("least_score", "least_context"), ("most_score", "most_context")):
        shown[score] = [
            f'{value:.4f}<span class="ci">{count:.1f} questions</span>' if pd.notna(value) else DASH
            for value, count in zip(frame[score], frame[asked], strict=True)
        ]
    return table(shown, without_lone_condition(frame, _COLUMNS), caption="Responsiveness to context", row_head="model")


def _small(value: Any) -> str:
    return DASH if is_unknown(value) else f"{value:+.5f}"

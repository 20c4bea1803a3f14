"""Which segments a model predicts worse or better than the others of their attribute."""

from __future__ import annotations

import pandas as pd

from dtef_pipeline.report.markup import (
    Column,
    as_is,
    estimate,
    fold,
    note,
    p_value,
    paragraph,
    section,
    table,
    text,
    whole,
    with_interval,
)
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE
from dtef_pipeline.survey.boards.meanings import ENDS
from dtef_pipeline.survey.report.groups import asked_alike
from dtef_pipeline.text.counted import counted

_HOW_TO_READ_GAPS = (
    "How far a model's score of a segment lies from that of the attribute's other segments on the same questions. A segment of few people "
    "scores low under any model: the expected score allows for that. Beneath a deviation stands its 95 % interval, by whole batteries of "
    f"questions and for other people. A segment is predicted worse or better where p, adjusted (Holm) over the model's attribute, "
    f"is below {SIGNIFICANCE:g}."
)
_MOST_GAPS = 40
_GAP_COLUMNS = [
    Column("segment", "Segment", text),
    Column("model", "Model", text),
    Column(
        "deviation", "Deviation", as_is, "Score less the expected score: below 0 the segment is predicted worse than the others"
    ),
    Column("p_adjusted", "p (Holm)", p_value),
    Column("verdict", "Verdict", text),
    Column("parsed_verdict", "Read", text, "Verdict by readable responses alone"),
    Column("score", "Score", estimate),
    Column("expected", "Expected", estimate, "Score of a segment of as many people that is predicted as well as the others"),
    Column("n", "Respondents", whole),
    Column("n_pairs", "Pairs", whole),
    Column("note", "Note", note),
]


def gaps(frame: pd.DataFrame) -> str:
    """The section, from the rows of `segment_gaps` (empty: there is no such table)."""
    groups = [fold(title, _group(rows), is_open=at == 0) for at, (title, rows) in enumerate(asked_alike(frame, richest=True))]
    return section("gaps", "Gaps between segments", _HOW_TO_READ_GAPS, "".join(groups) or paragraph("No gaps yet."))


def by_significance(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `segment_gaps` in the order of their adjusted p, smallest first, then the worst predicted first."""
    return rows.sort_values(["p_adjusted", "deviation", "attribute", "model"], kind="stable", na_position="last")


def _group(rows: pd.DataFrame) -> str:
    first = by_significance(rows).head(_MOST_GAPS)
    said = [
        f"{counted(int((rows['verdict'] == verdict).sum()), 'row')} {verdict}"
        for verdict in ("worse", "better", "not told apart")
    ]
    left = (
        f" Shown: the first {_MOST_GAPS} by adjusted p; `dtef board --by gaps --top 0` has all."
        if len(rows) > _MOST_GAPS
        else ""
    )
    shown = first.assign(deviation=with_interval(first, "deviation", ENDS["deviation"], sign="+"))
    return paragraph(f"Of {counted(len(rows), 'row')}: {', '.join(said)}.{left}") + table(
        shown, _GAP_COLUMNS, caption="Gaps by segment and model", row_head="segment", data=first
    )

"""Gaps between groups, beside the gaps that sample sizes alone make of equal groups."""

from __future__ import annotations

import pandas as pd

from dtef_pipeline.report.explores import CONFIRMS_ELSEWHERE
from dtef_pipeline.report.markup import (
    DASH,
    Column,
    as_is,
    figure,
    fold,
    is_unknown,
    note,
    p_value,
    paragraph,
    section,
    table,
    text,
    whole,
    with_interval,
    with_name,
)
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE
from dtef_pipeline.survey.boards.meanings import ENDS
from dtef_pipeline.survey.report.charts import by_significance, gap_chart
from dtef_pipeline.survey.report.groups import asked_alike
from dtef_pipeline.survey.report.ties import one_of

_HOW_TO_READ_GAPS = (
    "How much better a model does on the best segment of an attribute than on the worst. Groups that differ in nothing but size show a gap, "
    "too: the grey bar is where 95 % of such gaps lie, its mark the expected one. Of many gaps some stick out by chance: only a filled dot, "
    f"whose p is below {SIGNIFICANCE:g} after adjusting for the number of gaps shown (Benjamini-Hochberg), is told apart from chance, and of "
    "such dots one in twenty may be chance all the same. Beneath gap and excess stand their 95 % intervals: what the same survey "
    "would show on average if it were repeated with other people and other questions like these."
)
_GAP_COLUMNS = [
    Column("attribute", "Attribute", text),
    Column("model", "Model", text),
    Column("gap", "Gap", as_is, "Score of the best segment less that of the worst"),
    Column(
        "expected_gap", "Expected", as_is, "Mean gap of groups that differ in size alone, and the range of 95 % of such gaps"
    ),
    Column("excess", "Excess", as_is, "Gap less the expected gap"),
    Column("p", "p", p_value, "One-sided: as large a gap between groups that differ in size alone"),
    Column("p_bh", "p (BH)", p_value, "p adjusted by Benjamini-Hochberg for all gaps of the table"),
    Column("p_holm", "p (Holm)", p_value),
    Column("parsed_gap", "Read", as_is, "Gap and excess over readable responses alone"),
    Column("best", "Best", as_is, "Mean score of the best segment"),
    Column("worst", "Worst", as_is, "Mean score of the worst segment"),
    Column("n_segments", "Segments", whole),
    Column("n_pairs", "Pairs", whole),
    Column("note", "Note", note),
]


_SAME_AS_SHOWN = 5e-5


def gaps(frame: pd.DataFrame) -> str:
    """The section, from the rows of `gaps` (empty: there is no such table)."""
    groups = [fold(title, _group(rows), is_open=at == 0) for at, (title, rows) in enumerate(asked_alike(frame, richest=True))]
    how = f"{_HOW_TO_READ_GAPS} {CONFIRMS_ELSEWHERE}"
    return section("gaps", "Gaps between groups", how, "".join(groups) or paragraph("No gaps yet."))


def _group(rows: pd.DataFrame) -> str:
    rows = by_significance(rows)
    known = rows["gap"].notna().any()
    chart = (
        figure(
            gap_chart(rows, standalone=False),
            f"Smallest adjusted p first, then largest excess. Filled: adjusted p below {SIGNIFICANCE:g}; hollow: not told apart from chance.",
        )
        if known
        else ""
    )
    shown = rows.assign(
        gap=with_interval(rows, "gap", ENDS["gap"]),
        excess=with_interval(rows, "excess", ENDS["excess"], sign="+"),
        expected_gap=with_interval(rows, "expected_gap", ENDS["expected_gap"]),
        parsed_gap=_over_parsed(rows),
        **{end: with_name(_tied(rows, end), f"{end}_score", f"{end}_segment") for end in ("best", "worst")},
    )
    return chart + table(shown, _GAP_COLUMNS, caption="Gaps by attribute and model", row_head="attribute", data=rows)


def _over_parsed(rows: pd.DataFrame) -> list[str]:
    """Gap and excess over readable responses alone, where they are not those of all; earlier tables do not know them."""
    nothing = [None] * len(rows)
    parsed = zip(rows["gap"], rows.get("parsed_gap", nothing), rows.get("parsed_excess", nothing), strict=True)
    return [
        DASH
        if is_unknown(gap) or is_unknown(read) or abs(gap - read) < _SAME_AS_SHOWN
        else f"{read:.3f} (excess {excess:+.3f})"
        for gap, read, excess in parsed
    ]


def _tied(rows: pd.DataFrame, end: str) -> pd.DataFrame:
    """The rows with the best or worst segment as it is called where others tie with it; earlier tables do not count them."""
    counts = rows.get(f"n_{end}", [None] * len(rows))
    return rows.assign(**{f"{end}_segment": list(map(one_of, rows[f"{end}_segment"], counts))})

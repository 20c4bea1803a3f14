"""The charts that only surveys have, and what a chart of a survey leaves out."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.report.charts import forest
from dtef_pipeline.survey.report.charts import (
    board_chart,
    by_significance,
    context_curves,
    gap_chart,
    references,
    segment_heat_map,
)
from tests.made.boards import board, segments


def gap_rows() -> pd.DataFrame:
    known = {"attribute": ["country", "gender"], "gap": [0.3, 0.02], "expected_gap": [0.1, 0.02], "expected_low": [0.05, 0.0]}
    rest = {"expected_high": [0.2, 0.04], "excess": [0.2, 0.0], "model": "<b>", "context_level": "0", "condition": "c"}
    return pd.DataFrame({**known, **rest, "p_holm": [0.01, 1.0]})


ALL = [
    (board_chart, board()),
    (segment_heat_map, segments()),
    (context_curves, pd.concat([board(), board(context_level="0")])),
    (gap_chart, gap_rows()),
]


@pytest.mark.parametrize(("chart", "frame"), ALL)
def test_a_chart_that_stands_alone_is_an_image_with_a_name(chart: object, frame: pd.DataFrame) -> None:
    drawn = chart(frame)  # type: ignore[operator]
    root = ElementTree.fromstring(drawn)
    assert root.attrib["aria-label"]
    assert float(root.attrib["height"]) > 0
    assert "<b>" not in drawn


@pytest.mark.parametrize(("chart", "frame"), ALL)
def test_a_chart_of_no_rows_is_a_drawing_all_the_same(chart: object, frame: pd.DataFrame) -> None:
    ElementTree.fromstring(chart(frame.head(0)))  # type: ignore[operator]


def test_the_lines_of_a_board_are_its_own_marginals_and_ceiling() -> None:
    lines = {mark.name: mark.value for mark in references(board())}
    assert lines == pytest.approx({"ceiling": 0.9, "leave-one-out marginal": 0.75, "population marginal": 0.8})
    assert references(board().drop(columns="ceiling").tail(2)) == []


def test_only_a_gap_that_is_significant_among_all_that_were_tested_is_filled() -> None:
    """Filled dots were those beyond the expected range: of many gaps of equal groups some lie there."""
    drawn = gap_chart(gap_rows())
    assert drawn.count('class="dot beyond"') == drawn.count('class="dot within"') == 1
    assert "country, &lt;b&gt;: gap 0.3000, expected 0.1000, adjusted p 0.010" in drawn
    for p in (0.05, 0.06, np.nan):
        assert 'class="dot beyond"' not in gap_chart(gap_rows().assign(p_holm=p))


def test_gaps_stand_by_their_adjusted_p_then_by_their_excess() -> None:
    four = pd.concat([gap_rows(), gap_rows()], ignore_index=True).assign(
        attribute=["c", "d", "a", "b"], p_holm=[0.2, np.nan, 0.01, 0.01], excess=[0.3, 0.9, 0.1, 0.2]
    )
    assert list(by_significance(four)["attribute"]) == ["b", "a", "c", "d"]
    assert re.findall(r">(\w): &lt;b&gt;<", gap_chart(four)) == ["b", "a", "c", "d"]
    assert re.findall(r">(\w): &lt;b&gt;<", gap_chart(four, most=2)) == ["b", "a"]


def test_of_several_context_levels_the_richest_is_drawn() -> None:
    both = pd.concat([board(), board(context_level="5", score=0.1)], ignore_index=True)
    assert board_chart(both) == board_chart(board()) == forest(board(), references(board()))

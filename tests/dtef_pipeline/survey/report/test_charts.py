"""The charts that only surveys have, and what a chart of a survey leaves out."""

from __future__ import annotations

from xml.etree import ElementTree

import pandas as pd
import pytest

from dtef_pipeline.survey.report.charts import (
    board_chart,
    context_curves,
    references,
    segment_heat_map,
)
from tests.made.boards import board, segments

ALL = [
    (board_chart, board()),
    (segment_heat_map, segments()),
    (context_curves, pd.concat([board(), board(context_level="0")])),
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

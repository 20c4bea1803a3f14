"""Bars: as long as their values, with what they rest on under them, and with nothing made up where there is no value."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.report.bars import Bar, bars
from dtef_pipeline.report.svg import LEFT, RIGHT

WIDTHS = re.compile(r'<rect x="2.00%" y="[\d.]+" width="([\d.]+)%" height="10" class="bar"/>')


def widths(drawn: str) -> list[float]:
    """Of the bars, as shares of the axis."""
    return [float(width) / (RIGHT - LEFT) for width in WIDTHS.findall(drawn)]


def said(drawn: str) -> list[str]:
    return [text for element in ElementTree.fromstring(drawn).iter() if element.tag.endswith("text") and (text := element.text)]


def test_a_bar_without_a_value_is_listed_and_never_drawn_as_zero() -> None:
    drawn = bars([Bar("a", 0.5, 4), Bar("b", None, 3), Bar("c", math.nan, 0)], "Existence", standalone=True)
    assert widths(drawn) == pytest.approx([0.5], abs=1e-3)
    assert said(drawn)[-3:] == ["No score:", "b (n = 3)", "c (n = 0)"]
    assert "1 bar" in drawn
    assert "2 without a score" in drawn


@pytest.mark.parametrize("rows", [[], [Bar("a", None, 0)], [Bar("a", None, 2), Bar("b", None, 2)]])
def test_nothing_scored_gives_a_figure_that_says_so(rows: list[Bar]) -> None:
    drawn = bars(rows, "By transcript", standalone=True)
    assert "no data" in said(drawn)
    assert widths(drawn) == []
    assert ElementTree.fromstring(drawn).attrib["aria-label"] == "By transcript: no data"
    assert [text for text in said(drawn) if "(n" in text] == [f"{row.name} (n = {row.n})" for row in rows]


def test_an_interval_is_a_whisker_and_decides_the_digits() -> None:
    drawn = bars([Bar("a", 0.5, 100, 0.4, 0.6), Bar("b", 0.5, 1)], "t", standalone=False)
    assert drawn.count('class="middle"') == 3
    assert "95 % interval 0.4000 to 0.6000" in drawn
    assert {"0.50", "0.500"} <= set(re.findall(r">([\d.]+)</text>", drawn))


numbers = st.none() | st.floats(-2, 3) | st.just(math.nan)
rows_of_any = st.lists(st.builds(Bar, st.text(max_size=80), numbers, st.integers(0, 10**6), numbers, numbers), max_size=12)


@given(rows_of_any, st.booleans())
def test_any_rows_make_a_drawing_in_which_no_bar_leaves_the_axis(rows: list[Bar], standalone: bool) -> None:
    drawn = bars(rows, "title", standalone=standalone)
    ElementTree.fromstring(drawn)
    assert all(0 <= width <= 1.0001 for width in widths(drawn))
    assert len(widths(drawn)) == sum(row.value is not None and math.isfinite(row.value) for row in rows)

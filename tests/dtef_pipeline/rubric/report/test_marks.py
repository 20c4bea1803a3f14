from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.report.isolated import inline, said
from dtef_pipeline.rubric.report.marks import Heat, HeatRow, heat_table, score_badge, source
from dtef_pipeline.rubric.results.blueprint_run import mean
from tests.made.read_page import ReadPage


@given(st.text())
def test_a_text_is_read_back_as_it_was_written(words: str) -> None:
    for shown in (inline(words), said(words), source(words)):
        read = ReadPage(shown)
        assert {tag for tag, _ in read.elements} <= {"bdi", "div", "a", "p"}
        if words and "\r" not in words and "\x00" not in words:
            assert read.text == words


def test_only_addresses_of_the_web_are_links() -> None:
    assert ReadPage(source("see https://a.org/x?y=1&z=2, or javascript:alert(1)")).links == ["https://a.org/x?y=1&z=2"]
    assert ReadPage(source('http://a.org/"onclick="x')).links == ["http://a.org/"]
    assert ReadPage(source("data:text/html,x")).links == []
    assert ReadPage(source("(https://a.org/x). https://a.org/y_(z)!")).links == ["https://a.org/x", "https://a.org/y_(z)"]
    assert ReadPage(source("http://; and https://)")).links == []
    assert ReadPage(source("http://; and https://)")).text == "http://; and https://)"
    assert source(None) == ""


def test_an_unknown_score_is_no_zero() -> None:
    assert "unscored" in score_badge(None)
    assert "unscored" in score_badge(math.nan)
    assert "0.00" in score_badge(0.0)


@pytest.mark.parametrize(("value", "step"), [(0.0, 0), (0.099, 0), (0.1, 1), (0.55, 5), (0.9, 9), (1.0, 9)])
def test_each_tenth_has_its_colour(value: float, step: int) -> None:
    assert f'class="badge h{step}"' in score_badge(value)


def test_a_heat_map_says_what_its_colours_stand_for() -> None:
    text = ReadPage(heat_table("t", "c", ["a"], [])).text
    assert text.startswith("below 0.1  0.9 and above")
    assert ReadPage(heat_table("t", "c", ["a"], [], range(1, 10))).text.startswith("below 1  9 and above")
    assert ReadPage(heat_table("t", "c", ["a"], [], [-0.251, 0.5, 0.75])).text.startswith("below -0.25  0.75 and above")


def test_means_are_over_what_is_known() -> None:
    assert mean([1.0, None, 0.5, math.nan]) == pytest.approx(0.75)
    assert mean([None]) is None


def test_a_heat_map_says_which_cells_are_unscored_and_which_are_not_there() -> None:
    read = heat_table("Map", "Prompt", ["a", 'b"<'], [HeatRow("Group"), HeatRow("p", [Heat(None, "why", mark="*"), None])])
    assert '<td class="none" title="why">–*</td><td></td>' in read
    assert 'colspan="3"' in read
    assert 'b"<' in [given.get("title") for _, given in ReadPage(read).elements]

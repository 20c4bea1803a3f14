"""Numbers as people read them, names, and tables."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from dtef_pipeline.report.markup import (
    as_is,
    estimate,
    four,
    note,
    p_value,
    shortened,
    signed,
    text,
    three,
    whole,
    with_interval,
)


@pytest.mark.parametrize(
    ("shown", "value", "seen"),
    [
        (four, 0.123456, "0.1235"),
        (four, None, "–"),
        (four, float("nan"), "–"),
        (four, pd.NA, "–"),
        (as_is, float("nan"), "–"),
        (estimate, 0.123456, "0.123"),
        (estimate, 1234.5, "1,200"),
        (estimate, pd.NA, "–"),
        (estimate, float("-inf"), "-∞"),
        (signed, 0.01, "+0.010"),
        (three, -0.0001, "0.000"),
        (signed, -0.0, "0.000"),
        (signed, 0.00001, "0.000"),
        (whole, 12345.0, "12,345"),
        (whole, float("inf"), "∞"),
        (p_value, 0.0004, "&lt; 0.001"),
        (p_value, 0.05, "0.050"),
        (p_value, float("nan"), "–"),
        (text, "<b>", "&lt;b&gt;"),
        (note, None, ""),
        (note, "", ""),
    ],
)
def test_values_are_shown_as_people_read_them(shown: Any, value: Any, seen: str) -> None:
    assert shown(value) == seen


@pytest.mark.parametrize("most", [10, 25, 26, 60])
def test_a_name_cut_short_keeps_both_its_ends(most: int) -> None:
    name = "provider/model-with-a-long-name-and-a-date-2026-01-02"
    cut = shortened(name, most)
    assert len(cut) == min(most, len(name))
    assert (cut == name) is (most >= len(name))
    assert cut[:4] == name[:4]
    assert cut[-4:] == name[-4:]
    assert shortened("", most) == ""


def test_an_interval_stands_where_both_ends_are_known_and_decides_the_digits() -> None:
    """A skill of -46.57 stood beside an interval from -2991.14 to 2132.03."""
    frame = pd.DataFrame(
        {"skill": [0.5, 0.6, None, -46.57], "low": [0.4, None, None, -2991.14], "high": [0.6, 0.7, None, 2132.03]}
    )
    cells = with_interval(frame, "skill", ("low", "high"))
    expected = ['0.50<span class="ci">0.40 to 0.60</span>', "0.60", "–", '0<span class="ci">-3,000 to 2,100</span>']
    assert list(cells) == expected
    assert list(with_interval(frame, "absent", ("low", "high")))[2] == "–"
    assert with_interval(frame, "skill", ("low", "high"), sign="+")[0] == '+0.50<span class="ci">+0.40 to +0.60</span>'
    assert with_interval(frame, "skill", ("low", "high"), shown=whole)[3] == '-47<span class="ci">-2,991 to 2,132</span>'

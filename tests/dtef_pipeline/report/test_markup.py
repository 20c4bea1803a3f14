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

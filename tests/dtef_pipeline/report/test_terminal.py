"""Tables for the terminal and for other programs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.report.row_reader import count_cost_decimals, count_decimals, format_decimals
from dtef_pipeline.report.terminal import Fit, choose_shown_columns, render
from tests.strict_json import strict

FRAME = pd.DataFrame(
    {
        "rank": pd.array([1, None], dtype="Int32"),
        "model": ["a/model", "b"],
        "score": [0.123456789012345, np.nan],
        "vs_marginal": [0.01, -0.25],
        "n_pairs": [12345, 0],
        "parse_rate": [1.0, np.nan],
        "flagged": [True, False],
    }
)


def test_json_has_every_column_at_full_precision_and_null_for_unknown() -> None:
    first, second = strict(render(FRAME, "json", columns=["model"]))
    assert first == {
        "rank": 1,
        "model": "a/model",
        "score": 0.123456789012345,
        "vs_marginal": 0.01,
        "n_pairs": 12345,
        "parse_rate": 1.0,
        "flagged": True,
    }
    assert (second["rank"], second["score"], second["parse_rate"]) == (None, None, None)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, None, pd.NaT, pd.NA])
def test_json_is_strict_whatever_the_value(value: object) -> None:
    assert strict(render(pd.DataFrame({"x": pd.Series([value], dtype=object)}), "json")) == [{"x": None}]


def test_csv_has_every_column_and_empty_for_unknown() -> None:
    lines = render(FRAME, "csv", columns=["model"]).splitlines()
    assert lines[0] == "rank,model,score,vs_marginal,n_pairs,parse_rate,flagged"
    assert lines[2] == ",b,,-0.25,0,,False"


def test_a_table_rounds_and_shows_only_the_columns_named() -> None:
    text = render(FRAME, "table", columns=["rank", "model", "score", "vs_marginal", "n_pairs", "parse_rate"])
    header, _, first, second = text.splitlines()
    assert header.split() == ["rank", "model", "score", "vs", "marginal", "n", "pairs", "parse", "rate"]
    assert first.split() == ["1", "a/model", "0.1235", "+0.0100", "12,345", "100.0%"]
    assert second.split() == ["-", "b", "-", "-0.2500", "0", "-"]


def test_text_that_looks_like_markup_is_shown_as_it_is() -> None:
    assert "[red]x[/red]" in render(pd.DataFrame({"model": ["[red]x[/red]"]}), "table")


@pytest.mark.parametrize(("output", "expected"), [("json", "[]"), ("csv", "model,score")])
def test_no_rows_are_an_empty_answer(output: str, expected: str) -> None:
    assert render(pd.DataFrame({"model": [], "score": []}), output) == expected


QUESTION = "Do you think the increased use of AI across society is likely to make the cost of living better or worse?"
BOARD = pd.DataFrame(
    {
        "question_id": ["015a07c1-b996-4bde-b412-e79c314cf761", "915a97c1-b996-4bde-b412-e79c314cf761"],
        "model": ["baseline/leave-one-out-marginal", "b"],
        "condition": ["distribution/attribute-label+cot", "shift/narrative"],
        "context_level": ["0", "0"],
        "adjusted_score": [0.5, 0.6],
        "n_pairs": [696, 12],
        "question": [QUESTION, "Short?"],
    }
)
KEPT, FIRST_OUT = ("question_id", "model"), ("context_level", "adjusted_score")


def test_columns_are_hidden_in_the_order_asked_for_and_then_from_the_last_one_on() -> None:
    names = list(BOARD)
    assert choose_shown_columns(names, Fit(always_shown=KEPT, hidden_first=FIRST_OUT, max_columns=5)) == [
        "question_id",
        "model",
        "condition",
        "n_pairs",
        "question",
    ]
    assert choose_shown_columns(names, Fit(always_shown=KEPT, hidden_first=FIRST_OUT, max_columns=3)) == [
        "question_id",
        "model",
        "condition",
    ]
    assert choose_shown_columns(names, Fit(always_shown=KEPT, max_columns=1)) == [*KEPT]
    assert choose_shown_columns(names, Fit()) == names


def test_what_is_hidden_is_named() -> None:
    *_, last = render(BOARD, "table", fit=Fit(None, KEPT, FIRST_OUT, max_columns=5)).splitlines()
    assert "context level, adjusted score;" in last
    assert "--wide" in last
    assert "not shown" not in render(BOARD, "table")


@pytest.mark.parametrize("width", [200, 130, 80])
def test_a_table_is_no_wider_than_the_terminal_and_loses_no_letter(width: int) -> None:
    lines = render(BOARD, "table", fit=Fit(width)).splitlines()
    assert max(map(len, lines)) <= width
    assert letters("\n".join(lines)) == letters(render(BOARD, "table"))


def letters(text: str) -> list[str]:
    return sorted(char for char in text if char.isalnum())


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (0.6980, 0.6512, 0.7448, "0.698"),
        (0.8254, 0.8233, 0.8275, "0.8254"),
        (0.4839, 0.3594, 0.6010, "0.48"),
        (-15.62, -27.6, -3.6, "-16"),
        (1004.9, 34.2, math.inf, "1,000"),
        (36.04, 20.1, 55.2, "36"),
        (0.0012345, 0.0012, 0.0013, "0.00123"),  # never more than five decimals
    ],
)
def test_two_digits_of_the_half_width_decide(value: float, low: float, high: float, expected: str) -> None:
    assert format_decimals(value, count_decimals(value, low, high)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.6980, "0.698"), (1.0, "1.000"), (0.0, "0.000"), (-15.62, "-16"), (-4.02, "-4.0"), (1004.9, "1,000")],
)
def test_without_an_interval_there_are_three_decimals_or_two_digits(value: float, expected: str) -> None:
    assert format_decimals(value, count_decimals(value)) == expected
    assert format_decimals(value, count_decimals(value, value, value)) == expected, "an interval without width says nothing"


@pytest.mark.parametrize(
    ("dollars", "expected"),
    [
        (0.0006123, "0.000612"),
        (0.00000012345, "0.000000123"),
        (0.04567, "0.0457"),
        (1.5, "1.5000"),
        (0.0, "0.0000"),
        (1e-15, "0.000000000000"),
    ],
)
def test_a_small_cost_has_three_digits(dollars: float, expected: str) -> None:
    assert format_decimals(dollars, count_cost_decimals(dollars)) == expected

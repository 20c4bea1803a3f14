"""How many digits of a number are shown."""

from __future__ import annotations

import math

import pytest

from dtef_pipeline.report.row_reader import count_cost_decimals, count_decimals, format_decimals


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

"""How many digits of a number people are shown: no more than its interval supports."""

from __future__ import annotations

import math

import pandas as pd

MOST_DECIMALS = 5
_OF_COSTS, _MOST_OF_COSTS = 4, 12
_WITHOUT_INTERVAL = 3
"""Decimals of a number up to 1 that has no interval."""


def decimals(value: float, low: float = math.nan, high: float = math.nan) -> int:
    """Decimals of a value and of the ends of its interval; below 0: tens, hundreds.

    Two digits of the interval's half-width decide: ±0.047 gives 3 decimals, ±12 none, ±970 tens. Where only one end is finite, its
    distance to the value stands for the half-width. Without an interval, or where it has no width, a number up to 1 has 3 decimals, a
    greater one two digits in all. Never more than MOST_DECIMALS.
    """
    ends = [end for end in (low, high) if pd.notna(end) and math.isfinite(end)]
    half = abs(ends[1] - ends[0]) / 2 if len(ends) == 2 else abs(ends[0] - value) if ends else 0.0
    if half < 10**-MOST_DECIMALS:
        return _WITHOUT_INTERVAL if abs(value) <= 1 else _for_two_digits(value)
    return min(_for_two_digits(half), MOST_DECIMALS)


def written(value: float, places: int, *, sign: str = "") -> str:
    """A number to so many decimals (as of `decimals`), thousands apart; `sign` + shows that of positive numbers too, never one of a zero."""
    rounded = round(value, places) + 0.0
    return f"{rounded:{sign if rounded else ''},.{max(places, 0)}f}"


def cost_decimals(dollars: float) -> int:
    """Decimals of an amount in US dollars: four, and for a small one as many as its first three digits need, at most twelve."""
    if not 0 < abs(dollars) < 0.1:
        return _OF_COSTS
    return min(_for_two_digits(dollars) + 1, _MOST_OF_COSTS)


def p_value(p: float) -> str:
    """A probability to three decimals, a smaller one as such."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def first_digit(value: float) -> int:
    """Decimals of which only the first digit of the value is left: 5,480 gives 5,000, 1.6 gives 2."""
    return _for_two_digits(value) - 1


def _for_two_digits(size: float) -> int:
    return 1 - math.floor(math.log10(abs(size)))

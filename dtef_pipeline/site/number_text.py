"""Number formats of pages."""

from __future__ import annotations

import math
from typing import Any

from dtef_pipeline.report.row_reader import count_cost_decimals, count_decimals, format_decimals, format_p_value
from dtef_pipeline.site.content import Estimate, Kind, is_unknown

UNKNOWN = "–"
_SCORE_DIGITS = 3


def show(value: Any, kind: Kind = "text") -> str:
    """Return a value as text: numbers with digits by kind or, for estimates, interval; unknown values as a dash."""
    if is_unknown(value):
        return UNKNOWN
    if isinstance(value, Estimate):
        return _show_estimate(value.value, value, kind)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _show_number(float(value), kind) if isinstance(value, int | float) else str(value)


def show_interval(value: Estimate, kind: Kind = "text") -> str:
    """Return the interval, `0.712 to 0.768`, or an empty text."""
    if any(map(is_unknown, value)):
        return ""
    return f"{_show_estimate(value.low, value, kind)} to {_show_estimate(value.high, value, kind)}"


def show_with_interval(value: Estimate, kind: Kind = "text") -> str:
    """Return `0.740 (0.712 to 0.768)`, or the value only if it has no interval."""
    interval = show_interval(value, kind)
    return f"{show(value, kind)} ({interval})" if interval else show(value, kind)


def _show_estimate(number: float | None, estimate: Estimate, kind: Kind) -> str:
    """Format a value or an end of an interval: scores with three decimals, others with the digits that the interval supports."""
    numbers = (math.nan if end is None or is_unknown(end) else float(end) for end in estimate)
    places = _SCORE_DIGITS if kind in ("score", "signed") else count_decimals(*numbers)
    return format_decimals(number or 0.0, places, sign="+" if kind == "signed" else "")


def _show_number(value: float, kind: Kind) -> str:
    match kind:
        case "count":
            return f"{value:,.0f}"
        case "percent":
            return f"{value:.0%}" if value in (0, 1) else f"{value:.1%}"
        case "dollars":
            places = count_cost_decimals(value) if 0 < value < 0.1 else 2 if value else 0
            return f"${value:,.{places}f}"
        case "p":
            return format_p_value(value)
        case "score" | "signed":
            return _show_estimate(value, Estimate(value), kind)
        case _:
            return format_decimals(value, 0) if value == int(value) else format_decimals(value, count_decimals(value))

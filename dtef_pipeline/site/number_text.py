"""Number formats of pages."""

from __future__ import annotations

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
        return format_decimals(value.value or 0.0, _count_digits(value, kind), sign="+" if kind == "signed" else "")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _show_number(float(value), kind)
    return str(value)


def show_interval(value: Estimate, kind: Kind = "text") -> str:
    """Return the interval, `0.712 to 0.768`, or an empty text."""
    if is_unknown(value.low) or is_unknown(value.high) or is_unknown(value.value):
        return ""
    places, sign = _count_digits(value, kind), "+" if kind == "signed" else ""
    return f"{format_decimals(value.low or 0.0, places, sign=sign)} to {format_decimals(value.high or 0.0, places, sign=sign)}"


def show_with_interval(value: Estimate, kind: Kind = "text") -> str:
    """Return `0.740 (0.712 to 0.768)`, or the value only if it has no interval."""
    interval = show_interval(value, kind)
    return f"{show(value, kind)} ({interval})" if interval else show(value, kind)


def _count_digits(value: Estimate, kind: Kind) -> int:
    if kind in ("score", "signed"):
        return _SCORE_DIGITS
    ends = [end for end in (value.low, value.high) if not is_unknown(end)]
    return (
        count_decimals(value.value or 0.0, *(float(end) for end in ends if end is not None))
        if ends
        else count_decimals(value.value or 0.0)
    )


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
        case "signed":
            return format_decimals(value, _SCORE_DIGITS, sign="+")
        case "score":
            return format_decimals(value, _SCORE_DIGITS)
        case _:
            return format_decimals(value, 0) if value == int(value) else format_decimals(value, count_decimals(value))

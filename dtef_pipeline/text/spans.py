"""Time spans in words."""

from __future__ import annotations

from datetime import timedelta

from dtef_pipeline.text.number_words import format_count

_SECONDS_IN = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}


def format_span(span: timedelta) -> str:
    """Return `3 hours`, in the largest unit that fits."""
    seconds = max(int(span.total_seconds()), 0)
    unit = next((name for name, size in _SECONDS_IN.items() if seconds >= size), "second")
    return format_count(seconds // _SECONDS_IN[unit], unit)

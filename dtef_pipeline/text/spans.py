"""Spans of time, in words for people."""

from __future__ import annotations

from datetime import timedelta

from dtef_pipeline.text.counted import counted

_SECONDS_IN = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}


def span_in_words(span: timedelta) -> str:
    """`3 hours`, in the greatest unit that is in it."""
    seconds = max(int(span.total_seconds()), 0)
    unit = next((name for name, size in _SECONDS_IN.items() if seconds >= size), "second")
    return counted(seconds // _SECONDS_IN[unit], unit)

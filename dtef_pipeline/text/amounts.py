"""Amounts in words: costs of which a part is unknown, time spans, and how much of the planned work was not done."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from dtef_pipeline.text.number_words import format_count


def describe_unknown_cost(attempts: int, most_usd: float | None) -> str:
    """Return `3 attempts of unknown cost, at most $0.0120`, or "" without such attempts. `most_usd` None, NaN or 0: no price bounds it."""
    if not attempts:
        return ""
    bound = f", at most ${most_usd:,.4f}" if most_usd and not math.isnan(most_usd) else ""
    return f"{format_count(attempts, 'attempt')} of unknown cost{bound}"


def format_cost(cost_usd: float | None, attempts: int, most_usd: float | None = None) -> str:
    """Return the known dollars and the attempts of unknown cost. Unknown is never shown as 0."""
    is_bounded = bool(most_usd and not math.isnan(most_usd))
    unknown = describe_unknown_cost(attempts, most_usd) if is_bounded else f"{attempts:,} of unknown cost"
    if cost_usd is None or math.isnan(cost_usd):
        return (unknown if is_bounded else "cost unknown") if attempts else "no cost"
    return f"${cost_usd:,.4f}" + (f" and {unknown}" if attempts else "")


def format_row_cost(row: Mapping[Any, Any]) -> str:
    """Return `format_cost` of a row of the costs table. Responses from before attempts were counted appear only in `unpriced`."""
    attempts = max(int(row["unknown_cost_attempts"]), int(row["unpriced"]))
    return format_cost(row["cost_usd"], attempts, row["unknown_cost_usd_most"])


def format_short_costs(cost_usd: float | None, attempts: int, most_usd: float | None) -> list[str]:
    """Return the costs in cents as parts of a longer line; empty if nothing was paid."""
    parts = ["cost unknown"] if cost_usd is None else []
    if cost_usd:
        parts = [f"${cost_usd:.2f}" if cost_usd >= 0.01 else "under $0.01"]
    return [*parts, *filter(None, [describe_unknown_cost(attempts, most_usd)])]


_SECONDS_IN = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}


def format_span(span: timedelta) -> str:
    """Return `3 hours`, in the largest unit that fits."""
    seconds = max(int(span.total_seconds()), 0)
    unit = next((name for name, size in _SECONDS_IN.items() if seconds >= size), "second")
    return format_count(seconds // _SECONDS_IN[unit], unit)


def describe_shortfall(total: int, n_done: int, n_stopped: int, n_failed: int, words: tuple[str, str]) -> str:
    """Return `12 of 24 episodes were played: a budget ended 9, 2 failed, 1 is not made`, or "" if nothing is missing.

    `words`: the noun and the participle, `("episode", "played")`. `n_stopped`: those that a budget stopped.
    """
    if n_done >= total:
        return ""
    remaining = total - n_done - n_stopped - n_failed
    reasons = [
        *([f"a budget ended {n_stopped:,}"] if n_stopped else []),
        *([f"{n_failed:,} failed"] if n_failed else []),
        *([f"{remaining:,} {'is' if remaining == 1 else 'are'} not made"] if remaining > 0 else []),
    ]
    noun, verb = words
    return f"{n_done:,} of {format_count(total, noun)} {'was' if total == 1 else 'were'} {verb}: {', '.join(reasons)}"

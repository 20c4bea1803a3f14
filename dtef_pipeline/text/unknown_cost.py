"""Describe costs of which a part is unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
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

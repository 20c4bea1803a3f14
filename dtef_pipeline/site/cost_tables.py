"""Costs as pages show them. An unknown cost is unknown, not zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.site.content import Column, convert_to_rows
from dtef_pipeline.site.number_text import show
from dtef_pipeline.text.number_words import format_count

_SUMMED_COLUMNS = ["answered", "failed", "calls", "prompt_tokens", "completion_tokens", "cost_usd", "unpriced"]
COST_COLUMNS = (
    Column("calls", "Requests", "count"),
    Column("prompt_tokens", "Prompt tokens", "count", more=True),
    Column("completion_tokens", "Completion tokens", "count", more=True),
    Column("cost_usd", "Cost", "dollars"),
    Column("per_thousand", "Per 1,000 responses", "dollars", "What a thousand more of such responses would cost"),
    Column("unpriced", "Responses of unknown price", "count"),
)
"""Of the rows of `sum_costs`."""


def sum_costs(costs: pd.DataFrame, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Sum the table `costs` for each combination of the columns `columns`, with the cost of a thousand responses."""
    if not len(costs):
        return []
    sums = costs.groupby(list(columns), dropna=False, sort=False)[_SUMMED_COLUMNS].sum(min_count=1).reset_index()
    n_priced = sums["answered"] - sums["unpriced"].fillna(0)
    return convert_to_rows(sums.assign(per_thousand=(1000 * sums["cost_usd"] / n_priced).where(n_priced > 0)))


def describe_costs(costs: pd.DataFrame) -> str:
    """Return a summary: `$1.25 for 480 requests; 12 responses of unknown price.`"""
    if not len(costs):
        return ""
    requests, n_unpriced = format_count(int(costs["calls"].sum()), "request"), int(costs["unpriced"].sum())
    if costs["cost_usd"].isna().all():
        return f"The cost of {requests} is not known."
    note = f"; {format_count(n_unpriced, 'response')} of unknown price" if n_unpriced else ""
    return f"{show(float(costs['cost_usd'].sum()), 'dollars')} for {requests}{note}."

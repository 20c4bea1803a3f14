"""How budgets compare with what an estimate expects, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from dtef_pipeline.asking.models import Budget
from dtef_pipeline.cli.selection import BUDGETS


def budget_lines(who: str, budget: Budget, expected: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    """A line per bound of the budget; `expected`: by bound what is usual and what is the most, NaN where that is unknown."""
    for bound in BUDGETS:
        if (most_allowed := getattr(budget, bound)) is None:
            continue
        usual, most = expected[bound]
        if pd.isna(usual):
            verdict = "cannot be kept: the price is unknown (give input_price and output_price in the models file)"
        elif usual > most_allowed:
            verdict = f"would be reached: {usual:,.4g} expected"
        elif not most <= most_allowed:
            verdict = f"may be reached: {usual:,.4g} expected, at most {'unknown' if pd.isna(most) else f'{most:,.4g}'}"
        else:
            verdict = f"would not be reached: at most {most:,.4g}"
        yield f"{who}{bound} {most_allowed:,} {verdict}"

"""What an estimate says below its table: how budgets compare with it, and settings that are not sent as they were asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.cli.selection import BUDGETS
from dtef_pipeline.errors import GatewayError
from resources.gateway.sent_settings import altered_lines, problem_of_sent, refuse_same_sent


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


def sent_lines(asked: Sequence[ModelSpec]) -> Iterator[str]:
    """A line for each setting of the models that their providers are sent otherwise or not at all, and for what a run would refuse."""
    yield from altered_lines(asked)
    for spec in asked:
        if problem := problem_of_sent(spec):
            yield f"a run would refuse {spec.name}: {problem}"
    try:
        refuse_same_sent(asked, asked)
    except GatewayError as error:
        yield f"a run would refuse this: {error}"

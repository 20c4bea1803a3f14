"""The table of an estimate, how budgets compare with it, and settings that are sent otherwise than given."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pandas as pd
import sqlalchemy as sa

from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.planned_calls import PLANNED, PLANNED_ROLES, PlannedCalls
from dtef_pipeline.asking.request import EMBEDDER
from dtef_pipeline.cli.terminal import print_table, say
from dtef_pipeline.errors import GatewayError
from dtef_pipeline.family.run_settings import RunSettings
from dtef_pipeline.report.terminal import render
from dtef_pipeline.text.counted import and_more, counted
from resources.gateway.prices import Price, price
from resources.gateway.sent_settings import altered_lines, problem_of_sent, refuse_same_sent
from resources.responses.store import ResponseStore
from resources.settings import Settings

if TYPE_CHECKING:
    from assets.engine.dry_run import DryRun


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


BUDGETS = ("max_cost_usd", "max_calls", "max_tokens")
_UNKNOWN_NAMED = 5
DOLLARS = ["cost_usd", "cost_usd_most"]
CALL_COUNTS = ["planned", "requests", "replayed", "calls", "calls_most"]
TOKEN_COUNTS = ["prompt_tokens", "response_tokens", "response_tokens_most"]


def planned_frame(rows: Sequence[PlannedCalls]) -> pd.DataFrame:
    """One row per role and model: the columns of `PLANNED`."""
    return pd.DataFrame([_row(row) for row in rows], columns=["role", "model", *CALL_COUNTS, *TOKEN_COUNTS, *DOLLARS])


def print_planned(frame: pd.DataFrame, lines: Iterable[str], meanings: Mapping[str, str] = PLANNED) -> None:
    """The rows of `planned_frame` as a table for people, then `lines` on them, and what the columns mean.

    `meanings`: of columns that mean something else than in other estimates.
    """
    first_out = ["planned", "calls_most", *TOKEN_COUNTS[::-1], "replayed"]
    print_table(
        told_frame(frame),
        {**PLANNED, **meanings},
        kept=["role", "model", "calls", *DOLLARS],
        first_out=first_out,
        lines=lines,
    )


def print_estimate(
    head: str,
    found: DryRun,
    settings: RunSettings,
    output: str,
    lines: Iterable[str] = (),
    meanings: Mapping[str, str] = PLANNED,
    daily: Mapping[str, float | None] | None = None,
) -> None:
    """What a run would ask, as a table with `head` above it; for other programs the rows alone.

    `settings`: of the run, with its budgets; `lines`: stand below the table; `daily`: by role, US dollars of its day.
    """
    for key, error in found.failures.items():
        say(f"not counted: {key}: {error}", err=True)
    rows = found.counts.sorted_rows()
    frame = planned_frame(rows)
    if output != "table":
        click.echo(render(frame, output))
        return
    click.echo(f"{head}\n")
    budgets = (*_lines_of_budgets(settings, rows), *_lines_of_days(daily or {}, rows))
    print_planned(frame, [*lines, *_lines_of_assumed(found), *budgets, *lines_of_sent(rows)], meanings)


def _lines_of_assumed(found: DryRun) -> Iterator[str]:
    """How long replies are taken to be of models of which none is known."""
    by_tokens: dict[float, list[str]] = {}
    for name, tokens in found.assumed.items():
        by_tokens.setdefault(tokens, []).append(name)
    for tokens, names in by_tokens.items():
        told = and_more(names, _UNKNOWN_NAMED)
        yield (
            f"No reply of {told} is known yet: each is taken to have {counted(int(tokens), 'token')}, or max_tokens if that is less, "
            "also in later prompts that show it. Once there are some, their mean counts."
        )


def _lines_of_budgets(settings: RunSettings, rows: Sequence[PlannedCalls]) -> Iterator[str]:
    """How the budgets of the run, of its roles and of its models compare with the estimate."""
    yield from budget_lines("", settings.budget, planned_usage(rows))
    for role, given in settings.role_budgets.items():
        yield from budget_lines(
            f"{role}: ", Budget(**given.model_dump()), planned_usage(row for row in rows if row.role == role)
        )
    for name, of_file in {row.model.name: row.model.budget for row in rows}.items():
        budget = settings.budgets.get(name, of_file)
        yield from budget_lines(f"{name}: ", budget, planned_usage(row for row in rows if row.model.name == name))


def _lines_of_days(daily: Mapping[str, float | None], rows: Sequence[PlannedCalls]) -> Iterator[str]:
    """How the budgets of a day compare with the estimate."""
    for role, dollars in daily.items():
        own = [row for row in rows if row.role == role]
        if dollars is not None and own:
            for line in budget_lines("", Budget(max_cost_usd=dollars), planned_usage(own)):
                yield line.replace("max_cost_usd", f"daily_budget of {role}s", 1)


def lines_of_sent(rows: Iterable[PlannedCalls]) -> list[str]:
    """As `sent_lines`, of the models that are sent something."""
    asked = {row.model.variant: row.model for row in rows if row.calls and row.role != EMBEDDER}
    return list(sent_lines(list(asked.values())))


@contextmanager
def stored_responses(settings: Settings) -> Iterator[ResponseStore | None]:
    """The response store. One that is not there yet is not made for the asking."""
    url = sa.make_url(settings.responses_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        yield None
        return
    with ResponseStore(settings.responses_url) as store:
        yield store


def _row(row: PlannedCalls) -> dict[str, Any]:
    found = price(row.model) if row.calls else Price(0.0, 0.0)
    most = row.response_tokens_most
    return {
        "role": row.role,
        "model": row.name,
        **{name: getattr(row, name) for name in CALL_COUNTS},
        "prompt_tokens": round(row.prompt_tokens),
        "response_tokens": round(row.response_tokens),
        "response_tokens_most": most if math.isfinite(most) else None,
        "cost_usd": found.of(round(row.prompt_tokens), round(row.response_tokens)) if found else None,
        "cost_usd_most": _most_cost(found, row),
    }


def _most_cost(found: Price | None, row: PlannedCalls) -> float | None:
    """US dollars for the most calls with the longest responses; None: unknown, as is that of responses without a limit."""
    prompt, response = row.prompt_tokens_most, row.response_tokens_most
    if found is None or (math.isinf(prompt) and found.prompt > 0) or (math.isinf(response) and found.completion > 0):
        return None
    return found.of(round(prompt) if math.isfinite(prompt) else 0, round(response) if math.isfinite(response) else 0)


def told_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows as people read them: after each role with several models its sum, at the end that of all."""
    parts = []
    for role in PLANNED_ROLES:
        own = frame[frame["role"] == role]
        parts.append(_texts(own))
        if len(own) > 1:
            parts.append(_texts(_sum(own, role, f"all {len(own)}")))
    parts.append(_texts(_sum(frame, "total", "")))
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def _sum(frame: pd.DataFrame, role: str, model: str) -> pd.DataFrame:
    total: dict[str, Any] = {"role": role, "model": model}
    total |= {name: frame[name].sum() for name in [*CALL_COUNTS, "prompt_tokens", "response_tokens"]}
    total["response_tokens_most"] = frame["response_tokens_most"].sum(skipna=False)
    for name in DOLLARS:
        known = frame[name].dropna()
        text = f"${known.sum():,.4f}" if len(known) or not len(frame) else "unknown"
        total[name] = f"{text} and the unknown" if 0 < len(known) < len(frame) else text
    return pd.DataFrame([total])


def _texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Dollars and the longest responses as texts."""
    most = [f"{value:,.0f}" if pd.notna(value) else "no limit" for value in frame["response_tokens_most"]]
    told = {
        name: [value if isinstance(value, str) else f"${value:,.4f}" if pd.notna(value) else "unknown" for value in frame[name]]
        for name in DOLLARS
    }
    return frame.assign(response_tokens_most=most, **told)


def planned_usage(rows: Iterable[PlannedCalls]) -> dict[str, tuple[float, float]]:
    """By bound of a budget, what is usual and what is the most; NaN: unknown."""
    counted_rows = list(rows)
    dollars = planned_frame(counted_rows)[DOLLARS].astype(float)
    tokens = sum(row.prompt_tokens + row.response_tokens for row in counted_rows)
    most = sum(row.prompt_tokens_most + row.response_tokens_most for row in counted_rows)
    return {
        "max_cost_usd": (dollars["cost_usd"].sum(skipna=False), dollars["cost_usd_most"].sum(skipna=False)),
        "max_calls": (sum(row.calls for row in counted_rows), sum(row.calls_most for row in counted_rows)),
        "max_tokens": (tokens, most if math.isfinite(most) else math.nan),
    }

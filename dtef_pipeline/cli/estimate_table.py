"""The table of an estimate, its comparison with budgets, and settings that are not sent as given."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
import pandas as pd
import sqlalchemy as sa

from dtef_pipeline.asking.call_plan import PLANNED_ROLES, PlannedCalls
from dtef_pipeline.asking.models import Budget
from dtef_pipeline.asking.request import EMBEDDER
from dtef_pipeline.cli.terminal import print_table, say
from dtef_pipeline.errors import GatewayError
from dtef_pipeline.family.run_settings import RunSettings
from dtef_pipeline.report.terminal import render
from dtef_pipeline.text.number_words import format_count, list_first_names
from resources.gateway.model_checks import describe_altered_settings, refuse_same_sent
from resources.gateway.prices import Price, price
from resources.responses.store import ResponseStore
from resources.settings import Settings

if TYPE_CHECKING:
    from assets.engine.dry_run import DryRun


def describe_budget(prefix: str, budget: Budget, expected: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    """Yield a line per limit of the budget. `expected`: by limit the expected and the largest value, NaN if unknown."""
    for bound in BUDGETS:
        if (most_allowed := getattr(budget, bound)) is None:
            continue
        usual, maximum = expected[bound]
        if pd.isna(usual):
            verdict = "cannot be kept: the price is unknown (give input_price and output_price in the models file)"
        elif usual > most_allowed:
            verdict = f"would be reached: {usual:,.4g} expected"
        elif not maximum <= most_allowed:
            verdict = f"may be reached: {usual:,.4g} expected, at most {'unknown' if pd.isna(maximum) else f'{maximum:,.4g}'}"
        else:
            verdict = f"is enough: at most {maximum:,.4g}"
        yield f"{prefix}{bound} {most_allowed:,} {verdict}"


def _describe_sent_settings(rows: Iterable[PlannedCalls]) -> Iterator[str]:
    """Yield a line for each setting that providers are not sent as given, and for two models that a run would refuse."""
    specs = list({row.model.variant: row.model for row in rows if row.calls and row.role != EMBEDDER}.values())
    yield from describe_altered_settings(specs)
    try:
        refuse_same_sent(specs, specs)
    except GatewayError as error:
        yield f"a run would refuse this: {error}"


ESTIMATE = "estimate"
"""Name of an estimate's columns in `dtef explain`."""
BUDGETS = ("max_cost_usd", "max_calls", "max_tokens")
_UNKNOWN_NAMED = 5
DOLLARS = ["cost_usd", "cost_usd_max"]
CALL_COUNTS = ["planned", "requests", "replayed", "calls", "calls_max"]
TOKEN_COUNTS = ["prompt_tokens", "response_tokens", "response_tokens_max"]


def build_call_frame(rows: Sequence[PlannedCalls]) -> pd.DataFrame:
    """Return one row per role and model, with the columns of `PLANNED`."""
    return pd.DataFrame([_build_row(row) for row in rows], columns=["role", "model", *CALL_COUNTS, *TOKEN_COUNTS, *DOLLARS])


def print_estimate(
    head: str,
    plan: DryRun,
    settings: RunSettings,
    output: str,
    lines: Iterable[str] = (),
    explained_as: str = ESTIMATE,
    daily: Mapping[str, float | None] | None = None,
) -> None:
    """Print the calls that a run would make, as a table below `head`; for other programs only the rows.

    `settings`: of the run, with its budgets; `lines`: printed below the table; `daily`: daily budget in US dollars by role.
    """
    for key, error in plan.failures.items():
        say(f"not counted: {key}: {error}", err=True)
    rows = plan.counts.list_sorted_rows()
    frame = build_call_frame(rows)
    if output != "table":
        click.echo(render(frame, output))
        return
    click.echo(head)
    if not rows:
        say("no language model is called: no cost")
        return
    click.echo()
    budgets = (*_compare_budgets(settings, rows), *_compare_daily_budgets(daily or {}, rows))
    print_table(
        format_call_frame(frame),
        explained_as,
        kept=["role", "model", "calls", *DOLLARS],
        first_out=["planned", "calls_max", *TOKEN_COUNTS[::-1], "replayed"],
        lines=[*lines, *_describe_assumed_lengths(plan), *budgets, *_describe_sent_settings(rows)],
    )


def _describe_assumed_lengths(plan: DryRun) -> Iterator[str]:
    """Yield the assumed response lengths of models without stored responses."""
    by_tokens: dict[float, list[str]] = {}
    for name, tokens in plan.assumed.items():
        by_tokens.setdefault(tokens, []).append(name)
    for tokens, names in by_tokens.items():
        yield (
            f"There are no responses of {list_first_names(names, _UNKNOWN_NAMED)} yet: each counts as {format_count(int(tokens), 'token')}, or "
            "max_tokens if that is less, also in later prompts that show it. Later estimates use the mean length of stored responses."
        )


def _compare_budgets(settings: RunSettings, rows: Sequence[PlannedCalls]) -> Iterator[str]:
    """Yield a comparison of the budgets of the run, its roles and its models with the estimate."""
    yield from describe_budget("", settings.budget, sum_expected_usage(rows))
    for role, limits in settings.role_budgets.items():
        yield from describe_budget(
            f"{role}: ", Budget(**limits.model_dump()), sum_expected_usage(row for row in rows if row.role == role)
        )
    for name, file_budget in {row.model.name: row.model.budget for row in rows}.items():
        budget = settings.budgets.get(name, file_budget)
        yield from describe_budget(f"{name}: ", budget, sum_expected_usage(row for row in rows if row.model.name == name))


def _compare_daily_budgets(daily: Mapping[str, float | None], rows: Sequence[PlannedCalls]) -> Iterator[str]:
    for role, dollars in daily.items():
        role_rows = [row for row in rows if row.role == role]
        if dollars is not None and role_rows:
            for line in describe_budget("", Budget(max_cost_usd=dollars), sum_expected_usage(role_rows)):
                yield line.replace("max_cost_usd", f"daily_budget of {role}s", 1)


@contextmanager
def open_response_store(settings: Settings) -> Iterator[ResponseStore]:
    """Open the response store, or an empty one elsewhere if its file does not exist yet."""
    url = sa.make_url(settings.responses_url)
    is_absent = url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file()
    with (
        TemporaryDirectory() as folder,
        ResponseStore(Path(folder, "empty.sqlite") if is_absent else settings.responses_url) as store,
    ):
        yield store


def _build_row(row: PlannedCalls) -> dict[str, Any]:
    rates = price(row.model) if row.calls else Price(0.0, 0.0)
    maximum = row.response_tokens_max
    return {
        "role": row.role,
        "model": row.name,
        **{name: getattr(row, name) for name in CALL_COUNTS},
        "prompt_tokens": round(row.prompt_tokens),
        "response_tokens": round(row.response_tokens),
        "response_tokens_max": maximum if math.isfinite(maximum) else None,
        "cost_usd": rates.compute_cost(round(row.prompt_tokens), round(row.response_tokens)) if rates else None,
        "cost_usd_max": _compute_max_cost(rates, row),
    }


def _compute_max_cost(rates: Price | None, row: PlannedCalls) -> float | None:
    """Return US dollars for the most calls with the longest responses, or None if unknown (no price, or no limit)."""
    prompt, response = row.prompt_tokens_max, row.response_tokens_max
    if rates is None or (math.isinf(prompt) and rates.prompt > 0) or (math.isinf(response) and rates.completion > 0):
        return None
    return rates.compute_cost(round(prompt) if math.isfinite(prompt) else 0, round(response) if math.isfinite(response) else 0)


def format_call_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows for people: a sum after each role with several models, and a total at the end."""
    parts = []
    for role in PLANNED_ROLES:
        group = frame[frame["role"] == role]
        parts.append(_format_texts(group))
        if len(group) > 1:
            parts.append(_format_texts(_sum(group, role, f"all {len(group)}")))
    parts.append(_format_texts(_sum(frame, "total", "")))
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def _sum(frame: pd.DataFrame, role: str, model: str) -> pd.DataFrame:
    total: dict[str, Any] = {"role": role, "model": model}
    total |= {name: frame[name].sum() for name in [*CALL_COUNTS, "prompt_tokens", "response_tokens"]}
    total["response_tokens_max"] = frame["response_tokens_max"].sum(skipna=False)
    for name in DOLLARS:
        values = frame[name].dropna()
        text = f"${values.sum():,.4f}" if len(values) or not len(frame) else "unknown"
        total[name] = f"{text} and the unknown" if 0 < len(values) < len(frame) else text
    return pd.DataFrame([total])


def _format_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with dollars and longest responses as text."""
    limits = [f"{value:,.0f}" if pd.notna(value) else "no limit" for value in frame["response_tokens_max"]]
    extra_columns = {
        name: [value if isinstance(value, str) else f"${value:,.4f}" if pd.notna(value) else "unknown" for value in frame[name]]
        for name in DOLLARS
    }
    return frame.assign(response_tokens_max=limits, **extra_columns)


def sum_expected_usage(rows: Iterable[PlannedCalls]) -> dict[str, tuple[float, float]]:
    """Return the expected and the largest value by limit of a budget; NaN if unknown."""
    counted_rows = list(rows)
    dollars = build_call_frame(counted_rows)[DOLLARS].astype(float)
    tokens = sum(row.prompt_tokens + row.response_tokens for row in counted_rows)
    max_tokens = sum(row.prompt_tokens_max + row.response_tokens_max for row in counted_rows)
    return {
        "max_cost_usd": (dollars["cost_usd"].sum(skipna=False), dollars["cost_usd_max"].sum(skipna=False)),
        "max_calls": (sum(row.calls for row in counted_rows), sum(row.calls_max for row in counted_rows)),
        "max_tokens": (tokens, max_tokens if math.isfinite(max_tokens) else math.nan),
    }

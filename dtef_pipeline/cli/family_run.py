"""`dtef FAMILY run` and its estimate, for every family. A family defines a record, in `NAME_run.py`."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from dtef_pipeline.asking.call_plan import PLANNED_ROLES, PlannedCalls
from dtef_pipeline.asking.models import Budget, Models, ModelSpec
from dtef_pipeline.asking.request import EMBEDDER
from dtef_pipeline.asking.snapshot_order import require_safe
from dtef_pipeline.boards.named_boards import TableLayout
from dtef_pipeline.cli.families import family_commands
from dtef_pipeline.cli.options import collect_lines
from dtef_pipeline.cli.settings_command import RunFlags
from dtef_pipeline.cli.stage_runs import (
    StageRuns,
    apply_budgets,
    check_home_path,
    describe_unanswered,
    refuse_unaskable,
    report_run_end,
    start_stages,
)
from dtef_pipeline.cli.terminal import print_rows, say
from dtef_pipeline.cli.warehouse_access import list_stored_keys, open_warehouse
from dtef_pipeline.errors import ConfigError, GatewayError
from dtef_pipeline.families import COMPUTED_MODELS, FAMILY_BY_NAME
from dtef_pipeline.family.record import Family
from dtef_pipeline.family.run_settings import RunSettings, budgets_of, run_config
from dtef_pipeline.family.stage import Stage
from dtef_pipeline.report.terminal import render
from dtef_pipeline.text.number_words import format_count, list_first_names
from resources.gateway.model_checks import describe_altered_settings, refuse_same_sent, refuse_unknown_providers
from resources.gateway.prices import Price, price
from resources.model_catalog import load_known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.warehouse import Warehouse

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
_ESTIMATE_LAYOUT = TableLayout(
    always_shown=("role", "model", "calls", *DOLLARS),
    hidden_first=("planned", "calls_max", *TOKEN_COUNTS[::-1], "replayed"),
)


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
    lines = (*lines, *_describe_assumed_lengths(plan), *budgets, *_describe_sent_settings(rows))
    print_rows(_ESTIMATE_LAYOUT, format_call_frame(frame), "table", lines, explained_as)


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


Steps = Sequence[tuple[Stage, Sequence[str]]]
"""Stages in order, each with its partitions."""


@dataclass(frozen=True)
class RunContextOfCommand:
    """A run's options, settings and warehouse."""

    family: Family
    options: Any
    """The settings of the family."""
    flags: RunFlags
    environment: Settings
    warehouse: Warehouse

    @cached_property
    def models(self) -> Models:
        return load_known_models(self.environment, COMPUTED_MODELS)


class RunSelection(NamedTuple):
    """A run's partitions and models."""

    keys: Sequence[str]
    names: Collection[str]
    """Names of the models that may be called; budgets may name them."""
    specs: Sequence[ModelSpec] = ()
    """The models that are certainly called."""


class AfterRun(NamedTuple):
    """Messages and exit code after a run."""

    warnings: Iterable[str] = ()
    is_failed: bool = False
    """Whether the run produced nothing although no stage failed."""
    exit_code: int = 0
    """Exit code of the command if no stage failed."""


def choose_all(context: RunContextOfCommand) -> RunSelection:
    """Return all partitions of the family, and the models of the settings. Raises ConfigError without partitions or for unknown models."""
    keys = list_stored_keys(context.warehouse, context.family)
    if not keys:
        raise ConfigError(f"nothing in {context.warehouse.root} yet: `dtef {context.family.name} add` adds something")
    specs = context.models.resolve(context.options.models) if context.options.models else ()
    return RunSelection(keys, {spec.name for spec in specs}, specs)


def stage_config(options: Any, stages: Sequence[Stage]) -> Mapping[str, Mapping[str, Any]]:
    """Return the stages' run configuration: the settings that each takes."""
    return run_config(options, {stage.name: stage.settings for stage in stages})


@dataclass(frozen=True)
class FamilyRun:
    """The record of a family's runs."""

    family: str
    noun: str
    """The noun for a partition."""
    stages: Callable[[], Sequence[Stage]]
    """Imports the stages, which takes seconds."""
    settings: Callable[[Mapping[str, Any]], Any]
    """Returns the settings that the options of a command give."""
    choose: Callable[[RunContextOfCommand], RunSelection] = choose_all
    """Returns the selection. Raises ConfigError if a name is unknown."""
    steps: Callable[[RunContextOfCommand, Sequence[str], Sequence[Stage]], Steps] = lambda context, keys, stages: [
        (entry, keys) for entry in stages
    ]
    """Returns the stages and their partitions; by default all stages of all partitions."""
    refuse: Callable[[RunContextOfCommand, RunSelection], None] = lambda context, selection: None
    """Raises an error if the run is impossible, before any call is made."""
    register: Callable[[Any, Sequence[str]], None] = lambda instance, keys: None
    """Registers partitions with Dagster's instance; by default they are registered elsewhere."""
    config: Callable[[Any, Sequence[Stage]], Mapping[str, Mapping[str, Any]]] = stage_config
    introduce: Callable[[RunContextOfCommand, RunSelection], Iterable[str]] = lambda context, selection: ()
    """Lines that describe the selection, shown before a run and above an estimate."""
    roll_up: Callable[[RunContextOfCommand, StageRuns], None] = lambda context, running: running.roll_up(context.warehouse)
    after: Callable[[RunContextOfCommand, Sequence[str], StageRuns], AfterRun] = lambda context, keys, running: AfterRun()
    makes_warehouse: bool = False
    """Whether a run may create the warehouse."""
    sized_by: tuple[str, str] = ("", "")
    """The stage whose rows measure the size of a run, and the noun for a row, such as responses."""
    failure_columns: tuple[str, ...] = ()
    """Columns of that table with status and error of a call, for warnings on failed calls; empty: no warnings."""
    failed_variants: Callable[[RunContextOfCommand], Sequence[str] | None] = lambda context: None
    """Model variants that warnings on failed calls are about; None: all of the snapshot."""
    assumes: Callable[[DryRun], Iterable[str]] = lambda plan: ()
    """Returns the assumptions of an estimate."""
    explained_as: str = ESTIMATE
    """Name of an estimate's columns in `dtef explain`."""
    daily: Callable[[RunContextOfCommand], Mapping[str, float | None]] = lambda context: {}
    """Daily budget in US dollars by role."""


def family_run(name: str) -> FamilyRun:
    """Return the record of a family's runs."""
    record: FamilyRun = family_commands(name, "run", "RUN")
    return record


def run_or_estimate(record: FamilyRun, options: Any, flags: RunFlags, *, is_estimate: bool, output: str) -> None:
    """Run or estimate. Ends the process with the exit code."""
    if is_estimate and flags.first == "judge":
        raise ConfigError(
            "--estimate does not work with --from judge; use --from ask or --from ingest, in which stored responses cost nothing"
        )
    if is_estimate:
        estimate(record, options, flags, output)
        return
    if output == "csv":
        raise ConfigError("--csv works with --estimate only")
    with collect_lines(output):
        sys.exit(run(record, options, flags))


def run(record: FamilyRun, options: Any, flags: RunFlags) -> int:
    """Run the stages and update the boards. Returns 1 if a partition failed or a file was skipped."""
    context = open_run(record, options, flags)
    selection = record.choose(context)
    context, running = start(record, context, selection)
    running.report(context.warehouse, record.noun)
    after = record.after(context, selection.keys, running)
    for line in (*list_failed_calls(record, context, selection.keys), *after.warnings):
        say(line, err=True)
    return report_run_end(context.warehouse, running.outcome) or after.exit_code or int(after.is_failed)


def list_failed_calls(record: FamilyRun, context: RunContextOfCommand, keys: Sequence[str]) -> Iterator[str]:
    """Yield the lines of `describe_unanswered` of these partitions, unless responses were only judged."""
    if not record.failure_columns or context.flags.first == "judge":
        return
    (table, noun), names = record.sized_by, ["model", *record.failure_columns]
    variants = record.failed_variants(context)
    columns = names if variants is None else [*names, "model_variant"]
    calls: list[tuple[str, str, str | None]] = []
    for key in keys:
        partition = {**context.family.space.levels(key), "snapshot": context.options.snapshot}
        rows = context.warehouse.read_or_empty(table, columns=columns, **partition)
        if variants is not None:
            rows = rows.filter(pc.is_in(rows["model_variant"], pa.array(variants, pa.string())))
        calls += zip(*(rows[name].to_pylist() for name in names), strict=True)
    yield from describe_unanswered(calls, noun)


def start(record: FamilyRun, context: RunContextOfCommand, selection: RunSelection) -> tuple[RunContextOfCommand, StageRuns]:
    """Check everything that can be refused, run the stages and update the boards. Returns the context with its budgets, and the run."""
    check_home_path(context.environment)
    options, flags = context.options, context.flags
    require_safe(options.snapshot)
    options = apply_budgets(options, flags, selection.names, context.models)
    context = replace(context, options=options)
    record.refuse(context, selection)
    budgets, _ = budgets_of(options, selection.specs)
    refuse_unaskable(selection.specs, options.snapshot, context.environment, options.budget, budgets)
    for line in record.introduce(context, selection):
        say(line, err=True)
    with start_stages(record.family, selection.keys, options.snapshot) as running:
        record.register(running.instance, selection.keys)
        stages = record.stages()
        config = record.config(options, stages)
        for names, keys in _together(record.steps(context, selection.keys, stages), stages):
            running.materialize(names, keys, config)
            if running.outcome.failures and names[-1] != stages[-1].name:
                running.done = ()
                break
        if running.is_without_result:
            return context, running
        if flags.no_roll_ups:
            context.warehouse.refresh_database()
        else:
            record.roll_up(context, running)
    return context, running


def _together(steps: Steps, stages: Sequence[Stage]) -> Iterator[tuple[list[str], Sequence[str]]]:
    """Yield the names of consecutive stages with the same partitions, if any, which Dagster runs in order in one run."""
    places = {stage.name: place for place, stage in enumerate(stages)}
    entries = [(places[stage.name] - index, stage.name, list(keys)) for index, (stage, keys) in enumerate(steps) if keys]
    for (_, keys), group in groupby(entries, key=lambda step: (step[0], step[2])):
        yield [name for _, name, _ in group], keys


def estimate(record: FamilyRun, options: Any, flags: RunFlags, output: str) -> None:
    """Print a run's planned calls. Ends with exit code 1 if a file was skipped."""
    context = open_run(record, options, flags)
    selection = record.choose(context)
    plan = plan_dry_run(record, context, selection.keys)
    rows = plan.counts.rows.values()
    with open_response_store(context.environment) as store:
        refuse_unknown_providers((row.model for row in rows if row.calls), store)
    names = {*selection.names, *(row.model.name for row in rows)}
    options = apply_budgets(options, flags, names, context.models)
    stage, noun = record.sized_by
    size = f"{format_count(len(selection.keys), record.noun)}, {format_count(plan.sizes[stage], noun)}, snapshot {options.snapshot}"
    head = "\n".join([*record.introduce(context, selection), size] if output == "table" else [])
    print_estimate(head, plan, options, output, record.assumes(plan), record.explained_as, record.daily(context))
    if context.warehouse.skipped:
        raise SystemExit(1)


def plan_dry_run(record: FamilyRun, context: RunContextOfCommand, keys: Sequence[str]) -> DryRun:
    """Return the planned calls of these partitions."""
    from assets.engine.dry_run import Outside, dry_run

    steps = record.steps(context, keys, record.stages())
    stages, only = [stage for stage, _ in steps], {stage.name: stage_keys for stage, stage_keys in steps}
    with open_response_store(context.environment) as store:
        outside = Outside(context.warehouse, context.environment, store)
        return dry_run(context.family, stages, context.options, keys, outside, only)


def open_run(record: FamilyRun, options: Any, flags: RunFlags) -> RunContextOfCommand:
    """Return the context of a command. Raises WarehouseError if there is no warehouse."""
    return RunContextOfCommand(
        FAMILY_BY_NAME[record.family], options, flags, Settings.read_environment(), open_warehouse(new=record.makes_warehouse)
    )

"""`dtef FAMILY run` and its estimate, for every family. A family defines a record, in `NAME_run.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.asking.snapshot_order import require_safe
from dtef_pipeline.cli.estimate_table import ESTIMATE, open_response_store, print_estimate
from dtef_pipeline.cli.families import family_commands
from dtef_pipeline.cli.options import exit_after, refuse_estimate_of_judging
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
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.cli.warehouse_access import list_stored_keys, open_warehouse
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS, FAMILY_BY_NAME
from dtef_pipeline.family.record import Family
from dtef_pipeline.family.run_settings import budgets_of, run_config
from dtef_pipeline.family.stage import Stage
from dtef_pipeline.text.number_words import format_count
from resources.gateway.model_checks import refuse_unknown_providers
from resources.model_catalog import load_known_models
from resources.settings import Settings
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.engine.dry_run import DryRun

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
    if is_estimate:
        refuse_estimate_of_judging(flags.first)
        estimate(record, options, flags, output)
    else:
        exit_after(lambda: run(record, options, flags), output)


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
    calls: list[tuple[str, str, str | None]] = []
    for key in keys:
        partition = {**context.family.space.levels(key), "snapshot": context.options.snapshot}
        rows = context.warehouse.read_or_empty(table, columns=names, **partition)
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

"""Checks before a run (settings, response store, keys, Dagster's home), and the start of stages and roll-ups."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assets.engine.roll_up_names import BOARD_NAMES, FAMILY_ROLL_UPS
from assets.survey.nightly import load_known_panel
from dtef_pipeline.asking.models import Budget, Models, ModelSpec, resolve_known_selector
from dtef_pipeline.asking.request import LAST_ERROR, ROLES
from dtef_pipeline.cli.options import USUAL_FAMILY
from dtef_pipeline.cli.settings_command import RunFlags
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.cli.warehouse_access import open_warehouse, warn_skipped
from dtef_pipeline.documents import explain_missing_folder, read_document
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.run_settings import FamilySettings, build_settings
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.text.amounts import format_cost
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.number_words import format_count
from resources.failures import describe_error, describe_start_failure, find_unset_variables, links
from resources.file_systems import write_text
from resources.gateway.budget import Accounts
from resources.gateway.model_checks import refuse_early
from resources.gateway.progress import PartsProgress, keep_terminal
from resources.json_posts import require_address
from resources.model_catalog import load_known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings, find_shipped
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.launch import LaunchResult
    from assets.stage.resources import Command


def check_settings(settings: Settings) -> Models:
    """Check files and addresses that stages and roll-ups need later, and return the known models. Raises ConfigError for faults."""
    check_home_path(settings)
    load_known_panel(settings)
    models = load_known_models(settings, BASELINES)
    if settings.webhook:
        require_address("DTEF_WEBHOOK", settings.webhook)
    return models


def check_home_path(settings: Settings) -> None:
    """Raise ConfigError if Dagster's home depends on the current folder."""
    if problem := settings.home_problem:
        raise ConfigError(problem)


@contextmanager
def open_dagster_instance() -> Iterator[Any]:
    """Open the instance of DAGSTER_HOME, which the UI shows. It is created on first use from the shipped template."""
    home = prepare_home()
    import dagster as dg

    try:
        handle = dg.DagsterInstance.get()
    except Exception as error:
        if describe_error(links(error)):
            raise
        remedy = describe_start_problem(error, f"the template is {find_shipped('dagster.yaml')}")
        raise ConfigError(f"{describe_start_failure(home, error)}; {remedy}") from error
    with handle as instance:
        yield instance


def describe_start_problem(error: Exception, template: str) -> str:
    """Return the remedy if Dagster cannot start with its settings: `template`, unless only variables are missing."""
    if unset := find_unset_variables(error):  # The template would replace settings for several machines by those for one.
        return f"set {' and '.join(unset)}, as for the services (`set -a; . /etc/dtef/dtef.env; set +a` if that file exists)"
    return template


def prepare_home() -> Path:
    """Return the folder of Dagster's state, with its `dagster.yaml`. Raises ConfigError if it cannot be created or read."""
    state = Settings.read_environment()
    check_home_path(state)
    home = state.dagster_home
    settings = home / "dagster.yaml"
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not settings.exists():
            write_text(settings, find_shipped("dagster.yaml").read_text(encoding="utf-8"))
    except OSError as error:
        hint = "; choose another folder with DAGSTER_HOME" if not home.is_dir() else ""
        raise ConfigError(f"cannot make the home of Dagster {home}: {explain_missing_folder(home, error)}{hint}") from error
    read_document(settings, "settings file of Dagster", ("storage", "run_launcher", "concurrency"))
    os.environ["DAGSTER_HOME"] = str(home)
    # Number of materialization events written together.
    os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", "50")
    return home


def make_roll_ups(instance: Any, family: str, names: Sequence[str], config: Mapping[str, Mapping[str, Any]]) -> LaunchResult:
    """Run these roll-ups of a family, in a run of their own, over all stored data. `config`: run configuration by name."""
    from assets.launch import materialize

    progress, start = PartsProgress("roll-ups:", len(names), lambda line: None), time.monotonic()
    progress.announce(f"roll-ups: updating {format_count(len(names), 'table')}")
    numbers = count(1)

    def begin(step: str) -> None:
        if step in names:  # checks are steps too
            progress(next(numbers), step)

    try:
        result = materialize(instance, list(names), [], config, on_step=begin, family=family)
        progress.announce(f"roll-ups: done, {time.monotonic() - start:.1f} s")
        return result
    finally:
        progress.close()


def roll_up(instance: Any, family: str, metric: str | None = None) -> LaunchResult:
    """Run all roll-ups of a family. `metric`: the score, if the family has several metrics."""
    return make_roll_ups(
        instance, family, FAMILY_ROLL_UPS[family], {name: {"metric": metric} for name in BOARD_NAMES} if metric else {}
    )


def refresh_boards(family: str, metric: str | None) -> int:
    """Run the roll-ups of a family, and return the exit code: 1 if one failed or a file was skipped. `metric`: see `roll_up`."""
    warehouse, record = open_warehouse(), FAMILY_BY_NAME[family]
    table = record.scores_table
    check_settings(Settings.read_environment())
    if metric is not None:
        SurveyBoardOptions(metric=metric)  # validates the metric
    if not warehouse.tables([table]):
        command = "dtef run" if family == USUAL_FAMILY else f"dtef {family} run"
        raise WarehouseError(f"no {table} in {warehouse.root} yet: they are made by `{command}`")
    start = time.monotonic()
    with keep_terminal(), open_dagster_instance() as instance:
        outcome = roll_up(instance, family, metric)
    code = report_run_end(warehouse, outcome)
    say(f"roll-ups of {', '.join(warehouse.values(table, record.space.first))}, {time.monotonic() - start:.1f} s", err=True)
    return code


def report_run_end(warehouse: Warehouse, outcome: LaunchResult) -> int:
    """Print failures and skipped files, and return the exit code: 1 if there are any."""
    warn_skipped(outcome, warehouse)
    for failure in outcome.failures:
        say(f"error: {failure}", err=True)
    return 1 if outcome.failures or warehouse.skipped else 0


@dataclass
class StageRuns:
    """The stages of a family run by a command, and their outcome."""

    family: str
    instance: Any
    command: Command
    keys: Sequence[str]
    snapshot: str
    outcome: LaunchResult
    done: tuple[str, ...] = ()
    """The partitions whose last stage is complete."""
    started: float = field(default_factory=time.monotonic)

    @property
    def is_without_result(self) -> bool:
        """Whether every partition failed and no model was called, so that boards and costs cannot have changed."""
        return (
            bool(self.outcome.failures) and not self.done and not (self.command.gateway and self.command.gateway.usage_by_role)
        )

    def materialize(self, names: Sequence[str], keys: Sequence[str], config: Mapping[str, Mapping[str, Any]]) -> None:
        """Run these stages for the partitions. `config`: run configuration by stage."""
        from assets import launch
        from assets.stage.partitions import SNAPSHOT_TAG

        tags = {**self.command.tags, SNAPSHOT_TAG: self.snapshot}
        outcome = launch.materialize(self.instance, names, keys, config, tags, family=self.family)
        self.outcome, self.done = self.outcome + outcome, outcome.done

    def roll_up(self, warehouse: Warehouse, metric: str | None = None) -> None:
        """Update the family's roll-ups if anything is scored. `metric`: see `roll_up`."""
        if warehouse.tables([FAMILY_BY_NAME[self.family].scores_table]):
            self.outcome += roll_up(self.instance, self.family, metric)

    def report(self, warehouse: Warehouse, noun: str) -> None:
        """Print skipped files, calls, and how many partitions are complete. `noun`: the noun for a partition."""
        warn_skipped(self.outcome, warehouse)
        print_usage(self.command.gateway.usage_by_role if self.command.gateway else {})
        done_text = f"{len(self.done):,} of " if len(self.done) < len(self.keys) else ""
        seconds = time.monotonic() - self.started
        click.echo(f"{done_text}{format_count(len(self.keys), noun)}, snapshot {self.snapshot}, {seconds:.1f} s")


@contextmanager
def start_stages(family: str, keys: Sequence[str], snapshot: str) -> Iterator[StageRuns]:
    """Open a run of the family's stages, with one gateway and its budgets."""
    with keep_terminal():
        from assets.launch import LaunchResult
        from assets.stage.resources import command

        with open_dagster_instance() as instance, command(list(keys)) as running:
            yield StageRuns(family, instance, running, keys, snapshot, LaunchResult((), ()))


def refuse_unaskable(
    specs: Sequence[ModelSpec],
    snapshot: str,
    settings: Settings,
    budget: Budget | None = None,
    budgets: Mapping[str, Budget] | None = None,
) -> None:
    """Raise GatewayError if a model still to be called in the snapshot has no key, or no price under a budget in dollars.

    `budget`: of the run; `budgets`: by model name.
    """
    with ResponseStore(settings.responses_url) as store:
        refuse_early(specs, snapshot, Accounts(budget or Budget(), budgets or {}), store, os.environ)


def print_usage(by_role: Mapping[str, Any]) -> None:
    """Print a line per role that was called: calls, tokens and dollars."""
    for role, usage in by_role.items():
        cost = format_cost(usage.known_usd, usage.unpriced, usage.most_usd)
        say(f"sent as {role}: {format_count(usage.calls, 'call')}, {format_count(usage.tokens, 'token')}, {cost}")


_FAILED_CALL, _ENDED_BY_BUDGET = "error", ("budget", "skipped_budget")
_ERROR_CHARACTERS_SHOWN = 300


def describe_unanswered(calls: Iterable[tuple[str, str, str | None]], noun: str = "response") -> Iterator[str]:
    """Yield a line per model with failed responses, and per model with responses ended by a budget, sorted by name.

    `calls`: model, status and error of each response. `noun`: a word for a response.
    """
    totals, errors = Counter[str](), defaultdict[tuple[str, str], Counter[str]](Counter)
    for model, status, error in calls:
        totals[model] += 1
        # For responses ended by a budget, the error of the last attempt, if any.
        last = (error or "").partition(LAST_ERROR)[2] if status in _ENDED_BY_BUDGET else error or ""
        errors[model, status][last] += 1
    for (model, status), error_counts in sorted(errors.items()):
        number = format_count(error_counts.total(), noun)
        detail = next((f" ({error[:_ERROR_CHARACTERS_SHOWN]})" for error, _ in error_counts.most_common() if error), "")
        if status == _FAILED_CALL:
            yield f"warning: {model}: {number} of {totals[model]:,} failed{detail}; the same command sends them again"
        elif status in _ENDED_BY_BUDGET:
            yield f"warning: {model}: {number} of {totals[model]:,} missing, because a budget was reached{detail}; the same command continues"


def parse_budgets(costs: Sequence[str], calls: Sequence[str], tokens: Sequence[str] = ()) -> dict[str, Any]:
    """Return the budgets of the run, of roles and of models for the configuration. Raises ConfigError for an invalid or repeated budget."""
    budgets: dict[str, Any] = {"budgets": {}, "role_budgets": {}}
    for name, texts in (("max_cost_usd", costs), ("max_calls", calls), ("max_tokens", tokens)):
        for text in texts:
            owner, _, value = text.rpartition("=")
            bounds = budgets[f"{'role_' if owner in ROLES else ''}budgets"].setdefault(owner, {}) if owner else budgets
            if name in bounds:
                raise ConfigError(f"--{name.replace('_', '-')} is given twice for {owner or 'the run'}; give it once")
            bounds[name] = _parse_amount(name, text, value)
    return budgets


def _parse_amount(name: str, text: str, value: str) -> float:
    try:
        amount = float(value.replace("_", ""))
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf") or (name != "max_cost_usd" and amount != int(amount)):
        roles = ", ".join(ROLES)
        hint = "a number of 0 or more" if name == "max_cost_usd" else "a whole number of 0 or more"
        raise ConfigError(
            f"--{name.replace('_', '-')} {text!r}: {value!r} is not {hint}; a model or role may stand before it, as in "
            f"MODEL=5 (roles: {roles})"
        )
    return amount if name == "max_cost_usd" else int(amount)


def apply_budgets(settings: FamilySettings, flags: RunFlags, names: Collection[str], models: Models) -> FamilySettings:
    """Return the settings with a command's budgets: of the run, of roles, and of models by name.

    Other limits of the models file are kept. `names`: see `resolve_budget_owners`. Raises ConfigError as it does, and for invalid amounts.
    """
    budgets = (resolve_budget_owners(texts, names, models) for texts in (flags.max_cost_usd, flags.max_calls, flags.max_tokens))
    config = parse_budgets(*budgets)
    for name, bounds in config["budgets"].items():
        (spec,) = models.resolve([name])
        config["budgets"][name] = {**spec.budget.model_dump(exclude_none=True), **bounds}
    return build_settings(type(settings), settings.model_dump(exclude_unset=True) | config)


def resolve_budget_owners(texts: Sequence[str], names: Collection[str], models: Models) -> tuple[str, ...]:
    """Return the budgets, with models given by model string under their names in the run.

    `names`: the models of the run. Raises ConfigError if an owner is neither a role nor one of them, as the budget would limit nothing.
    """
    return tuple(_resolve_owner(text, names, models) for text in texts)


def _resolve_owner(text: str, names: Collection[str], models: Models) -> str:
    owner, _, value = text.rpartition("=")
    if not owner or owner in ROLES or owner in names:
        return text
    if (name := name_of_asked(owner, names, models)) is None:
        raise ConfigError(
            f"the budget of {owner!r} limits nothing in this run; roles and models: {list_nearest(owner, {*ROLES, *names})}"
        )
    return f"{name}={value}"


def name_of_asked(text: str, names: Collection[str], models: Models) -> str | None:
    """Return the run's model that the text names in any spelling, or None if there is none. `names`: see `resolve_budget_owners`."""
    if text in names:
        return text
    with suppress(ConfigError):
        specs = models.resolve([resolve_known_selector(text, models)])
        if len(specs) == 1 and specs[0].name in names:
            return specs[0].name
    return None

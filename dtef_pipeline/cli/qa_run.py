"""What `dtef qa run` does, and `dtef rollup` with questions; the words are in `dtef_pipeline/cli/qa_group.py`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assets.qa.askable_parts import refuse_unpriced_judge, require_askable_parts
from assets.qa.panel_part import qa_panel
from dtef_pipeline.asking.models import IMPORTED, Budget, Models, ModelSpec
from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.cli.imported_models import require_imported
from dtef_pipeline.cli.opened_warehouse import open_warehouse, say_skipped
from dtef_pipeline.cli.qa_filter import refuse_empty_filter
from dtef_pipeline.cli.qa_others_judged import say_others_judged
from dtef_pipeline.cli.qa_warnings import failed_models, look_ups_that_failed, nothing_scored
from dtef_pipeline.cli.ready import check_home_path, dagster_instance
from dtef_pipeline.cli.role_budgets import budgets_given, with_owners
from dtef_pipeline.cli.started_runs import roll_up, rolled_up, say_used
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.errors import ConfigError, GatewayError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.keys import Space
from dtef_pipeline.qa.arbiter import Arbiter, chosen_arbiter, judge_snapshot
from dtef_pipeline.qa.asked_parts import parts_that_fit
from dtef_pipeline.qa.prompt_rows import AskedHow
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.transcripts.metadata import written_filter
from dtef_pipeline.text.counted import counted
from resources.gateway.askable import refuse_early
from resources.gateway.budget import Accounts
from resources.gateway.progress import kept_terminal
from resources.known_models import known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings, shipped
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.launch import Launched

_STAGE_TO_BEGIN_WITH = {"ingest": 0, "ask": 1, "judge": 3}
"""The place of the stage that a run begins with."""


@dataclass(frozen=True)
class QaOptions:
    """Options of `dtef qa run`."""

    suites: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    draws: int = 1
    limit: int | None = None
    snapshot: str = "base"
    template: str = "letters"
    few_shot: int = 0
    few_shot_as: str = "message"
    order: str = "file"
    retriever: str = "bm25"
    k: int = 10
    filter: tuple[str, ...] = ()
    judges_file: Path | None = None
    judge: str | None = None
    sample_rate: float | None = None
    daily_budget: float | None = None
    rejudge: str | None = None
    allow_unpriced: Sequence[str] = ()
    sandbox: str | None = None
    timeout_s: float = 10.0
    strict: bool = False
    penalty: float = 0.0
    senses: str = "first"
    max_cost_usd: tuple[str, ...] = ()
    max_calls: tuple[str, ...] = ()
    first: str = "ask"
    """The stage that the run begins with: ingest, ask or judge."""
    no_roll_ups: bool = False

    @property
    def how(self) -> AskedHow:
        """How items are asked."""
        where = written_filter(self.filter)
        return AskedHow(self.template, self.few_shot, self.few_shot_as, self.order, self.retriever, self.k, where)

    def config(self) -> dict[str, dict[str, Any]]:
        """Run configuration by asset name."""
        of_snapshot = {"snapshot": self.snapshot}
        asking = {**of_snapshot, **budgets_given(self.max_cost_usd, self.max_calls)}
        shown = {name: getattr(self, name) for name in ("template", "few_shot", "few_shot_as", "order", "retriever", "k")}
        written_filter(self.filter)  # one that cannot be read is told of before anything starts
        shown["filter"] = list(self.filter)
        arbiter = {name: getattr(self, name) for name in ("judge", "sample_rate", "daily_budget", "rejudge")}
        judges = {"judges_file": str(self.judges_file)} if self.judges_file else {}
        unpriced = {"allow_unpriced": list(self.allow_unpriced)} if self.allow_unpriced else {}
        sandbox = {"sandbox": self.sandbox} if self.sandbox else {}
        return {
            "qa_prompts": shown,
            "qa_responses": {
                **asking,
                **shown,
                "models": list(self.models),
                "draws": self.draws,
                **({} if self.limit is None else {"limit": self.limit}),
            },
            "qa_judgements": {
                **asking,
                **judges,
                **unpriced,
                **{name: value for name, value in arbiter.items() if value is not None},
            },
            "qa_executions": {**of_snapshot, **sandbox, "timeout_s": self.timeout_s},
            "qa_scores": {**of_snapshot, "strict": self.strict, "penalty": self.penalty, "senses": self.senses},
        }


def with_switches(**given: Any) -> QaOptions:
    """The options of the command line, with what the panel file says of judging, running and scoring answers."""
    panel = qa_panel(Settings.from_environment())
    return QaOptions(**given, **(panel.switches if panel else {}))


def run(options: QaOptions) -> int:
    """The exit code: 1 where a part failed or a file was left out, and where a judge is named and there is nothing to judge."""
    settings = Settings.from_environment()
    check_home_path(settings)
    require_safe(options.snapshot)
    warehouse = open_warehouse()
    keys = chosen_parts(warehouse, options.suites, options.parts)
    models = known_models(settings, COMPUTED_MODELS)
    specs = models.resolve(options.models) if options.models else ()
    require_imported(specs, options.snapshot, settings)
    arbiter = arbiter_given(options, models)
    refuse_what_cannot_be_done(options, settings, warehouse, keys, specs, arbiter)
    refuse_empty_filter(warehouse, keys, options.how)
    say_others_judged(warehouse.rows, keys, specs, options.snapshot, arbiter, options.rejudge)
    asked = {spec.name for spec in specs}
    config = with_owners(options, asked | set(models.specs), models).config()
    started = time.monotonic()
    first = _STAGE_TO_BEGIN_WITH[options.first]
    with kept_terminal():
        from assets.launch import QA_STAGE_NAMES
        from assets.stage.partitions import SNAPSHOT_TAG
        from assets.stage.shared_gateway import command

        with dagster_instance() as instance, command(keys) as running:
            tags = {**running.tags, SNAPSHOT_TAG: options.snapshot}
            outcome = materialize_parts(instance, QA_STAGE_NAMES[first:], keys, config, tags)
            done = outcome.done
            if not options.no_roll_ups and warehouse.tables(["qa_scores"]):
                outcome += _roll_ups(instance)
            used = running.gateway.used if running.gateway else {}
    say_skipped(outcome, warehouse)
    say_used(used)
    all_of = f"{len(done):,} of " if len(done) < len(keys) else ""
    click.echo(f"{all_of}{counted(len(keys), 'part')}, snapshot {options.snapshot}, {time.monotonic() - started:.1f} s")
    nothing = tuple(nothing_scored(warehouse, keys, options.snapshot, _imported_names(settings, options.snapshot)))
    warnings = (
        nothing
        if options.first == "judge"
        else (*nothing, *look_ups_that_failed(warehouse, keys, options.how), *failed_models(warehouse, keys, options.snapshot))
    )
    for line in (*warnings, *(f"error: {failure}" for failure in outcome.failures)):
        say(line, err=True)
    judged_nothing = bool(nothing) and options.judge not in (None, "none")
    return 1 if outcome.failures or warehouse.skipped or judged_nothing else 0


def _imported_names(settings: Settings, snapshot: str) -> list[str]:
    """The names of the models whose responses were imported in a snapshot."""
    with ResponseStore(settings.responses_url) as store:
        return [one.name for one in store.models(snapshot) if one.variant.startswith(IMPORTED)]


def refuse_what_cannot_be_done(
    options: QaOptions,
    settings: Settings,
    warehouse: Warehouse,
    keys: Sequence[str],
    specs: Sequence[ModelSpec],
    arbiter: Arbiter | None,
) -> None:
    """Raises ConfigError or GatewayError before anything is bought: for a way of asking that no part allows, a server that is not named, a model
    without a key, and a judge without one, or without a price under a budget of the day."""
    judged = require_askable_parts(warehouse, keys, options.how, settings)
    with ResponseStore(settings.responses_url) as store:
        limit = budgets_given(options.max_cost_usd, options.max_calls).get("max_cost_usd")
        refuse_early(specs, options.snapshot, Accounts(Budget(max_cost_usd=limit), {}), store, os.environ)
        if arbiter is not None and judged:
            refuse_unpriced_judge(arbiter, options.allow_unpriced)
            try:
                refuse_early(
                    [arbiter.model], judge_snapshot(options.rejudge or None), Accounts(Budget(), {}), store, os.environ
                )
            except GatewayError as error:
                raise GatewayError(
                    f"{error}; this is the judge: --judge MODEL names another one, --judge none has nothing judged"
                ) from None


def arbiter_given(options: QaOptions, models: Models) -> Arbiter | None:
    """The judge of the run; None: nobody judges. Raises ConfigError for one that cannot judge, and for a label that cannot be one."""
    arbiter = chosen_arbiter(
        options.judges_file or shipped("judges.yaml"),
        models,
        judge=options.judge,
        sample_rate=options.sample_rate,
        daily_budget=options.daily_budget,
    )
    if arbiter is not None:
        judge_snapshot(options.rejudge or None)
    return arbiter


def rollup() -> int:
    """The exit code: 1 where a roll-up failed, or a file was left out."""
    return rolled_up("qa_scores", "dtef qa run", _roll_ups)


def known_parts(warehouse: Warehouse, table: str = "qa_items", space: Space = QA_SPACE) -> list[str]:
    """The keys of the parts that a table has rows of, in order."""
    suites = warehouse.values(table, space.first)
    return [space.key(suite, part) for suite in suites for part in warehouse.values(table, space.second, suite=suite)]


def chosen_parts(warehouse: Warehouse, suites: Sequence[str], parts: Sequence[str]) -> list[str]:
    """The parts of the suites that fit any of the patterns, as of `parts_that_fit`. Raises ConfigError for a pattern that fits none."""
    known = known_parts(warehouse)
    if not known:
        raise ConfigError(f"no questions in {warehouse.root} yet: `dtef qa add SUITE PATH` adds some")
    return parts_that_fit(known, suites, parts)


def materialize_parts(
    instance: Any,
    names: Sequence[str],
    keys: Sequence[str],
    config: Mapping[str, Mapping[str, Any]],
    tags: Mapping[str, str] | None = None,
) -> Launched:
    from assets.launch import OF_PARTS, materialize

    return materialize(instance, names, keys, config, tags, space=OF_PARTS)


def _roll_ups(instance: Any) -> Launched:
    """All of them."""
    from assets.launch import QA_ROLL_UP_NAMES

    return roll_up(instance, QA_ROLL_UP_NAMES, {})

"""`dtef qa run`, its estimate, and the roll-ups of questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click
import pyarrow as pa

from assets.engine.panel import family_panel
from assets.qa.askable_parts import refuse_unpriced_judge, require_askable_parts
from assets.qa.stages import arbiter_of_run
from dtef_pipeline.asking.models import IMPORTED, ModelSpec
from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.cli.opened_warehouse import open_warehouse, reads_tables
from dtef_pipeline.cli.planned_table import (
    print_estimate,
    stored_responses,
)
from dtef_pipeline.cli.role_budgets import budgets_given, with_budgets
from dtef_pipeline.cli.started_runs import (
    check_home_path,
    end_run,
    refuse_unaskable,
    require_imported,
    start_stages,
    unanswered_lines,
)
from dtef_pipeline.cli.takes_settings import RunFlags
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.errors import ConfigError, GatewayError
from dtef_pipeline.families import COMPUTED_MODELS, FAMILY_BY_NAME
from dtef_pipeline.family.run_settings import command_settings, run_config
from dtef_pipeline.judging.judgement import JUDGE_ROLE
from dtef_pipeline.keys import Space
from dtef_pipeline.qa.arbiter import Arbiter, judge_snapshot
from dtef_pipeline.qa.filter_faults import filter_faults
from dtef_pipeline.qa.judged_rows import JUDGED_ITEM_COLUMNS, judged_items
from dtef_pipeline.qa.others_judged import judgements_of_others
from dtef_pipeline.qa.prompt_rows import AskedHow
from dtef_pipeline.qa.settings import QA_PANEL_SECTION, QA_STAGE_SETTINGS, QaSettings
from dtef_pipeline.qa.settings import chosen_parts as fitting_parts
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.transcripts.remote import REMOTE
from dtef_pipeline.text.counted import and_more, counted
from resources.known_models import known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.warehouse import Warehouse

_REASONS_NAMED = 3


def look_ups_that_failed(warehouse: Warehouse, keys: Sequence[str], how: AskedHow) -> Iterator[str]:
    """A line where a server found nothing for questions of these parts, because it failed, with its most frequent reasons."""
    if how.retriever != REMOTE:
        return
    condition, reasons, asked = how.condition((), about_documents=True), Counter[str](), 0
    for key in keys:
        rows = warehouse.read_or_empty(
            "qa_context", columns=["item_id", "condition", "problem"], **QA_SPACE.levels(key)
        ).to_pylist()
        own = {row["item_id"]: row["problem"] for row in rows if row["condition"] == condition}
        asked += len(own)
        reasons.update(problem for problem in own.values() if problem)
    if failed := reasons.total():
        told = and_more([f"{reason} ({number:,})" for reason, number in reasons.most_common()], _REASONS_NAMED, "; ")
        failed_of = f"{counted(failed, 'look-up')} of {asked:,} failed, so that nobody was asked"
        yield f"warning: {failed_of}: {told}; the same command looks up again"


def nothing_scored(warehouse: Warehouse, keys: Sequence[str], snapshot: str, stored: Sequence[str]) -> Iterator[str]:
    """A line where parts have no responses in a snapshot, so that there was nothing to judge or score.

    `stored`: names of models whose responses were imported in the snapshot: only a run that names them takes them over.
    """
    for key in keys:
        at = {**QA_SPACE.levels(key), "snapshot": snapshot}
        if len(warehouse.read_or_empty("qa_responses", columns=["model"], **at)):
            return
    named = and_more([f"--model {name}" for name in stored], _REASONS_NAMED)
    imported = f"imported responses are scored by a run with {named}" if stored else "--model MODEL asks one"
    yield f"warning: nothing was judged or scored, because no responses of snapshot {snapshot!r} are in the tables: {imported}"


def failed_models(warehouse: Warehouse, keys: Sequence[str], snapshot: str) -> Iterator[str]:
    """The lines of `unanswered_lines` of parts and a snapshot."""
    names = ["model", "call_status", "error"]
    calls: list[tuple[str, str, str | None]] = []
    for key in keys:
        rows = warehouse.read_or_empty("qa_responses", columns=names, **QA_SPACE.levels(key), snapshot=snapshot)
        calls += zip(*(rows[name].to_pylist() for name in names), strict=True)
    yield from unanswered_lines(calls)


_COUNTED_OF_RESPONSES = ("item_id", "model", "model_variant", "call_status", "request_key", "response")
_COUNTED_OF_JUDGEMENTS = ("answer_key", "evaluator", "judge_variant", "judge_snapshot", "raw")
_OTHERS_NAMED = 3


def say_others_judged(
    read: Callable[..., pa.Table],
    keys: Sequence[str],
    specs: Sequence[ModelSpec],
    snapshot: str,
    arbiter: Arbiter | None,
    rejudge: str | None,
) -> None:
    """One line on standard error where models are named, and stored responses of others are judged too.

    `read`: rows of a table, given its name, the columns and the levels.
    """
    if arbiter is None or not specs:
        return
    named, label, found = {spec.variant for spec in specs}, judge_snapshot(rejudge or None), Counter[str]()
    for key in keys:
        at = QA_SPACE.levels(key)
        if items := judged_items(read("qa_items", columns=JUDGED_ITEM_COLUMNS, **at)):
            responses = read("qa_responses", columns=_COUNTED_OF_RESPONSES, **at, snapshot=snapshot)
            judgements = read("qa_judgements", columns=_COUNTED_OF_JUDGEMENTS, **at, snapshot=snapshot)
            found += judgements_of_others(responses, judgements, items, arbiter, label, named)
    if found:
        told = and_more([f"{model} ({number:,})" for model, number in found.most_common()], _OTHERS_NAMED)
        judged = f"{counted(found.total(), 'judgement')} of stored responses of models that are not named"
        say(f"note: the judge is asked for all that is stored of a part, also for {judged}: {told}", err=True)


def refuse_empty_filter(warehouse: Warehouse, keys: Sequence[str], how: AskedHow) -> None:
    """Raises ConfigError where the filter leaves no document of any of the parts; warns of each where others have some."""
    faults = filter_faults(
        keys, how, lambda key, columns: warehouse.read_or_empty("qa_documents", columns=columns, **QA_SPACE.levels(key))
    )
    for key, text in faults.items():
        say(f"warning: {key}: {text}", err=True)


_STAGE_TO_BEGIN_WITH = {"ingest": 0, "ask": 1, "judge": 3}
"""The place of the stage that a run begins with."""


def with_panel(given: Mapping[str, Any]) -> QaSettings:
    """The settings that options give, with what the panel file alone says of judging, running and scoring answers."""
    return command_settings(QaSettings, given, family_panel(Settings.from_environment(), QA_PANEL_SECTION, QaSettings))


def run(options: QaSettings, beside: RunFlags) -> int:
    """The exit code: 1 where a part failed or a file was left out, and where a judge is named and there is nothing to judge."""
    settings = Settings.from_environment()
    check_home_path(settings)
    require_safe(options.snapshot)
    warehouse = open_warehouse()
    keys = chosen_parts(warehouse, options.suites, options.parts)
    models = known_models(settings, COMPUTED_MODELS)
    specs = models.resolve(options.models) if options.models else ()
    require_imported(specs, options.snapshot, settings)
    arbiter = arbiter_of_run(models, options)
    refuse_what_cannot_be_done(options, beside, settings, warehouse, keys, specs, arbiter)
    refuse_empty_filter(warehouse, keys, options.how)
    say_others_judged(warehouse.rows, keys, specs, options.snapshot, arbiter, options.rejudge)
    asked = {spec.name for spec in specs} | set(models.specs)
    options = with_budgets(options, beside.max_cost_usd, beside.max_calls, asked, models)
    config = run_config(options, QA_STAGE_SETTINGS)
    with start_stages("qa", keys, options.snapshot) as running:
        from assets.launch import QA_STAGE_NAMES

        running.materialize(QA_STAGE_NAMES[_STAGE_TO_BEGIN_WITH[beside.first] :], keys, config)
        if not beside.no_roll_ups:
            running.roll_up(warehouse)
    running.report(warehouse, "part")
    nothing = tuple(nothing_scored(warehouse, keys, options.snapshot, _imported_names(settings, options.snapshot)))
    warnings = (
        nothing
        if beside.first == "judge"
        else (*nothing, *look_ups_that_failed(warehouse, keys, options.how), *failed_models(warehouse, keys, options.snapshot))
    )
    for line in warnings:
        say(line, err=True)
    judged_nothing = bool(nothing) and options.judge not in (None, "none")
    return end_run(warehouse, running.outcome) or int(judged_nothing)


def _imported_names(settings: Settings, snapshot: str) -> list[str]:
    """The names of the models whose responses were imported in a snapshot."""
    with ResponseStore(settings.responses_url) as store:
        return [one.name for one in store.models(snapshot) if one.variant.startswith(IMPORTED)]


def refuse_what_cannot_be_done(
    options: QaSettings,
    beside: RunFlags,
    settings: Settings,
    warehouse: Warehouse,
    keys: Sequence[str],
    specs: Sequence[ModelSpec],
    arbiter: Arbiter | None,
) -> None:
    """Raises ConfigError or GatewayError before anything is bought: for a way of asking that no part allows, a server that is not named, a model
    without a key, and a judge without one, or without a price under a budget of the day."""
    judged = require_askable_parts(warehouse, keys, options.how, settings)
    refuse_unaskable(
        specs, options.snapshot, settings, budgets_given(beside.max_cost_usd, beside.max_calls).get("max_cost_usd")
    )
    if arbiter is not None and judged:
        refuse_unpriced_judge(arbiter, options.allow_unpriced)
        try:
            refuse_unaskable([arbiter.model], judge_snapshot(options.rejudge), settings)
        except GatewayError as error:
            raise GatewayError(
                f"{error}; this is the judge: --judge MODEL names another one, --judge none has nothing judged"
            ) from None


def known_parts(warehouse: Warehouse, table: str = "qa_items", space: Space = QA_SPACE) -> list[str]:
    """The keys of the parts that a table has rows of, in order."""
    suites = warehouse.values(table, space.first)
    return [space.key(suite, part) for suite in suites for part in warehouse.values(table, space.second, suite=suite)]


def chosen_parts(warehouse: Warehouse, suites: Sequence[str], parts: Sequence[str]) -> list[str]:
    """The parts of the suites that fit any of the patterns, as of `fitting_parts`. Raises ConfigError for a pattern that fits none."""
    known = known_parts(warehouse)
    if not known:
        raise ConfigError(f"no questions in {warehouse.root} yet: `dtef qa add SUITE PATH` adds some")
    return fitting_parts(known, suites, parts)


@reads_tables
def estimate(warehouse: Warehouse, options: QaSettings, beside: RunFlags, output: str) -> None:
    from assets.engine.dry_run import Outside, dry_run
    from assets.qa.stages import QA_STAGES

    settings = Settings.from_environment()
    keys = chosen_parts(warehouse, options.suites, options.parts)
    models = known_models(settings, COMPUTED_MODELS)
    arbiter = arbiter_of_run(models, options)
    refuse_empty_filter(warehouse, keys, options.how)
    with stored_responses(settings) as store:
        stages = QA_STAGES[_STAGE_TO_BEGIN_WITH[beside.first] :]
        found = dry_run(FAMILY_BY_NAME["qa"], stages, options, keys, Outside(warehouse, settings), store)
    if waiting := sum(found.said["not_looked_up"]):
        told = f"{counted(waiting, 'question')} for which nothing was looked up yet"
        click.echo(f"not counted: {told}; `dtef qa run --retriever remote` without --model asks the server", err=True)
    say_others_judged(warehouse.rows, keys, models.resolve(options.models), options.snapshot, arbiter, options.rejudge)
    names = {spec.name for spec in models.resolve(options.models)} | set(models.specs)
    options = with_budgets(options, beside.max_cost_usd, beside.max_calls, names, models)
    responses = counted(found.sizes["qa_responses"], "response")
    head = f"{counted(len(keys), 'part')}, {responses}, snapshot {options.snapshot}"
    print_estimate(head, found, options, output, daily={JUDGE_ROLE: arbiter.daily_budget} if arbiter else None)

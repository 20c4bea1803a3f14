"""`dtef qa run`, its estimate, and the roll-ups of questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from assets.qa.part_checks import refuse_unpriced_judge, require_askable_parts
from assets.qa.stages import resolve_run_arbiter
from dtef_pipeline.cli.families import family_settings, load_stages
from dtef_pipeline.cli.family_run import AfterRun, FamilyRun, RunContextOfCommand, RunSelection, Steps
from dtef_pipeline.cli.stage_runs import StageRuns, refuse_unaskable
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.cli.warehouse_access import list_stored_keys
from dtef_pipeline.errors import ConfigError, GatewayError
from dtef_pipeline.families import COMPUTED_MODELS, FAMILY_BY_NAME
from dtef_pipeline.family.stage import Stage
from dtef_pipeline.judging.judgement import JUDGE_ROLE
from dtef_pipeline.qa.judging.arbiter import judge_snapshot
from dtef_pipeline.qa.prompt_rows import AskSettings, filter_faults
from dtef_pipeline.qa.settings import choose_parts
from dtef_pipeline.qa.tables import QA_SPACE
from dtef_pipeline.qa.transcripts.retriever import REMOTE, normalise_model_string
from dtef_pipeline.text.number_words import format_count, list_first_names
from resources.model_catalog import load_known_models
from resources.settings import Settings
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.engine.dry_run import DryRun

_REASONS_NAMED = 3


def list_failed_look_ups(warehouse: Warehouse, keys: Sequence[str], setup: AskSettings) -> Iterator[str]:
    """Yield a line if a server's look-ups for questions of these parts failed, with the most frequent reasons."""
    if setup.retriever != REMOTE:
        return
    condition, reasons, total = setup.condition((), about_documents=True), Counter[str](), 0
    for key in keys:
        rows = warehouse.read_or_empty(
            "qa_context", columns=["item_id", "condition", "problem"], **QA_SPACE.levels(key)
        ).to_pylist()
        problems = {row["item_id"]: row["problem"] for row in rows if row["condition"] == condition}
        total += len(problems)
        reasons.update(problem for problem in problems.values() if problem)
    if n_failed := reasons.total():
        summary_text = list_first_names(
            [f"{reason} ({number:,})" for reason, number in reasons.most_common()], _REASONS_NAMED, "; "
        )
        failure_text = f"{format_count(n_failed, 'look-up')} of {total:,} failed, so no model was called"
        yield f"warning: {failure_text}: {summary_text}; the same command looks up again"


def describe_nothing_scored(warehouse: Warehouse, keys: Sequence[str], snapshot: str) -> Iterator[str]:
    """Yield a line if the parts have no responses in a snapshot, so that nothing was judged or scored."""
    for key in keys:
        partition = {**QA_SPACE.levels(key), "snapshot": snapshot}
        if len(warehouse.read_or_empty("qa_responses", columns=["model"], **partition)):
            return
    yield (
        f"warning: nothing was judged or scored, because no responses of snapshot {snapshot!r} are in the tables: "
        "--model MODEL asks one"
    )


def resolve_model_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names in this project's spelling: `provider:name` becomes `provider/name`, unless a model or collection has that name.

    Other names are unchanged, for the command to report.
    """
    try:
        models = load_known_models(Settings.read_environment(), COMPUTED_MODELS)
    except ConfigError:
        return tuple(names)
    known_names = {*models.specs, *models.collections, *models.computed}
    return tuple(name if name.partition("@")[0] in known_names else _convert_name(name) for name in names)


def _convert_name(name: str) -> str:
    try:
        return normalise_model_string(name)
    except ConfigError:
        return name


_STAGE_TO_BEGIN_WITH = {"ingest": 0, "ask": 1, "judge": 3}
"""The index of the first stage of a run."""


def _refuse(context: RunContextOfCommand, selection: RunSelection) -> None:
    """Raise ConfigError or GatewayError for a run that cannot succeed.

    Causes: no part allows the settings, the server is not configured, or the judge has no key, or no price under a daily budget.
    """
    options, arbiter = context.options, resolve_run_arbiter(context.models, context.options)
    is_judged = require_askable_parts(context.warehouse, selection.keys, options.ask_settings, context.environment)
    if arbiter is not None and is_judged:
        refuse_unpriced_judge(arbiter, options.allow_unpriced)
        try:
            refuse_unaskable([arbiter.model], judge_snapshot(options.rejudge), context.environment)
        except GatewayError as error:
            raise GatewayError(
                f"{error}; this is the judge: --judge MODEL names another judge, --judge none turns judging off"
            ) from None


def _select_stored_parts(warehouse: Warehouse, suites: Sequence[str], parts: Sequence[str]) -> list[str]:
    """Return the parts of the suites that match any pattern (see `choose_parts`). Raises ConfigError if a pattern matches nothing."""
    keys = list_stored_keys(warehouse, FAMILY_BY_NAME["qa"])
    if not keys:
        raise ConfigError(f"no questions in {warehouse.root} yet: `dtef qa add SUITE PATH` adds some")
    return choose_parts(keys, suites, parts)


def _choose(context: RunContextOfCommand) -> RunSelection:
    options, models = context.options, context.models
    keys = _select_stored_parts(context.warehouse, options.suites, options.parts)
    specs = models.resolve(options.models) if options.models else ()
    read = context.warehouse.read_or_empty
    faults = filter_faults(
        keys, options.ask_settings, lambda key, columns: read("qa_documents", columns=columns, **QA_SPACE.levels(key))
    )
    for key, text in faults.items():
        say(f"warning: {key}: {text}", err=True)
    return RunSelection(keys, {spec.name for spec in specs} | set(models.specs), specs)


def _list_steps(context: RunContextOfCommand, keys: Sequence[str], stages: Sequence[Stage]) -> Steps:
    return [(stage, keys) for stage in stages[_STAGE_TO_BEGIN_WITH[context.flags.first] :]]


def _summarize_run(context: RunContextOfCommand, keys: Sequence[str], _: StageRuns) -> AfterRun:
    warehouse, options = context.warehouse, context.options
    warnings = tuple(describe_nothing_scored(warehouse, keys, options.snapshot))
    is_failed = bool(warnings) and options.judge not in (None, "none")
    look_ups = () if context.flags.first == "judge" else list_failed_look_ups(warehouse, keys, options.ask_settings)
    return AfterRun((*warnings, *look_ups), is_failed)


def _describe_uncounted(plan: DryRun) -> Iterator[str]:
    if waiting := sum(plan.descriptions["n_failed_look_ups"]):
        summary_text = f"{format_count(waiting, 'question')} without a look-up"
        yield f"not counted: {summary_text}; `dtef qa run --retriever remote` without --model asks the server"


def _find_daily_budgets(context: RunContextOfCommand) -> Mapping[str, float | None]:
    arbiter = resolve_run_arbiter(context.models, context.options)
    return {JUDGE_ROLE: arbiter.daily_budget} if arbiter else {}


QA_RUN = FamilyRun(
    "qa",
    "part",
    partial(load_stages, "qa", "QA_STAGES"),
    partial(family_settings, "qa"),
    _choose,
    _list_steps,
    _refuse,
    after=_summarize_run,
    sized_by=("qa_responses", "response"),
    failure_columns=("call_status", "error"),
    assumes=_describe_uncounted,
    daily=_find_daily_budgets,
)

"""`dtef rubric run`, its estimate, and the roll-ups of rubrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from assets.engine.settings_config import load_family_panel
from dtef_pipeline.cli.families import family_settings, filter_by_patterns, load_stages
from dtef_pipeline.cli.family_run import AfterRun, FamilyRun, RunContextOfCommand, RunSelection, Steps
from dtef_pipeline.cli.stage_runs import StageRuns
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.documents import read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.family.stage import Stage
from dtef_pipeline.rubric.analysts import (
    FOR_KEY_POINTS,
    USUAL_POINTS,
    choose_analysts,
    choose_extracting_model,
    is_to_be_judged,
)
from dtef_pipeline.rubric.blueprint.model import EXTRACTED
from dtef_pipeline.rubric.episodes import Candidates, choose_judges, choose_selectors, list_candidate_names
from dtef_pipeline.rubric.rubric_roll_ups import UNREADABLE_FROM, UNREADABLE_REASONS
from dtef_pipeline.rubric.scoring import choose_embedder
from dtef_pipeline.rubric.settings import RUBRIC_PANEL_SECTION, RubricSettings
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.number_words import format_count, list_first_names
from resources.model_catalog import load_known_models
from resources.settings import Settings
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.engine.dry_run import DryRun


def run_warnings(warehouse: Warehouse, keys: Sequence[str], snapshot: str) -> Iterator[str]:
    """Yield warnings of blank responses per model, missing key points, and many unreadable replies per judge."""
    responses = _read_snapshot_rows(warehouse, "rubric_responses", ["model", "status"], keys, snapshot)
    for model, status in responses.groupby("model")["status"]:
        if empty := int((status == "empty").sum()):
            yield f"warning: {model}: {format_count(empty, 'response')} of {len(status):,} blank, so they have no score"
    table = pa.concat_tables([warehouse.read_or_empty("rubric_extractions", columns=["reason"], blueprint=key) for key in keys])
    if lacking := len(table) - table["reason"].null_count:
        yield f"warning: key points of {format_count(lacking, 'ideal answer')} could not be extracted: only similarity counts there"
    judgements = _read_snapshot_rows(warehouse, "rubric_judgements", ["judge", "class", "reason"], keys, snapshot)
    for judge, group in judgements.groupby("judge"):
        replies = group[group["class"].notna() | group["reason"].isin(UNREADABLE_REASONS)]
        unread = int(replies["class"].isna().sum())
        if unread > UNREADABLE_FROM * len(replies):
            yield f"warning: {judge}: {unread:,} of {format_count(len(replies), 'judgement')} could not be read, and count as missing"


def describe_removed_summaries(keys: Sequence[str]) -> Iterator[str]:
    """Yield a line on blueprints, if any, whose summaries and grades were removed because no analyst was named. `keys`: their ids."""
    if keys:
        yield (
            f"warning: the summaries and grades of {format_count(len(keys), 'blueprint')} "
            f"({list_first_names(keys, _BLUEPRINTS_NAMED)}) were of other "
            "responses, scores or criteria, or by an analyst that is no longer known, and no analyst is named, so they were taken "
            "away; `analysts: [MODEL]` in the section `rubric` of the panel file asks again, or replays what is stored"
        )


def _read_snapshot_rows(
    warehouse: Warehouse, table: str, columns: list[str], keys: Sequence[str], snapshot: str
) -> pd.DataFrame:
    tables = [warehouse.read_or_empty(table, columns=columns, blueprint=key, snapshot=snapshot) for key in keys]
    rows: pd.DataFrame = pa.concat_tables(tables).to_pandas()
    return rows


_BLUEPRINTS_NAMED = 5
"""How many blueprints are listed if they have nothing to judge."""


def with_panel(options: Mapping[str, Any]) -> RubricSettings:
    """Return the settings of the options and the panel file. Raises ConfigError for unknown models in the panel."""
    environment = Settings.read_environment()
    panel = load_family_panel(environment, RUBRIC_PANEL_SECTION, RubricSettings)
    if panel is not None:
        models = load_known_models(environment, COMPUTED_MODELS)
        _require_known(environment, "analysts", lambda: choose_analysts(panel.analysts, models))
        _require_known(environment, "embedder", lambda: choose_embedder(panel.embedder, models))
    settings: RubricSettings = family_settings("rubric", options)
    return settings


def _require_known(environment: Settings, key: str, choose: Callable[[], object]) -> None:
    """Raise ConfigError with the panel file's line if a model of this key cannot be chosen."""
    try:
        choose()
    except ConfigError as error:
        assert environment.panel is not None
        document = read_document(environment.panel, "panel file", [RUBRIC_PANEL_SECTION])
        raise document.error((RUBRIC_PANEL_SECTION, key), str(error)) from None


def choose_answered_blueprints(warehouse: Warehouse, keys: Sequence[str], snapshot: str) -> list[str]:
    """Return the blueprints with responses in the snapshot, and warn of others. Raises ConfigError without any."""
    snapshots = {key: warehouse.values("rubric_responses", "snapshot", blueprint=key) for key in keys}
    answered_keys = [key for key in keys if snapshot in snapshots[key]]
    lacking = list_first_names([key for key in keys if key not in answered_keys], _BLUEPRINTS_NAMED)
    if not answered_keys:
        known_labels = {label for labels in snapshots.values() for label in labels}
        raise ConfigError(f"snapshot {snapshot!r}: no responses of {lacking}; known: {list_nearest(snapshot, known_labels)}")
    if lacking:
        say(f"warning: not judged, since snapshot {snapshot} has no responses of them: {lacking}", err=True)
    return answered_keys


def _list_with_key_points(warehouse: Warehouse, keys: Sequence[str]) -> list[str]:
    """Return the blueprints with criteria extracted in an earlier run. A run without the setting removes them."""
    sources = {key: warehouse.rows("rubric_criteria", columns=["source"], blueprint=key)["source"] for key in keys}
    return [key for key, column in sources.items() if EXTRACTED in column.to_pylist()]


def _collect_model_names(context: RunContextOfCommand, keys: Sequence[str]) -> set[str]:
    """Return the models that a run may call. Raises ConfigError if a model or judge cannot be called."""
    options, models, warehouse, is_ingest = context.options, context.models, context.warehouse, context.flags.first == "ingest"
    names = {*Candidates(models, options.models).names, *(models.specs if is_ingest else ())}
    selectors: set[str] = set()
    if options.extract_points:
        names.add(choose_extracting_model(options.analysts, models).name)
    for key in keys:
        criteria = warehouse.rows("rubric_criteria", columns=["prompt", "kind"], blueprint=key)
        prompts = warehouse.rows("rubric_prompts", columns=["prompt", "ideal"], blueprint=key)
        head = warehouse.rows("rubric_blueprints", columns=["models", "judges"], blueprint=key).to_pylist()
        # If the blueprint is read in this run, the judging stage resolves the judges.
        is_known = bool(head) or not is_ingest
        if options.judges or (is_known and is_to_be_judged(prompts, criteria, extracting=options.extract_points)):
            judges = choose_judges(options.judges, head[0]["judges"] if head else [], models, options.scale)
            names.update(judge.model.name for judge in judges)
        if head and context.flags.first == "ask":
            codes = warehouse.rows("rubric_findings", columns=["code"], blueprint=key)["code"].to_pylist()
            selectors.update(choose_selectors(options.models, key, head[0]["models"], codes))
    names.update(spec.name for spec in (*choose_analysts(options.analysts, models), choose_embedder(options.embedder, models)))
    return {*names, *list_candidate_names(selectors, models)}


def _choose(context: RunContextOfCommand) -> RunSelection:
    blueprints = context.warehouse.values("rubric_blueprints", "blueprint")
    if not blueprints:
        raise ConfigError(f"no blueprint in {context.warehouse.root} yet: `dtef rubric add PATH` adds some")
    keys = filter_by_patterns(blueprints, context.options.blueprints, "--blueprint")
    if context.flags.first == "judge":
        keys = choose_answered_blueprints(context.warehouse, keys, context.options.snapshot)
    return RunSelection(keys, _collect_model_names(context, keys))


def _list_steps(context: RunContextOfCommand, keys: Sequence[str], stages: Sequence[Stage]) -> Steps:
    """Return the stages with their blueprints. Files are read again on request, or if key points are added or removed."""
    is_reread = context.flags.first == "ingest" or context.options.extract_points
    read = keys if is_reread else _list_with_key_points(context.warehouse, keys)
    later_stages = stages[2:] if context.flags.first == "judge" else stages[1:]
    return [(stages[0], read), *((stage, keys) for stage in later_stages)]


def _summarize_run(context: RunContextOfCommand, keys: Sequence[str], running: StageRuns) -> AfterRun:
    warnings = run_warnings(context.warehouse, keys, context.options.snapshot)
    return AfterRun((*warnings, *describe_removed_summaries(running.outcome.taken_away)))


def _describe_assumptions(plan: DryRun) -> Iterator[str]:
    if lacking := sum(row.calls for row in plan.counts.list_sorted_rows() if row.name.endswith(FOR_KEY_POINTS)):
        yield f"{format_count(lacking, 'ideal answer')} without extracted key points, assumed to have {USUAL_POINTS} each"


RUBRIC_RUN = FamilyRun(
    "rubric",
    "blueprint",
    partial(load_stages, "rubric", "RUBRIC_STAGES"),
    with_panel,
    _choose,
    _list_steps,
    after=_summarize_run,
    sized_by=("rubric_responses", "response"),
    failure_columns=("status", "error"),
    assumes=_describe_assumptions,
)

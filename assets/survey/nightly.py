"""The nightly schedule of surveys: it repeats the rounds of the panel file in a new snapshot."""

from collections.abc import Sequence

import dagster as dg

from assets.engine.nightly_schedules import NightPlan, build_night_schedule
from assets.stage.family_drift import load_drift_section, load_panel_section, panel_drift
from assets.stage.partitions import load_store_models
from assets.stage.resources import Store
from dtef_pipeline.asking.models import Models
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.identity import partition_key, split_partition_key
from dtef_pipeline.survey.settings import (
    SurveySettings,
    build_survey_run_config,
    check_named,
    load_panel,
    resolve_panel_models,
    select_panel_partitions,
)
from resources.settings import Settings
from resources.warehouse import Warehouse


def load_known_panel(settings: Settings) -> SurveySettings:
    """Return the panel or its defaults. Raises ConfigError if the file of DTEF_PANEL is missing, or its keys or `drift` are wrong."""
    panel = load_panel_section(settings, load_panel)
    load_drift_section(settings)
    return panel or SurveySettings()


def load_checked_panel(settings: Settings, models: Models, warehouse: Warehouse | None) -> SurveySettings:
    """Return the panel (see `load_known_panel`) after checking its models, rounds and segments.

    Raises ConfigError, with file and line, for what does not exist. Rounds and segments are not checked without a `warehouse`, or if it has
    no rounds.
    """
    panel, path = load_known_panel(settings), settings.panel
    if path is None:
        return panel
    check_named(path, models, _list_ingested(warehouse) if warehouse else [])
    panel_drift(settings, warehouse)
    return panel


def _list_ingested(warehouse: Warehouse) -> list[str]:
    return [
        partition_key(round_id, segment)
        for round_id in warehouse.values("survey_responses", "round")
        for segment in warehouse.values("survey_responses", "segment", round=round_id)
    ]


def with_blueprints(warehouse: Warehouse, keys: Sequence[str]) -> list[str]:
    """Return the partitions with prompts; partitions that were only ingested have none."""
    rounds = {split_partition_key(key)[0] for key in keys}
    stored_keys = {(name, segment) for name in rounds for segment in warehouse.values("blueprints", "segment", round=name)}
    return [key for key in keys if split_partition_key(key) in stored_keys]


def plan_surveys(_: dg.ScheduleEvaluationContext, store: Store, panel: SurveySettings, known_keys: Sequence[str]) -> NightPlan:
    """Plan the stages from the predictions on, leaving out and naming partitions without prompts."""
    selection = resolve_panel_models(panel, load_store_models(store))
    keys = select_panel_partitions(panel, known_keys) if known_keys else []
    config = {stage: fields for stage, fields in build_survey_run_config(selection).items() if stage != "blueprints"}
    return NightPlan(keys, with_blueprints(store.warehouse, keys), {**config, "drift_checks": {}})


survey_nightly_schedule = build_night_schedule(
    FAMILY_BY_NAME["survey"],
    plan_surveys,
    time=(2, 0),
    description="the prompts of the panel (DTEF_PANEL), in a snapshot named after the date.",
    skip_reason="no round has been ingested yet, or no partition of the panel has been run: `dtef run --round ROUND` makes the prompts that "
    "a night needs",
    read_panel=load_known_panel,
)

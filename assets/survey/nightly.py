"""The nightly schedule of surveys: it repeats the panel's rounds in a snapshot of the night."""

import dagster as dg

from assets.engine.family_nights import NightPlan, build_night_schedule
from assets.stage.file_notes import list_partitions
from assets.stage.request_batches import load_store_models
from assets.stage.resources import Store
from assets.survey.panel_file import load_known_panel, with_blueprints
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.settings import SurveySettings, build_survey_run_config, resolve_panel_models, select_panel_partitions


def plan_surveys(context: dg.ScheduleEvaluationContext, store: Store, panel: SurveySettings) -> NightPlan:
    """Plan the stages from the predictions on, leaving out and naming partitions without prompts."""
    selection, known_keys = resolve_panel_models(panel, load_store_models(store)), list_partitions(context.instance, SPACE)
    keys = select_panel_partitions(panel, known_keys) if known_keys else []
    config = {stage: fields for stage, fields in build_survey_run_config(selection).items() if stage != "blueprints"}
    return NightPlan(known_keys, keys, with_blueprints(store.warehouse, keys), {**config, "drift_checks": {}})


nightly_drift_schedule = build_night_schedule(
    FAMILY_BY_NAME["survey"],
    plan_surveys,
    name="nightly_drift",
    job="nightly_drift",
    time=(2, 0),
    description="the prompts of the panel (DTEF_PANEL), in a snapshot named after the date.",
    label="surveys",
    skip_reason="no round has been ingested yet, or no partition of the panel has been run: `dtef run --round ROUND` makes the prompts that "
    "a night needs",
    read_panel=load_known_panel,
)
SURVEY_SCHEDULES = [nightly_drift_schedule]

"""The nightly schedule of rubrics: it runs the panel's blueprints in a new snapshot."""

from typing import Any

import dagster as dg

from assets.engine.nightly_schedules import NightPlan, build_night_schedule
from assets.stage.file_notes import list_partitions
from assets.stage.resources import Store
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.rubric.settings import (
    RUBRIC_ANCHOR_SETTINGS,
    RUBRIC_STAGE_SETTINGS,
    RubricSettings,
    select_panel_blueprints,
)
from dtef_pipeline.rubric.tables import RUBRIC_SPACE


def plan_rubrics(context: dg.ScheduleEvaluationContext, store: Store, panel: RubricSettings) -> NightPlan:
    """Plan the stages from the responses on, leaving out and naming blueprints that were never materialized."""
    blueprints = list_partitions(context.instance, RUBRIC_SPACE)
    selection = select_panel_blueprints(panel, blueprints)
    stored_keys = set(store.warehouse.values("rubric_blueprints", "blueprint"))
    keys = [key for key in selection if key in stored_keys]
    return NightPlan(blueprints, selection, keys, _config(context, panel, store) if keys else {})


def _config(context: dg.ScheduleEvaluationContext, settings: RubricSettings, store: Store) -> dict[str, dict[str, Any]]:
    """Return the configuration by stage. Anchors are scored responses, so the first nightly run has none."""
    first = [] if settings.extract_points else ["rubric_blueprints"]
    stages = {name: names for name, names in RUBRIC_STAGE_SETTINGS.items() if name not in first}
    if settings.anchors and store.warehouse.values("rubric_scores", "blueprint"):
        stages["rubric_anchors"] = RUBRIC_ANCHOR_SETTINGS
    elif settings.anchors:
        context.log.info("no scored response yet: judges get anchors from the next run on")
    return run_config(settings, stages)


rubric_nightly_schedule = build_night_schedule(
    FAMILY_BY_NAME["rubric"],
    plan_rubrics,
    name="rubric_nightly",
    job="rubric_nightly",
    time=(2, 30),
    description="the blueprints of the panel's section `rubric` (DTEF_PANEL), in a snapshot named after the date. If the panel has "
    "`anchors`, judges judge stored responses again in the same run.",
    label="rubrics",
    skip_reason="no blueprint of the panel has been added yet: add it with `dtef rubric add PATH`",
)
RUBRIC_SCHEDULES = [rubric_nightly_schedule]

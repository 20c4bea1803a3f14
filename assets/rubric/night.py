"""The nightly schedule of rubrics: the panel's blueprints are asked and judged again in a snapshot of the night."""

from typing import Any

import dagster as dg

from assets.engine.panel import family_panel
from assets.rubric.files import known_blueprints
from assets.stage.night_request import night_request
from assets.stage.resources import Store
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.rubric.settings import (
    RUBRIC_ANCHOR_SETTINGS,
    RUBRIC_PANEL_SECTION,
    RUBRIC_STAGE_SETTINGS,
    RubricSettings,
    blueprints_of_panel,
)


@dg.schedule(
    name="nightly_rubrics",
    job_name="rubric_night",
    cron_schedule="30 2 * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every night at 2:30 UTC: the blueprints of the panel's section `rubric` (DTEF_PANEL) are asked and judged again, in a snapshot "
    "named after the date. Where the panel has `anchors`, judges are shown stored responses again in the same run. Off until switched on.",
)
def nightly_rubrics(context: dg.ScheduleEvaluationContext, store: Store) -> dg.RunRequest | dg.SkipReason:
    """One run for the panel, from the responses on. Blueprints that were added and never made are left out and named."""
    panel = family_panel(store.settings, RUBRIC_PANEL_SECTION, RubricSettings)
    if panel is None:
        return dg.SkipReason(f"no panel file with a section `{RUBRIC_PANEL_SECTION}` is named in DTEF_PANEL")
    known = known_blueprints(context.instance)
    wanted = blueprints_of_panel(panel, known)
    made = set(store.warehouse.values("rubric_blueprints", "blueprint"))
    keys = [key for key in wanted if key in made]
    if not keys:
        return dg.SkipReason("no blueprint of the panel has been added and made yet: `dtef rubric add PATH` does")
    night = context.scheduled_execution_time.date().isoformat()
    config = _config(context, panel.model_copy(update={"snapshot": night}), store)
    return night_request(context, "rubrics", night, known, wanted, keys, config)


def _config(context: dg.ScheduleEvaluationContext, settings: RubricSettings, store: Store) -> dict[str, dict[str, Any]]:
    """Configuration by stage. Anchors are chosen among scored responses: the first night has none yet."""
    first = [] if settings.extract_points else ["rubric_blueprints"]
    stages = {name: names for name, names in RUBRIC_STAGE_SETTINGS.items() if name not in first}
    if settings.anchors and store.warehouse.values("rubric_scores", "blueprint"):
        stages["rubric_anchors"] = RUBRIC_ANCHOR_SETTINGS
    elif settings.anchors:
        context.log.info("no scored response yet: judges are shown anchors from the next night on")
    return run_config(settings, stages)


RUBRIC_SCHEDULES = [nightly_rubrics]

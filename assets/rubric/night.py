"""The nightly schedule of rubrics: the panel's blueprints are asked and judged again in a snapshot of the night."""

from typing import Any

import dagster as dg

from assets.rubric.files import known_blueprints
from assets.rubric.panel_part import rubric_panel
from assets.stage.night_request import night_request
from assets.stage.resources import Store
from dtef_pipeline.rubric.night_panel import PANEL_SECTION, RubricPanel


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
    panel = rubric_panel(store.settings)
    if panel is None:
        return dg.SkipReason(f"no panel file with a section `{PANEL_SECTION}` is named in DTEF_PANEL")
    known = known_blueprints(context.instance)
    wanted = panel.chosen(known)
    made = set(store.warehouse.values("rubric_blueprints", "blueprint"))
    keys = [key for key in wanted if key in made]
    if not keys:
        return dg.SkipReason("no blueprint of the panel has been added and made yet: `dtef rubric add PATH` does")
    night = context.scheduled_execution_time.date().isoformat()
    config = {**panel.run_config(night), **_anchors(context, panel, store, night)}
    return night_request(context, "rubrics", night, known, wanted, keys, config)


def _anchors(context: dg.ScheduleEvaluationContext, panel: RubricPanel, store: Store, night: str) -> dict[str, dict[str, Any]]:
    """Anchors are chosen among scored responses: the first night has none yet."""
    config = panel.anchors_config(night)
    if config and not store.warehouse.values("rubric_scores", "blueprint"):
        context.log.info("no scored response yet: judges are shown anchors from the next night on")
        return {}
    return config


RUBRIC_SCHEDULES = [nightly_rubrics]

"""The nightly schedule: which partitions a night has, and how it is configured."""

from collections.abc import Sequence

import dagster as dg

from assets.stage.asked import models_of
from assets.stage.night_request import night_request
from assets.stage.resources import Store
from assets.survey.automation import nightly_drift
from assets.survey.panel_file import known_panel
from assets.survey.rounds import known_keys
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.settings import partitions_of_panel, survey_run_config, with_named_models
from resources.warehouse import Warehouse


def with_blueprints(warehouse: Warehouse, keys: Sequence[str]) -> list[str]:
    """The partitions that have been asked something before: those that were only ingested have no prompts yet."""
    rounds = {split_partition_key(key)[0] for key in keys}
    made = {round_id: set(warehouse.values("blueprints", "segment", round=round_id)) for round_id in rounds}
    return [key for key in keys if (parts := split_partition_key(key))[1] in made[parts[0]]]


@dg.schedule(
    name="nightly_drift",
    job=nightly_drift,
    cron_schedule="0 2 * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every night at 2:00 UTC: the panel of DTEF_PANEL is asked again in a snapshot named after the date. Off until switched on.",
)
def nightly_drift_schedule(context: dg.ScheduleEvaluationContext, store: Store) -> dg.RunRequest | dg.SkipReason:
    """One run for the panel. A panel that names what is not there fails the tick; partitions without prompts are left out and named."""
    panel = known_panel(store.settings)
    night = context.scheduled_execution_time.date().isoformat()
    asked = with_named_models(panel, models_of(store)).model_copy(update={"snapshot": night})
    known = known_keys(context.instance)
    if not known:
        return dg.SkipReason("no round has been ingested yet")
    wanted = partitions_of_panel(panel, known)
    keys = with_blueprints(store.warehouse, wanted)
    if not keys:
        return dg.SkipReason(
            "no partition of the panel has been run yet: `dtef run --round ROUND` makes the prompts that a night asks"
        )
    config = {stage: given for stage, given in survey_run_config(asked).items() if stage != "blueprints"}
    return night_request(context, "surveys", night, known, wanted, keys, {**config, "drift_checks": {}})


SURVEY_SCHEDULES = [nightly_drift_schedule]

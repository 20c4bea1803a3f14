"""The nightly schedule: which partitions a night has, and how it is configured."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import dagster as dg

from assets.stage.asked import models_of
from assets.stage.partitions import SNAPSHOT_TAG
from assets.stage.ranges import chosen_tags
from assets.stage.resources import Store
from assets.survey.automation import nightly_drift
from assets.survey.panel_file import known_panel
from assets.survey.rounds import ROUNDS_TAG, known_keys
from dtef_pipeline.asking.models import Models
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.settings import SurveySettings, partitions_of_panel, survey_run_config, with_named_models
from resources.warehouse import Warehouse

LEFT_OUT_TAG = "dtef/left_out"


def nightly_config(panel: SurveySettings, models: Models, snapshot: str) -> dict[str, Any]:
    """Run configuration of a night: what the panel asks, everything in the snapshot. Raises ConfigError for a model that is not known."""
    night = with_named_models(panel, models).model_copy(update={"snapshot": snapshot})
    return {"ops": {stage: {"config": given} for stage, given in survey_run_config(night).items() if stage != "blueprints"}}


def with_blueprints(warehouse: Warehouse, keys: Sequence[str]) -> list[str]:
    """The partitions that have been asked something before: those that were only ingested have no prompts yet."""
    rounds = {split_partition_key(key)[0] for key in keys}
    made = {round_id: set(warehouse.values("blueprints", "segment", round=round_id)) for round_id in rounds}
    return [key for key in keys if (parts := split_partition_key(key))[1] in made[parts[0]]]


def left_out(wanted: Sequence[str], taken: Sequence[str]) -> str:
    """In words, which of the wanted partitions are not taken; nothing when all are."""
    found, has = [], set(taken)
    for round_id, of_round in groupby(wanted, key=lambda key: split_partition_key(key)[0]):
        keys = list(of_round)
        lacking = [key for key in keys if key not in has]
        if lacking:
            some = ", ".join(split_partition_key(key)[1] for key in lacking[:5]) + (", ..." if len(lacking) > 5 else "")
            found.append(f"{round_id}: " + ("all segments" if lacking == keys else some))
    return "; ".join(found)


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
    config = nightly_config(panel, models_of(store), night)
    known = known_keys(context.instance)
    if not known:
        return dg.SkipReason("no round has been ingested yet")
    wanted = partitions_of_panel(panel, known)
    keys = with_blueprints(store.warehouse, wanted)
    if not keys:
        return dg.SkipReason(
            "no partition of the panel has been run yet: `dtef run --round ROUND` makes the prompts that a night asks"
        )
    rounds = dict.fromkeys(split_partition_key(key)[0] for key in keys)
    tags: Mapping[str, str] = {**chosen_tags(known, keys), SNAPSHOT_TAG: night, ROUNDS_TAG: ", ".join(rounds)}
    if lacking := left_out(wanted, keys):
        context.log.warning(f"never run, so there are no prompts to ask again; left out: {lacking}")
        tags = {**tags, LEFT_OUT_TAG: lacking}
    return dg.RunRequest(run_key=night, run_config=config, tags=tags)


SURVEY_SCHEDULES = [nightly_drift_schedule]

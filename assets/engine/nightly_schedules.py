"""The nightly schedule of a family: it repeats the panel's section in a snapshot named after the date."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import dagster as dg

from assets.engine.settings_config import load_family_panel
from assets.stage.file_notes import list_partitions
from assets.stage.partitions import SNAPSHOT_TAG, build_partition_tags
from assets.stage.resources import Store
from dtef_pipeline.family.record import Family
from dtef_pipeline.text.number_words import list_first_names
from resources.settings import Settings

LEFT_OUT_TAG = "dtef/left_out"
"""Tag of a nightly run: the panel's partitions that are left out."""
_LEFT_OUT_NAMED = 10


class NightPlan(NamedTuple):
    """The partitions and configuration of a night."""

    panel_keys: Sequence[str]
    """The partitions that the panel names."""
    keys: Sequence[str]
    """The partitions to run; empty if there are none."""
    config: Mapping[str, Mapping[str, Any]] = {}
    """Run configuration by stage."""


Plan = Callable[[dg.ScheduleEvaluationContext, Store, Any, Sequence[str]], NightPlan]
"""Returns the plan for a panel's settings with their snapshot, given all partitions. Raises ConfigError."""


def build_night_schedule(
    family: Family,
    plan: Plan,
    *,
    time: tuple[int, int],
    description: str,
    skip_reason: str,
    job: str = "",
    names_any: Callable[[Any], bool] = lambda panel: True,
    named: str = "",
    read_panel: Callable[[Settings], Any] | None = None,
) -> dg.ScheduleDefinition:
    """Return the schedule FAMILY_nightly of `job`, by default that of its name, off until it is switched on.

    `time`: hour and minute (UTC); `skip_reason`: why there may be no partition; `names_any`: whether a panel has
    anything to run, and `named`, in words, what it needs for that. `read_panel`: reads the family's part of the panel file, or None if it
    is missing; by default the section of its name.
    """
    (hour, minute), name = time, f"{family.name}_nightly"

    @dg.schedule(
        name=name,
        job_name=job or name,
        cron_schedule=f"{minute} {hour} * * *",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"Every night at {hour}:{minute:02} UTC: {description} Off until switched on.",
    )
    def schedule(context: dg.ScheduleEvaluationContext, store: Store) -> dg.RunRequest | dg.SkipReason:
        panel = read_panel(store.settings) if read_panel else load_family_panel(store.settings, family.name, family.settings)
        if panel is None or not names_any(panel):
            return dg.SkipReason(f"no panel file with a section `{family.name}`{named} is named in DTEF_PANEL")
        night = context.scheduled_execution_time.date().isoformat()
        known_keys = list_partitions(context.instance, family.space)
        night_plan = plan(context, store, panel.model_copy(update={"snapshot": night}), known_keys)
        if not night_plan.keys:
            return dg.SkipReason(skip_reason)
        tags = build_partition_tags(list_partitions(context.instance, family.space), night_plan.keys)
        return _build_request(context, f"{name} {night}", {**tags, SNAPSHOT_TAG: night}, night_plan)

    definition: dg.ScheduleDefinition = schedule
    return definition


def _build_request(context: dg.ScheduleEvaluationContext, run_key: str, tags: dict[str, str], plan: NightPlan) -> dg.RunRequest:
    """Return a request for one run of the configured assets. A further tag names partitions of the panel that are left out."""
    keys = set(plan.keys)
    if lacking := [key for key in plan.panel_keys if key not in keys]:
        tags[LEFT_OUT_TAG] = list_first_names(lacking, _LEFT_OUT_NAMED)
        context.log.warning(f"left out, because they were never run: {tags[LEFT_OUT_TAG]}")
    return dg.RunRequest(
        run_key=run_key,
        tags=tags,
        run_config={"ops": {name: {"config": fields} for name, fields in plan.config.items()}},
        asset_selection=[dg.AssetKey(name) for name in plan.config],
    )

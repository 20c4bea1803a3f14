"""The run requested by a family's nightly schedule."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from assets.stage.partitions import SNAPSHOT_TAG, build_partition_tags
from dtef_pipeline.text.number_words import list_first_names
from resources.settings import Settings

LEFT_OUT_TAG = "dtef/left_out"
"""Tag of a nightly run: the panel's partitions that are left out."""
_LEFT_OUT_NAMED = 10


def night_request(
    context: dg.ScheduleEvaluationContext,
    label: str,
    night: str,
    known_keys: Sequence[str],
    selection: Sequence[str],
    keys: Sequence[str],
    config: Mapping[str, Mapping[str, Any]],
) -> dg.RunRequest:
    """Return a request for one run of the configured assets, for the partitions `keys` among all `known_keys`, in the snapshot `night`.

    `label`: part of the run's key; `selection`: the partitions of the panel, of which the omitted ones are named.
    """
    tags = {**build_partition_tags(known_keys, keys), SNAPSHOT_TAG: night}
    planned_keys = set(keys)
    if lacking := [key for key in selection if key not in planned_keys]:
        tags[LEFT_OUT_TAG] = list_first_names(lacking, _LEFT_OUT_NAMED)
        context.log.warning(f"left out, because they were never run: {tags[LEFT_OUT_TAG]}")
    return dg.RunRequest(
        run_key=f"{label} {night}",
        tags=tags,
        run_config={"ops": {name: {"config": fields} for name, fields in config.items()}},
        asset_selection=[dg.AssetKey(name) for name in config],
    )


LATE, VERY_LATE = timedelta(hours=36), timedelta(hours=60)
"""After one and two missed nights; a night may begin late and take ten hours."""


def build_freshness_policy(settings: Settings | None = None) -> dg.FreshnessPolicy | None:
    """Return the freshness policy of an asset of the nightly run: a warning after one missed night, a failure after two.

    Returns None without a panel (DTEF_PANEL), since nothing runs at night then. Dagster checks the newest materialization of any partition.
    """
    panel = (settings or Settings.read_environment()).panel
    return dg.FreshnessPolicy.time_window(warn_window=LATE, fail_window=VERY_LATE) if panel else None

"""The run that a nightly schedule of a family asks for."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from assets.stage.partitions import SNAPSHOT_TAG
from assets.stage.ranges import chosen_tags
from dtef_pipeline.text.counted import and_more

LEFT_OUT_TAG = "dtef/left_out"
"""Of a run of a night: the partitions that the panel names and that are not asked."""
_LEFT_OUT_NAMED = 10


def night_request(
    context: dg.ScheduleEvaluationContext,
    what: str,
    night: str,
    known: Sequence[str],
    wanted: Sequence[str],
    keys: Sequence[str],
    config: Mapping[str, Mapping[str, Any]],
) -> dg.RunRequest:
    """One run of the assets that are configured, for the partitions `keys` among all `known` ones, in the snapshot `night`.

    `what`: what is asked, as it stands in the key of the run; `wanted`: the partitions of the panel, of which those that are left out are named.
    """
    tags = {**chosen_tags(known, keys), SNAPSHOT_TAG: night}
    taken = set(keys)
    if lacking := [key for key in wanted if key not in taken]:
        tags[LEFT_OUT_TAG] = and_more(lacking, _LEFT_OUT_NAMED)
        context.log.warning(f"never made, so there is nothing to ask again; left out: {tags[LEFT_OUT_TAG]}")
    return dg.RunRequest(
        run_key=f"{what} {night}",
        tags=tags,
        run_config={"ops": {name: {"config": given} for name, given in config.items()}},
        asset_selection=[dg.AssetKey(name) for name in config],
    )

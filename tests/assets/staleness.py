"""Which partitions the UI calls stale.

Dagster says so in public by GraphQL alone, which needs a server with the definitions in question; these are the names that it answers with.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from assets.definitions import defs
from tests.assets.conftest import Pipeline
from tests.assets.stage_names import STAGE_NAMES


def stale(pipeline: Pipeline) -> dict[str, set[str]]:
    """Stale partitions of each stage of the surveys that has any."""
    return stale_partitions(pipeline.instance, STAGE_NAMES, pipeline.keys)


def stale_partitions(instance: dg.DagsterInstance, stages: Sequence[str], keys: Sequence[str]) -> dict[str, set[str]]:
    """Stale partitions of each stage that has any."""
    resolver = CachingStaleStatusResolver(instance, defs.resolve_asset_graph(), LoadingContextForTest(instance))
    found = {
        stage: {key for key in keys if resolver.get_status(dg.AssetKey(stage), key) == StaleStatus.STALE} for stage in stages
    }
    return {stage: keys for stage, keys in found.items() if keys}

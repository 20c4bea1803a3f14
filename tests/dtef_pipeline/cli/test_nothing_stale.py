"""After commands have made everything, the UI calls nothing "Unsynced"."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus

from assets.definitions import defs
from tests.assets.staleness import CachingInstance
from tests.dtef_pipeline.cli.commands import SEGMENTS, ok
from tests.made.stored_votes import store_votes


@pytest.mark.thorough
def test_reports_are_as_new_as_the_scores_from_votes(ingested: Path) -> None:
    """The report of surveys has a chapter of them; rolled up after it, they left it stale."""
    ok("run", "--round", "S1", "--segment", SEGMENTS[0], "--context", "0", "--model", "baseline/uniform")
    store_votes(40, ("a", "b", "c"), suite="made", reviewers=8)
    ok("preference", "board", "--refresh")
    graph = defs.resolve_asset_graph()
    with dg.DagsterInstance.get() as instance, CachingInstance(instance) as loading:
        resolver = CachingStaleStatusResolver(instance, graph, loading)
        status = {}
        for key in graph.get_all_asset_keys():
            partitions = graph.get(key).partitions_def
            of = (
                instance.get_dynamic_partitions(str(partitions.name))
                if isinstance(partitions, dg.DynamicPartitionsDefinition)
                else [None]
            )
            status |= {(key.to_user_string(), one): resolver.get_status(key, one) for one in of}
    assert status["report", None] == status["preference_scores", None] == StaleStatus.FRESH
    assert [name for name, found in status.items() if found == StaleStatus.STALE] == []

"""The votes as Dagster sees them: scores are stale once there is another vote, and fresh after the roll-up."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus

from assets.preference.score_assets import preference_scores, preference_votes
from assets.stage.resources import Store
from tests.assets.staleness import CachingInstance
from tests.made.stored_votes import store_votes


def test_scores_are_stale_when_votes_were_added_since(state: Path) -> None:
    both = dg.Definitions([preference_votes, preference_scores], resources={"store": Store()})
    with dg.DagsterInstance.ephemeral() as instance:

        def run(asset: str) -> dg.ExecuteInProcessResult:
            job = both.resolve_implicit_global_asset_job_def()
            return job.execute_in_process(instance=instance, asset_selection=[dg.AssetKey(asset)])

        def status() -> StaleStatus:
            with CachingInstance(instance) as loading:
                resolver = CachingStaleStatusResolver(instance, both.resolve_asset_graph(), loading)
                return resolver.get_status(preference_scores.key)

        store_votes(12)
        run("preference_votes")
        made = run("preference_scores")
        (event,) = made.get_asset_materialization_events()
        assert event.materialization.metadata["votes"].value == 12
        assert status() == StaleStatus.FRESH
        store_votes(6, suite="other")
        run("preference_votes")
        assert status() == StaleStatus.STALE

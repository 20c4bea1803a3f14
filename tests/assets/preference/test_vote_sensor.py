"""What follows votes by itself: scores are made again when there are others, and what is surprising about votes is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from assets.engine.site_report import report
from assets.preference import score_assets
from assets.preference.score_assets import preference_roll_ups, preference_scores, preference_votes, scores_after_votes
from assets.stage.resources import Store
from dtef_pipeline.preference.votes import Ballot, make_paired_response, vote_pair
from resources.settings import Settings
from resources.votes.vote_store import VoteStore
from tests.dtef_pipeline.cli.commands import skip_site
from tests.made.votes import store_votes

_OF_VOTES = dg.Definitions(
    assets=[preference_votes, preference_scores, report],
    asset_checks=dg.load_asset_checks_from_modules([score_assets]),
    jobs=[preference_roll_ups],
    resources={"store": Store()},
)


def _tick(instance: dg.DagsterInstance) -> Any:
    return scores_after_votes(dg.build_sensor_context(instance, resources={"store": Store()}))


def _roll_up(instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    return _OF_VOTES.resolve_job_def("preference_roll_ups").execute_in_process(instance=instance)


def test_scores_follow_votes_as_the_panel_says(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_site(monkeypatch)
    panel = state / "panel.yaml"
    panel.write_text("preference:\n  items: [nothing/*]\n", encoding="utf-8")
    with dg.DagsterInstance.ephemeral() as instance:
        assert "no votes" in _tick(instance).skip_message
        store_votes(12)
        asked = _tick(instance)
        assert _tick(instance).run_key == asked.run_key
        _roll_up(instance)
        assert "the scores include all votes" in _tick(instance).skip_message
        store_votes(6, suite="other")
        assert _tick(instance).run_key != asked.run_key
        assert len(Store().warehouse.read("preference_scores")) > 0
        monkeypatch.setenv("DTEF_PANEL", str(panel))
        _roll_up(instance)
        assert len(Store().warehouse.read("preference_scores")) == 0


def test_checks_tell_of_leak_risks_and_of_votes_on_equal_texts(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_site(monkeypatch)
    store_votes(12)
    with dg.DagsterInstance.ephemeral() as instance:
        found = {one.check_name: one for one in _roll_up(instance).get_asset_check_evaluations()}
        assert found["preference_shares_sum_to_one"].passed
        assert found["voted_texts_differ"].passed
        assert found["voted_texts_differ"].metadata["checked"].value == 12
        assert not found["votes_contain_no_names"].passed  # these texts say who wrote them
        with VoteStore(Settings.read_environment().responses_url) as store:
            same = [
                make_paired_response("qa", "made/all/x", name, text, prompt="?")
                for name, text in (("alpha", "Yes "), ("beta", "yes"))
            ]
            store.add_pairs(same, [pair := vote_pair(*same)], user="test")
            vote = store.take(Ballot(store.make_keyed(pair).pair_id, "r1", "A", 3))
        found = {one.check_name: one for one in _roll_up(instance).get_asset_check_evaluations()}
        assert found["voted_texts_differ"].metadata["first"].value == [vote]


def test_scores_are_stale_when_votes_were_added_since(state: Path) -> None:
    both = dg.Definitions([preference_votes, preference_scores], resources={"store": Store()})
    with dg.DagsterInstance.ephemeral() as instance:

        def run(asset: str) -> dg.ExecuteInProcessResult:
            job = both.resolve_implicit_global_asset_job_def()
            return job.execute_in_process(instance=instance, asset_selection=[dg.AssetKey(asset)])

        def status() -> StaleStatus:
            resolver = CachingStaleStatusResolver(instance, both.resolve_asset_graph(), LoadingContextForTest(instance))
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

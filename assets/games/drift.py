"""Drift of models between snapshots of the same games: `games_drift`."""

import dagster as dg

from assets.stage.checks import asset_check, verdict
from assets.stage.family_drift import FamilyDrift, define_drift
from assets.stage.resources import Store
from dtef_pipeline.games.watched_play import GAMES_WATCHED, moved_baselines

games_drift, games_no_drift, games_verdicts_were_sent = define_drift(
    FamilyDrift(
        subject=GAMES_WATCHED,
        code_version="4",
        besides="Of each scenario one metric on 0-1 is watched, and those that its composite score is made of.",
        scores=("episode_scores", "scenario", "dtef games run"),
    )
)


@asset_check(asset=games_drift)
def baselines_stand_still(store: Store) -> dg.AssetCheckResult:
    """A baseline that plays baselines has the same values in every snapshot: otherwise the game changed, and its version was not raised."""
    moved = store.warehouse.query(lambda connection: list(moved_baselines(connection)), only=["episode_scores"])
    counted = "SELECT count(DISTINCT episode_id) FROM episode_scores WHERE starts_with(model, 'baseline/')"
    episodes = store.warehouse.query(lambda connection: connection.execute(counted).fetchall()[0][0], only=["episode_scores"])
    return verdict(moved, checked=episodes)

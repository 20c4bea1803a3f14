"""Drift of models between snapshots of the same games: `games_drift`."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.games.scenarios import GAMES_GROUP
from assets.stage.checks import asset_check, verdict
from assets.stage.drift_told import drift_result, send_verdicts, told_result, with_told
from assets.stage.panel_drift import drift_section, panel_drift
from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published, require_made
from assets.stage.resources import Store
from assets.stage.watch_config import WatchConfig
from dtef_pipeline.drift.headline import headline
from dtef_pipeline.drift.verdict_text import by_verdict
from dtef_pipeline.games.watched_play import (
    GAMES_DRIFT_READS,
    GAMES_WATCHED,
    games_drift_rule,
    games_watched_drift,
    moved_baselines,
)

_GAMES_VERDICTS = "games_model_drift"
_SHOWN_VERDICT = ["verdict", "model", "persona", "opponent", "metric", "n_snapshots", "shift", "shift_low", "shift_high"]
_SHOWN_RULE = ["scenario", "model", "persona", "opponent", "metric", "lowest_snapshot", "highest_snapshot", "lowest", "highest"]


@dg.asset(deps=[dg.AssetKey("episode_scores")], **{**roll_up("games_drift", code_version="3"), **GAMES_GROUP})
def games_drift(context: dg.AssetExecutionContext, config: WatchConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Whether players play the same games as well as before: one row per scenario, version, model variant, persona, opponent and metric.

    Of each scenario one metric on 0-1 is watched, and those that its composite score is made of. The documented rule flags a gap of 0.05 and
    10 % between the lowest and the highest snapshot, at temperature 0. Beside it stand `games_model_drift`, the verdict by the project's
    evidence on each model over all scenarios (`drift` where the rule flags it and there is strong evidence however often one looks, `watch`
    where the rule alone does), and its timeline `games_drift_series`. The panel's section `drift` holds here too; a verdict that is new is
    sent to the webhook, if there is one.
    """
    require_made(store, "episode_scores", "scenario", "dtef games run")
    drift = panel_drift(store.settings, store.warehouse)
    options = config.over(drift.options)
    ruled = store.warehouse.query(games_drift_rule, only=GAMES_DRIFT_READS)
    found = store.warehouse.query(lambda connection: games_watched_drift(connection, options), only=GAMES_DRIFT_READS)
    models = with_told(store, _GAMES_VERDICTS, found.checks, GAMES_WATCHED)
    ranked = pa.Table.from_pylist(sorted(models.to_pylist(), key=by_verdict(GAMES_WATCHED.keys)), models.schema)
    flagged = ruled.filter(pc.equal(ruled["flagged"], True)).sort_by([("gap", "descending")])
    result = published(
        store,
        {"games_drift": ruled, _GAMES_VERDICTS: models, "games_drift_series": found.series},
        headline=headline(models, GAMES_WATCHED),
        flagged=len(flagged),
        documented=markdown(flagged, _SHOWN_RULE, most=15),
        models=markdown(ranked, [*_SHOWN_VERDICT, "first_snapshot"], most=30),
    )
    sent = send_verdicts(context, store, _GAMES_VERDICTS, models, GAMES_WATCHED, drift.tell, found.order)
    return result._replace(metadata={**(result.metadata or {}), "webhook": sent})


@asset_check(asset=games_drift)
def games_no_drift(store: Store) -> dg.AssetCheckResult:
    """Fails for a model that drifted by the project's evidence, warns of one to watch, unless the panel's `severity` says otherwise."""
    rows = store.warehouse.read(_GAMES_VERDICTS)
    return drift_result(rows, len(rows), drift_section(store.settings).severity, GAMES_WATCHED)


@asset_check(asset=games_drift)
def games_verdicts_were_told(store: Store) -> dg.AssetCheckResult:
    """Warns while the webhook has not accepted a verdict that was due to be sent; it is sent again with the next `games_drift`."""
    return told_result(store, _GAMES_VERDICTS, GAMES_WATCHED, drift_section(store.settings).tell)


@asset_check(asset=games_drift)
def baselines_stand_still(store: Store) -> dg.AssetCheckResult:
    """A baseline that plays baselines has the same values in every snapshot: otherwise the game changed, and its version was not raised."""
    moved = store.warehouse.query(lambda connection: list(moved_baselines(connection)), only=["episode_scores"])
    counted = "SELECT count(DISTINCT episode_id) FROM episode_scores WHERE starts_with(model, 'baseline/')"
    episodes = store.warehouse.query(lambda connection: connection.execute(counted).fetchall()[0][0], only=["episode_scores"])
    return verdict(moved, checked=episodes)

"""Stage 4 of the games family: `episode_scores`."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.games.episodes import episodes
from assets.games.scenarios import GAMES_GROUP, LEAGUE_SCENARIO, VersionsConfig, pack_of
from assets.stage.checks import Offender, asset_check, keys_repeated, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.games.episode_scores import episode_scores as scores_of_episodes
from dtef_pipeline.games.episode_scores import merged_scores
from dtef_pipeline.games.space import LEAGUE_SPACE


class EpisodeScoresConfig(VersionsConfig):
    """Which snapshot is scored, of which versions."""

    snapshot: str = Field(default="base", description="Label of the evaluation pass.")


@dg.asset(deps=[episodes], **{**stage(LEAGUE_SCENARIO, 4, "episode_scores", code_version="2"), **GAMES_GROUP})
def episode_scores(context: dg.AssetExecutionContext, config: EpisodeScoresConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What each episode says of each metric: one row per episode and metric, of the seat under test, as a numerator and a denominator.

    A metric of many episodes is the sum of `total` over the sum of `of`; volatility is the standard deviation of its totals. What was not
    observed is unscored, with the reason, and never 0. No model is asked.
    """
    run = PartitionRun(context, store)
    for key in run.keys:
        at = {**LEAGUE_SPACE.levels(key), "snapshot": config.snapshot}
        with run.attempt(key):
            pack = pack_of(store, key, config.scenario_versions)
            new = scores_of_episodes(store.warehouse.read("episodes", **at), pack)
            rows = merged_scores(store.warehouse.read_earlier("episode_scores", **at), new, pack)
            store.warehouse.write("episode_scores", rows, **at)
            run.done(key, _metadata(rows), content_version(rows))
    return run.result()


def _metadata(rows: pa.Table) -> dict[str, Any]:
    statuses = {row["values"]: row["counts"] for row in pc.value_counts(rows["status"]).to_pylist()}
    return {
        "dagster/row_count": len(rows),
        "statuses": dg.MetadataValue.json(statuses),
        "metrics": dg.MetadataValue.json(pc.unique(rows["metric"]).to_pylist()),
        "preview": markdown(rows, ["item_id", "persona", "model", "metric", "status", "value", "unit", "reason"], most=8),
    }


@asset_check(asset=episode_scores, blocking=True)
def episode_scores_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """An episode has one score per metric."""
    return keys_repeated(context, store, "episode_scores", ["episode_id", "metric", "snapshot"])


@asset_check(asset=episode_scores, blocking=True)
def episode_scores_have_reasons(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """A value that is not there has a reason, and a metric on 0-1 lies there."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "episode_scores", ["item_id", "model", "metric", "unit_scale", "value", "reason"]):
        checked += len(rows)
        outside = pc.or_(pc.less(rows["value"], 0), pc.greater(rows["value"], 1))
        silent = pc.equal(pc.is_valid(rows["value"]), pc.is_valid(rows["reason"]))
        bad = rows.filter(pc.or_(pc.and_(pc.fill_null(outside, False), rows["unit_scale"]), silent))
        offenders += [(key, f"{row['item_id']} {row['model']} {row['metric']}: {row['value']}") for row in bad.to_pylist()]
    return partition_verdict(context, offenders, checked=checked)

"""Stage 1 of the games family: `scenario_items`."""

from typing import Any

import dagster as dg

from assets.games.scenarios import GAMES_GROUP, LEAGUE_SCENARIO, LeagueConfig, items_of, pack_of
from assets.stage.checks import asset_check, keys_repeated
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.games.adapter_faults import adapters_named
from dtef_pipeline.games.episode_items import item_rows
from dtef_pipeline.games.space import LEAGUE_SPACE


@dg.asset(**{**stage(LEAGUE_SCENARIO, 1, "scenario_items", code_version="1"), **GAMES_GROUP})
def scenario_items(context: dg.AssetExecutionContext, config: LeagueConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What is played: one row per episode of a scenario, with its seed, the seat of the player under test, and its opponent.

    Every seed is played in all seats, so that luck with the deal is the same for both sides; a seed is a cluster. Where a scenario can tell, the
    fewest moves that solve the deal stand beside it. Items of earlier runs stay, as long as settings and limits are what they were.
    """
    run = PartitionRun(context, store)
    for key in run.keys:
        at = LEAGUE_SPACE.levels(key)
        with run.attempt(key), adapters_named(), store.writing("scenario_items", [key]):
            pack = pack_of(store, key, config.scenario_versions)
            items = items_of(pack, config)
            rows = item_rows(pack, items, store.warehouse.read_earlier("scenario_items", **at))
            store.warehouse.write("scenario_items", rows, **at)
            shown = ["item_id", "seed", "seat", "opponent", "max_turns", "optimum"]
            metadata = {"dagster/row_count": len(rows), "asked_for": len(items), "preview": markdown(rows, shown)}
            run.done(key, metadata, content_version(rows))
    return run.result()


@asset_check(asset=scenario_items, blocking=True)
def scenario_items_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """An item id stands once in its version of a scenario."""
    return keys_repeated(context, store, "scenario_items", ["version", "item_id"])

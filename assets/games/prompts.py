"""Stage 2 of the games family: `episode_prompts`."""

from typing import Any

import dagster as dg

from assets.games.items import scenario_items
from assets.games.known_games import known_personas
from assets.games.scenarios import GAMES_GROUP, LEAGUE_SCENARIO, EntrantsConfig, items_of, pack_of
from assets.stage.asked import models_of
from assets.stage.checks import asset_check, keys_repeated
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.games.adapter_faults import adapters_named
from dtef_pipeline.games.entrants import entrants
from dtef_pipeline.games.opening_rows import prompt_rows
from dtef_pipeline.games.space import LEAGUE_SPACE


@dg.asset(deps=[scenario_items], **{**stage(LEAGUE_SCENARIO, 2, "episode_prompts", code_version="1"), **GAMES_GROUP})
def episode_prompts(context: dg.AssetExecutionContext, config: EntrantsConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What a model is told before its first text: one row per item and persona that a model plays, with the messages and their hash.

    The system message holds the persona, the rules and the form of a reply, the other one what the seat sees of the deal, and nothing else. A
    seat that does not begin is told more once its turn has come. Baselines are told nothing, and have no rows.
    """
    run = PartitionRun(context, store)
    models = models_of(store)
    for key in run.keys:
        at = LEAGUE_SPACE.levels(key)
        with run.attempt(key), adapters_named(), store.writing("episode_prompts", [key]):
            pack = pack_of(store, key, config.scenario_versions)
            personas = known_personas(store.settings, config.persona_versions)
            players = entrants(pack, models, personas, config.players, config.personas)
            rows = prompt_rows(pack, items_of(pack, config), players, store.warehouse.read_earlier("episode_prompts", **at))
            store.warehouse.write("episode_prompts", rows, **at)
            shown = markdown(rows, ["item_id", "persona", "prompt_id", "messages"], most=3)
            run.done(key, {"dagster/row_count": len(rows), "preview": shown}, content_version(rows))
    return run.result()


@asset_check(asset=episode_prompts, blocking=True)
def episode_prompts_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """An item has one row per persona and version."""
    return keys_repeated(context, store, "episode_prompts", ["version", "item_id", "persona"])

"""How long a league of baselines takes, from nothing to the boards: 20 players x 5 scenarios x 100 seeds, in all seats, against each opponent.

The players are baselines; where a scenario has fewer than 20, some stand twice under names of their own. Goal: under 5 minutes.

Run: `nice python benchmarks/league.py [PLAYERS] [SEEDS]`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import dagster as dg

from assets.games.scenarios import add_scenarios
from assets.launch import GAMES_ROLL_UP_NAMES, GAMES_STAGE_NAMES, OF_SCENARIOS, materialize
from dtef_pipeline.games import baselines, entrants, episode, named_players
from dtef_pipeline.games.contract import Chooses, Scenario
from dtef_pipeline.games.space import LEAGUE_SPACE
from resources.settings import Settings
from resources.warehouse import Warehouse

LEAGUE_OF_BASELINES = ("poker/kuhn", "poker/leduc", "poker/limit-holdem", "negotiation/allocation", "negotiation/sealed-bid")
"""All shipped scenarios with two seats."""


def many_baselines(scenario: Scenario[object], players: int) -> Mapping[str, Chooses]:
    """The scenario's baselines, and as many of them once more under other names as are needed to have so many."""
    own = dict(baselines.baselines_of(scenario))
    names = list(own)
    return {**own, **{f"{names[at % len(names)]}-{at}": own[names[at % len(names)]] for at in range(len(own), players)}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("players", type=int, nargs="?", default=20)
    parser.add_argument("seeds", type=int, nargs="?", default=100)
    given = parser.parse_args()
    entrants.baselines_of = lambda scenario: many_baselines(scenario, given.players)  # type: ignore[attr-defined]
    for module in (named_players, episode):
        module.baseline_of = lambda scenario, name: many_baselines(scenario, given.players)[name]  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder, dg.DagsterInstance.ephemeral(tempdir=folder) as instance:
        _measure(instance, Path(folder), given.seeds)


def _measure(instance: dg.DagsterInstance, folder: Path, seeds: int) -> None:
    os.environ |= {"DTEF_WAREHOUSE": str(folder / "warehouse"), "DTEF_RESPONSES": str(folder / "responses.sqlite")}
    add_scenarios(instance, LEAGUE_OF_BASELINES)
    own = {"seeds": f"1-{seeds}"}
    entered = {**own, "players": ["baselines"], "personas": list[str]()}
    config = {"scenario_items": own, "episode_prompts": entered, "episodes": entered}
    begin = time.monotonic()
    played = materialize(instance, GAMES_STAGE_NAMES, LEAGUE_OF_BASELINES, config, space=OF_SCENARIOS)
    rolled_at = time.monotonic()
    rolled = materialize(instance, GAMES_ROLL_UP_NAMES, [], {})
    house = Warehouse(Settings.from_environment().warehouse)
    for key in LEAGUE_OF_BASELINES:
        print(f"{key}: {len(house.read('episodes', columns=['model'], **LEAGUE_SPACE.levels(key))):,} episodes")
    print(f"played and scored in {rolled_at - begin:.0f} s, boards in {time.monotonic() - rolled_at:.0f} s")
    for failure in (*played.failures, *rolled.failures):
        print(f"failed: {failure}")


if __name__ == "__main__":
    main()

"""A league without a server: baselines, and models whose texts are written here, some of them hostile. And the pages that are made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Response
from dtef_pipeline.games.episode import LeaguePlan, Match, play_baselines
from dtef_pipeline.games.episode_items import GameItem
from dtef_pipeline.games.episode_rows import EpisodeColumns, compute_episode_scores
from dtef_pipeline.games.manifest import read_manifests
from dtef_pipeline.games.packs import Pack, pack
from dtef_pipeline.games.persona_results import compute_game_results
from dtef_pipeline.games.personas import Persona, Player
from dtef_pipeline.games.site.family_site import build_games_site, read_games
from dtef_pipeline.games.site.game_labels import GameDocuments
from dtef_pipeline.games.tables import EPISODE_TURNS
from dtef_pipeline.site.build import build_site_files
from dtef_pipeline.site.family_content import FamilyContent
from tests.made.made_games import response_to

SCENARIOS = Path(__file__).parents[2] / "data" / "scenarios"
HOSTILE_TEXT = (
    "<think>secret</think>I hold aces </script><script>window.hacked = 1</script>"
    "<img src=x onerror='window.hacked = 1'>\n\u202eRTL \x00 {&amp;"
)
STEADY, HOSTILE = ModelSpec(name="steady", model="openai/steady"), ModelSpec(name="<b>hostile</b>", model="openai/hostile")
CALM = Persona(id="calm", version=2, display_name="Calm", system_prompt="You never hurry.")
PLANNED_MOVE = "A king is worth a bet.\nACTION: {}"
_OUT_OF_BUDGET = Failure("a" * 64, "the budget of <i>steady</i> has ended", 0, "budget")


def _texts(player: Player, legal: Sequence[str], text: int) -> str:
    """What a model writes: one plays, the other first writes what is no move."""
    command = legal[-1] if legal else "pass"
    if player.model is HOSTILE and text % 2 == 0:
        return HOSTILE_TEXT
    return PLANNED_MOVE.format(command)


def _played(plan: LeaguePlan, match: Match, most: int) -> tuple[Any, EpisodeResult]:
    """A match with at most so many texts; after them the budget has ended."""
    episode, history = plan.episode(match), list[Response]()
    while (request := episode.next(history)) is not None and len(history) < most:
        last = request.messages[-1].text
        listed = last.rpartition("Legal commands: ")[2].splitlines()[0].split(", ") if "Legal commands: " in last else []
        history.append(response_to(request, _texts(match.player, listed, len(history))))
    failure = _OUT_OF_BUDGET if request is not None else None
    return episode.trace(), EpisodeResult(history, failure)


def _episodes(own: Pack) -> pa.Table:
    manifest = own.manifest
    names = [f"baseline/{name}" for name in manifest.opponents]
    seats = range(len(manifest.seats))
    items = [GameItem(seed, seat, name) for seed in range(1, 7) for name in (names or [""]) for seat in seats]
    baselines = [Player(baseline=name) for name in own.scenario.baselines]
    models = [Player(model, role) for model in (STEADY, HOSTILE) for role in (None, CALM)]
    opponents = {name: Player(baseline=name.removeprefix("baseline/")) for name in names}
    plan = LeaguePlan(own, items, [*baselines, *models], opponents, 1, "base")
    columns = EpisodeColumns(plan)
    for match in plan.matches():
        if match.needs_no_model:
            columns.add(match, play_baselines(own, match.item.seed, match.list_seated_players(plan.n_seats)))
        else:
            unlucky = match.player == models[0] and match.item == items[-1]
            columns.add(match, *_played(plan, match, 0 if unlucky else 30))
    return columns.table()


def played_league(names: Sequence[str]) -> dict[str, pa.Table]:
    """Episodes, scores and results of some scenarios."""
    manifests = read_manifests(SCENARIOS)
    packs = [pack(name, manifests) for name in names]
    episodes = [_episodes(one) for one in packs]
    scores = [compute_episode_scores(table, one) for table, one in zip(episodes, packs, strict=True)]
    tables = {"episodes": pa.concat_tables(episodes), "episode_scores": pa.concat_tables(scores)}
    connection = connected_games({**tables, "episode_turns": EPISODE_TURNS.empty_table()})
    return {**tables, "persona_results": compute_game_results(connection)}


def connected_games(tables: Mapping[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for name, rows in tables.items():
        connection.register(name, rows)
    return connection


def games_view(tables: Mapping[str, pa.Table], known: GameDocuments | None = None) -> FamilyContent:
    """What games show of these tables; `known`: None: the shipped scenarios."""
    return read_games(connected_games(tables), known or GameDocuments(read_manifests(SCENARIOS)))


def games_files(tables: Mapping[str, pa.Table]) -> dict[str, str]:
    """The files of a site of these tables alone, without those that all pages share."""
    site = build_games_site(GameDocuments(read_manifests(SCENARIOS)))
    files = build_site_files(connected_games(tables), [site], {}, "made for a test")
    return {path: text for path, text in files if not path.startswith("static/")}

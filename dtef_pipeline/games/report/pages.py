"""The pages of the games family: an index with boards, a page per scenario, and some episodes move by move. Self-contained, no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.drift.verdict_tables import DRIFT_SCHEMAS
from dtef_pipeline.games.games_paired import GAMES_PAIRED
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.metrics import EXPECTED_RETURN
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.games.report.episode_page import ChosenEpisode, chosen_episodes, episode_page
from dtef_pipeline.games.report.league_rows import MADE_BY_LEAGUE, ScenarioResults, not_played, played_scenarios
from dtef_pipeline.games.report.look import games_file, games_style
from dtef_pipeline.games.report.player_board import PLAYERS_HOW, metric_boards, metric_name
from dtef_pipeline.games.report.scenario_page import EpisodeLink, scenario_page
from dtef_pipeline.games.same_games import PLAYED_COVERAGE
from dtef_pipeline.games.watched_play import GAMES_WATCHED
from dtef_pipeline.report.drift_chapter import drift_chapters
from dtef_pipeline.report.isolated import inline, missing
from dtef_pipeline.report.markup import Column, as_is, long_text, named, paragraph, section, table, text, whole, with_interval
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.page_files import INDEX_PAGE, further_page, page_names
from dtef_pipeline.report.preference_chapter import PREFERENCE_READ, preference_chapters
from dtef_pipeline.report.stored_rows import StoredRows
from dtef_pipeline.text.counted import counted

GAMES_PAGES_FOLDER = "games_report"
"""What the folder of the pages is called, in the warehouse and where a command writes them."""
GAME_PAGES_READ = (
    "episodes",
    "persona_results",
    "strategy_values",
    "episode_scores",
    "episode_turns",
    *DRIFT_SCHEMAS,
    *PREFERENCE_READ,
)
"""The tables that the pages are made of."""


def games_pages(
    connection: duckdb.DuckDBPyConnection,
    manifests: Mapping[str, ScenarioManifest],
    personas: Mapping[str, Persona] = MappingProxyType({}),
) -> Iterator[tuple[str, str]]:
    """(file name, HTML) of each page, `index.html` first, one at a time. Equal tables give equal pages.

    `connection` has views named as GAME_PAGES_READ; a part of a page whose table is missing says what makes it. `manifests`: the scenarios that
    are known, by name: what lies on the table is shown of episodes that play again by them. `personas`: those that are known, by id
    and version: drafts and retired ones are marked on boards. Raises ConfigError for a manifest with settings
    that its game does not take.
    """
    rows = StoredRows(connection)
    played = played_scenarios(rows, manifests, connection, personas)
    files = page_names(one.name.replace("/", "__") for one in played)
    pages = {one.name: files[one.name.replace("/", "__")] for one in played}
    voted = preference_chapters(connection, "games", GAMES_PAIRED.metrics, always=True)
    yield INDEX_PAGE, games_index(rows, played, pages, manifests, voted)
    for found in played:
        page = pages[found.name]
        episodes = _episodes(chosen_episodes(rows, found), page)
        yield page, scenario_page(rows, found, [link for link, _ in episodes])
        for link, chosen in episodes:
            yield link.page, episode_page(found, chosen, page)


def _episodes(chosen: list[ChosenEpisode], page: str) -> list[tuple[EpisodeLink, ChosenEpisode]]:
    return [(EpisodeLink(further_page(page, "episode", at), one), one) for at, one in enumerate(chosen, 1)]


_GAMES_INTRODUCTION = (
    "<p>How well models, personas and baselines play games that are told and played in words. Each scenario has a page with its rules, all "
    "metrics, who met whom, and some episodes to be followed move by move.</p>"
)
_SCENARIOS_HOW = (
    "Every scenario that was played or is installed. Best: the player with the highest mean reward, baselines among them, of those who have all "
    "games that others have."
)
_UNSCORED_HOW = (
    "What was not observed is no 0: it has no value, and the reason stands here. Episodes that a budget ended go on in a later run of the same "
    "command."
)
_OF_MODELS_ALONE = ("tokens", "dollars")
"""Metrics that no baseline has."""
_SCENARIO_TABLE = (
    Column("link", "Scenario", named),
    Column("told", "What it is", text),
    Column("status", "Status", text),
    Column("version", "Version", whole),
    Column("players", "Players", whole),
    Column("episodes", "Episodes", whole, "Of all players together"),
    Column("seeds", "Seeds", whole, "Most seeds that a player has played"),
    Column("best", "Best", named),
    Column("mean", "Its mean", as_is, "Mean reward; 95 % interval by seed beneath"),
    Column("unit", "Unit", text),
)
_UNPLAYED_TABLE = (
    Column("scenario", "Scenario", text),
    Column("player", "Player", text),
    Column("status", "State", text),
    Column("n", "Episodes", whole),
    Column("reason", "Reason", long_text),
)
_WITHOUT_VALUE_TABLE = (
    Column("scenario", "Scenario", text),
    Column("metric", "Metric", text),
    Column("n", "Players", whole, "Players without a value of the metric"),
    Column("players", "Who", long_text),
    Column("reason", "Reason", long_text),
)


def games_index(
    rows: StoredRows,
    played: Sequence[ScenarioResults],
    pages: Mapping[str, str],
    manifests: Mapping[str, ScenarioManifest],
    further: Sequence[Chapter] = (),
) -> str:
    """The page. `pages`: the file of each scenario that was played; `manifests`: the scenarios that are known; `further`: chapters after those
    on boards and scenarios."""
    chapters = [
        Chapter("boards", "Boards", _boards(played, pages), style=games_style(), script=games_file("games.js")),
        Chapter("scenarios", "Scenarios", _scenarios(played, pages, manifests)),
        *further,
        Chapter("unscored", "Not scored", _unscored(rows, played)),
        *drift_chapters(rows, GAMES_WATCHED, "scenarios"),
    ]
    return build_report("DTEF: games in words", _GAMES_INTRODUCTION, chapters)


def _boards(played: Sequence[ScenarioResults], pages: Mapping[str, str]) -> str:
    if not any(len(one.overall) for one in played):
        return section("boards", "Boards", PLAYERS_HOW, missing("No boards yet", MADE_BY_LEAGUE))
    body = "".join(_boards_of(one, pages[one.name]) for one in played if len(one.overall))
    return section("boards", "Boards", PLAYERS_HOW, body)


def _boards_of(found: ScenarioResults, page: str) -> str:
    told = f"<p>{inline(found.pack.manifest.description)}</p>" if found.pack else ""
    return f'<div class="scenario"><h3><a href="{page}">{inline(found.name)}</a></h3>{told}{metric_boards(found)}</div>'


def _scenarios(played: Sequence[ScenarioResults], pages: Mapping[str, str], manifests: Mapping[str, ScenarioManifest]) -> str:
    listed = [_listed_scenario(one, pages[one.name]) for one in played]
    there = {one.name for one in played}
    listed += [_unplayed(known) for name, known in sorted(manifests.items()) if name not in there]
    if not listed:
        return section(
            "scenarios", "Scenarios", _SCENARIOS_HOW, missing("No scenarios yet", "`dtef games list` says which there are")
        )
    frame = pd.DataFrame(listed)
    if played:
        frame = frame.assign(mean=with_interval(frame, "value", ("low", "high")))
    data = frame.drop(columns=["link", "best", "mean"], errors="ignore")
    shown = table(frame, _SCENARIO_TABLE, caption=counted(len(listed), "scenario"), row_head="link", data=data)
    return section("scenarios", "Scenarios", _SCENARIOS_HOW, shown)


def _of_manifest(known: ScenarioManifest | None) -> dict[str, Any]:
    return {
        "told": known.description if known else "It is not installed any more.",
        "status": known.status if known else None,
    }


def _unplayed(known: ScenarioManifest) -> dict[str, Any]:
    link = f'<span class="name">{inline(known.id)}</span><span class="note">not played yet</span>'
    return {**_of_manifest(known), "scenario": known.id, "link": link, "version": known.version, "players": 0}


def _listed_scenario(found: ScenarioResults, page: str) -> dict[str, Any]:
    overall = found.overall
    rewards = overall[overall["metric"] == EXPECTED_RETURN] if len(overall) else overall
    compared = rewards[~(rewards[PLAYED_COVERAGE] < 1)] if len(rewards) else rewards
    best: dict[Any, Any] = compared.iloc[0].to_dict() if len(compared) else {}
    return {
        **_of_manifest(found.pack.manifest if found.pack else None),
        "scenario": found.name,
        "link": f'<span class="name"><a href="{page}">{inline(found.name)}</a></span>',
        "version": found.version,
        "players": len(rewards),
        "episodes": rewards["n_episodes"].sum() if len(rewards) else None,
        "seeds": rewards["n_clusters"].max() if len(rewards) else None,
        "best": inline(best["player"]) if best else "",
        "best_player": best.get("player"),
        "value": best.get("mean"),
        "low": best.get("low"),
        "high": best.get("high"),
        "unit": best.get("unit"),
    }


def _unscored(rows: StoredRows, played: Sequence[ScenarioResults]) -> str:
    unplayed = pd.DataFrame(list(not_played(rows, list(played))))
    without = pd.DataFrame([row for one in played for row in _without_value(one)])
    parts = [
        "<h3>Episodes that were not played to their end</h3>",
        table(unplayed, _UNPLAYED_TABLE, caption="Episodes without a result") if len(unplayed) else paragraph("None."),
        "<h3>Metrics without a value</h3>",
        table(without, _WITHOUT_VALUE_TABLE, caption="Metrics without a value") if len(without) else paragraph("None."),
    ]
    return section("unscored", "Not scored", _UNSCORED_HOW, "".join(parts))


def _without_value(found: ScenarioResults) -> list[dict[str, Any]]:
    """One row per metric and reason, of players over all opponents."""
    overall = found.overall
    if not len(overall):
        return []
    of_models_alone = overall["is_baseline"] & overall["metric"].isin(_OF_MODELS_ALONE)
    none = overall[overall["mean"].isna() & ~of_models_alone]
    return [
        {
            "scenario": found.name,
            "metric": metric_name(str(metric)),
            "reason": reason,
            "n": len(own),
            "players": ", ".join(own["player"]),
        }
        for (metric, reason), own in none.groupby(["metric", "reason"], dropna=False)
    ]

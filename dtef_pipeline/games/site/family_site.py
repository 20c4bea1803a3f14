"""The games family on the site: results of players by scenario and opponent, and every listed episode move by move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.games.contract import list_general_metrics
from dtef_pipeline.games.play_drift import GAMES_WATCHED
from dtef_pipeline.games.site.boards import build_boards_of_scenario, describe_board
from dtef_pipeline.games.site.episode_list import describe_game
from dtef_pipeline.games.site.game_labels import (
    GameDocuments,
    describe_watched_setting,
    format_metric_title,
    format_ranked_metric,
    format_scenario_title,
)
from dtef_pipeline.games.site.league_rows import UNPLAYED_EPISODES, ScenarioResults, load_scenario_results
from dtef_pipeline.games.site.model_sections import build_model_sections, rank_models
from dtef_pipeline.games.site.scenario_page import build_scenario_pages
from dtef_pipeline.games.tables import GAMES_TABLES
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.site.content import Column, Section, Table, convert_to_rows
from dtef_pipeline.site.family_content import ITEM_COLUMNS, FamilyContent, FamilySite
from dtef_pipeline.site.paths import state_address
from dtef_pipeline.text.number_words import format_count

_METHOD = (
    "A game is a seed, seen from one seat, against one opponent; an episode is one player's run of a game. The mean of a metric is the sum of "
    "its counts over the sum of its possible counts. Its 95% interval treats seeds as independent (cluster jackknife); shares with one episode "
    "per seed have Wilson's interval. Below 5 seeds there is no interval.",
    "Two players are compared on the games that both played, by the mean difference of rewards and its interval. “Better” and “worse” mean that "
    "0 lies outside the interval; the interval is not widened for the number of comparisons. A rank range separates only models whose intervals "
    "do not overlap.",
    "Models are ranked on the same games: a model that lacks games of the other models has no rank.",
    "The composite score is the arithmetic mean of metrics on 0-1, each turned so that higher is better, with the weights of the "
    "manifest. If a part is missing, the composite is missing, except for a player that forfeited every episode, whose missing parts "
    "count as the worst.",
)
_SCENARIO_COLUMNS = (Column("link", "Scenario"), Column("description", "What it is", "long"))
_UNPLAYED_COLUMNS = (
    Column("link", "Scenario"),
    Column("player", "Player", "model"),
    Column("n", "Episodes", "count", always=True),
    Column("reason", "Reason", "note"),
)


def read_games(connection: duckdb.DuckDBPyConnection, documents: GameDocuments) -> FamilyContent:
    """Read the family's pages. `documents`: scenarios and personas in words; episodes of a missing scenario are shown without rules and
    table."""
    stored = StoredRows(connection)
    scenarios = load_scenario_results(stored, documents)
    boards = {scenario.name: build_boards_of_scenario(scenario) for scenario in scenarios}
    pages = sorted(
        (page for group in boards.values() for page in group),
        key=lambda page: (-len(page.board.models), -len(page.scenario.episodes), page.board.title),
    )
    no_models = f"No model has played yet; there are results of baselines in {format_count(len(scenarios), 'scenario')}."
    metrics = [
        f"{format_metric_title(metric.name)} ({metric.unit}, {metric.direction}): {metric.description}"
        for metric in list_general_metrics("unit of the game")
    ]
    rewards = [row for scenario in scenarios for row in _build_reward_rows(scenario)]
    return FamilyContent(
        f"{pages[0].board.title}: {describe_board(pages[0])}" if pages else no_models,
        [page.board for page in pages],
        [_build_scenarios_section(scenarios, documents)],
        partial(build_model_sections, scenarios, rank_models(scenarios)),
        pd.DataFrame(rewards, columns=list(ITEM_COLUMNS)),
        item_note="An item is a game: a seed, seen from one seat, against one opponent. Rewards have the unit of their scenario.",
        pages=lambda: (
            page
            for scenario in scenarios
            for page in build_scenario_pages(scenario, boards[scenario.name], stored, documents.personas)
        ),
        data=[_build_unplayed_section(scenarios, stored)],
        method=[*_METHOD, *metrics],
        variants={name: variant for variant, name in scenarios[0].labels.names.items()},
    )


def build_games_site(documents: GameDocuments) -> FamilySite:
    """Build the site with the rules and personas of these documents."""
    return FamilySite(
        "games",
        "Games",
        tuple(GAMES_TABLES),
        "persona_results",
        partial(read_games, documents=documents),
        GAMES_WATCHED,
        partition_words=format_scenario_title,
        metric_words=format_ranked_metric,
        describe_watched_setting=describe_watched_setting,
        responses="episode_turns",
    )


GAMES_SITE = build_games_site(GameDocuments())


def _build_scenarios_section(scenarios: Sequence[ScenarioResults], documents: GameDocuments) -> Section:
    rows = [
        {
            "link": scenario.link,
            "description": scenario.pack.manifest.description if scenario.pack else "It is no longer installed.",
        }
        for scenario in sorted(scenarios, key=lambda scenario: scenario.link.text)
    ]
    n_episodes = sum(len(scenario.episodes) for scenario in scenarios)
    others = sorted(map(format_scenario_title, set(documents.manifests) - {scenario.name for scenario in scenarios}))
    answer = f"{format_count(len(rows), 'scenario')} with {format_count(n_episodes, 'episode')}."
    answer += f" Without results: {', '.join(others)}." if others else ""
    table = Table("Each has a page with its rules, metrics and episodes", _SCENARIO_COLUMNS, rows)
    return Section("scenarios", "Scenarios", [table], answer)


def _build_reward_rows(scenario: ScenarioResults) -> Iterator[dict[str, Any]]:
    """Return the mean reward of each model on each game (seed, seat, opponent) and persona, over draws."""
    models = scenario.episodes[~scenario.episodes["is_reference"]]
    keys = ["name", "as_persona", "item_id", "cluster", "seat", "opponent"]
    for row in convert_to_rows(models.groupby(keys, sort=True)["reward"].mean().reset_index()):
        persona, game = row["as_persona"], row["item_id"]
        suffix = f", as {persona}" if persona else ""
        yield {
            "model": row["name"],
            "item": f"{scenario.name}/{game}/{persona}",
            "label": f"{scenario.link.text}, {describe_game(scenario, row)}{suffix}, reward in {scenario.unit}",
            "page": state_address(scenario.link.href, game=game, **({"as": persona} if persona else {})),
            "score": row["reward"],
        }


def _build_unplayed_section(scenarios: Sequence[ScenarioResults], stored: StoredRows) -> Section:
    """Build one row per player and reason of the episodes without a result."""
    links = {scenario.name: scenario.link for scenario in scenarios}
    unplayed = stored.connection.sql(UNPLAYED_EPISODES).fetchall()
    rows = [{"link": links[name], "player": player, "reason": reason, "n": n} for name, player, reason, n in unplayed]
    n = sum(row["n"] for row in rows)
    answer = f"{format_count(n, 'episode')} {'was' if n == 1 else 'were'} not played to the end." if n else ""
    guide = "An episode without a result does not count as 0. Episodes that a budget ended continue when the same command runs again."
    table = Table("Not played to the end", _UNPLAYED_COLUMNS, rows)
    return Section("unplayed", "episodes without a result", [table], answer, guide if n else "")

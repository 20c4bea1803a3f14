"""The games family on the site: results of players by scenario and opponent, and every listed episode move by move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.games.game_pairs import GAMES_PAIRED
from dtef_pipeline.games.metrics import list_general_metrics
from dtef_pipeline.games.play_drift import GAMES_WATCHED
from dtef_pipeline.games.site.boards import BoardPage, build_boards_of_scenario, sort_boards, verdict
from dtef_pipeline.games.site.episode_list import choose_listed_episodes, describe_game
from dtef_pipeline.games.site.game_labels import (
    GameDocuments,
    describe_watched_way,
    format_metric_title,
    format_scenario_title,
    part_words,
    ranked_metric_words,
)
from dtef_pipeline.games.site.league_rows import ScenarioResults, list_unplayed, load_scenario_results
from dtef_pipeline.games.site.model_sections import GameModelSections
from dtef_pipeline.games.site.scenario_page import build_persona_rows, build_scenario_pages, personas_section
from dtef_pipeline.games.tables import GAMES_TABLES
from dtef_pipeline.identity import digest
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.site.content import Column, DataFile, Page, Section, Table, convert_to_rows
from dtef_pipeline.site.family_view import ITEM_COLUMNS, FamilySite, FamilyView
from dtef_pipeline.site.paths import state_address
from dtef_pipeline.text.quantity_words import format_count

_SCENARIO_COLUMNS = (
    Column("link", "Scenario"),
    Column("description", "What it is", "long"),
    Column("players", "Players", "count", always=True),
    Column("best", "Best model", "model", always=True),
    Column("mean", "Its mean reward", "score"),
    Column("unit", "Unit", more=True),
    Column("episodes", "Episodes", "count", more=True),
    Column("seeds", "Seeds", "count", "Largest number of seeds of a player", more=True),
    Column("version", "Version", "count", more=True),
    Column("status", "Status", more=True),
)
_UNPLAYED_COLUMNS = (
    Column("scenario", "Scenario"),
    Column("player", "Player", "model"),
    Column("status", "State", "code"),
    Column("n", "Episodes", "count", always=True),
    Column("reason", "Reason", "note"),
)
_VALUELESS_COLUMNS = (
    Column("scenario", "Scenario"),
    Column("metric", "Metric", always=True),
    Column("n", "Players", "count", "Players without a value of the metric", always=True),
    Column("players", "Who", "long", more=True),
    Column("reason", "Reason", "note"),
)
_MODEL_METRICS = ("tokens", "dollars")
"""Metrics that baselines do not have."""
_GAME_METHOD = (
    "A game is a seed, seen from one seat, against one opponent; an episode is one player's run of a game. The mean of a metric is the sum of "
    "its counts over the sum of its possible counts. Its 95% interval treats seeds as independent (cluster jackknife); shares with one episode "
    "per seed have Wilson's interval. Below 5 seeds there is no interval.",
    "Two players are compared on the games that both played, by the mean difference of rewards and its interval. “Better” and “worse” mean that "
    "0 lies outside the interval; the interval is not widened for the number of comparisons. A rank range separates only models whose intervals "
    "do not overlap.",
    "Models are ranked on the same games: a model that lacks games of the other models has no rank. The page of a scenario compares all players "
    "on the games that all of them have.",
    "The composite score is the arithmetic mean of metrics on 0-1, each turned so that higher is better, with the weights of the "
    "manifest. If a part is missing, the composite is missing, except for a player that forfeited every episode, whose missing parts "
    "count as the worst.",
)


_NOTHING_KNOWN = GameDocuments()
Boards = Mapping[str, Sequence[BoardPage]]
"""By scenario, its boards."""


def read_games(connection: duckdb.DuckDBPyConnection, documents: GameDocuments = _NOTHING_KNOWN) -> FamilyView:
    """Read the family's pages. `documents`: scenarios and personas in words; episodes of a missing scenario are shown without rules and
    table."""
    scenarios = load_scenario_results(StoredRows(connection), documents)
    boards = {scenario.name: build_boards_of_scenario(scenario) for scenario in scenarios}
    board_pages = sort_boards(page for group in boards.values() for page in group)
    names = scenarios[0].labels.names if scenarios else {}
    episodes = {scenario.name: choose_listed_episodes(scenario) for scenario in scenarios}
    return FamilyView(
        verdict(board_pages) if board_pages else _describe_no_models(scenarios),
        [page.board for page in board_pages],
        [
            _build_scenarios_section(scenarios, boards, documents),
            _build_personas_section(scenarios),
        ],
        GameModelSections(scenarios, episodes),
        _compute_item_scores(scenarios),
        item_note="An item is a game: a seed, seen from one seat, against one opponent. Rewards have the unit of their scenario.",
        pages=lambda: _build_pages(scenarios, boards, episodes, documents),
        data=[_build_counts_section(scenarios), _build_unplayed_section(scenarios), _build_missing_values_section(scenarios)],
        method=[*_GAME_METHOD, *_describe_metrics()],
        variants={name: variant for variant, name in names.items()},
    )


def _describe_no_models(scenarios: Sequence[ScenarioResults]) -> str:
    n = len(scenarios)
    return f"No model has played yet; {format_count(n, 'scenario')} {'has' if n == 1 else 'have'} results of baselines."


GAMES_SITE = FamilySite(
    "games",
    "Games",
    "scenario",
    tuple(GAMES_TABLES),
    "persona_results",
    read_games,
    GAMES_WATCHED,
    metrics=GAMES_PAIRED.metrics,
    part_words=part_words,
    metric_words=ranked_metric_words,
    describe_watched_way=describe_watched_way,
    responses="episode_turns",
)


def build_games_site(game_documents: GameDocuments) -> FamilySite:
    """Build the site with the rules and personas of these documents."""
    texts = [document.model_dump_json() for documents in game_documents for _, document in sorted(documents.items())]
    return replace(GAMES_SITE, read=partial(read_games, documents=game_documents), documents=digest(texts))


def _build_pages(
    scenarios: Sequence[ScenarioResults], boards: Boards, episodes: Mapping[str, pd.DataFrame], documents: GameDocuments
) -> Iterator[Page | DataFile]:
    for scenario in scenarios:
        yield from build_scenario_pages(scenario, boards[scenario.name], episodes[scenario.name], documents.personas)


def _describe_metrics() -> list[str]:
    return [
        f"{format_metric_title(metric.name)} ({metric.unit}, {metric.direction}): {metric.description}"
        for metric in list_general_metrics("unit of the game")
    ]


def _build_scenarios_section(scenarios: Sequence[ScenarioResults], boards: Boards, documents: GameDocuments) -> Section:
    rows = sorted(
        (_build_scenario_row(scenario, boards[scenario.name]) for scenario in scenarios), key=lambda row: str(row["link"].text)
    )
    episodes = sum(len(scenario.episodes) for scenario in scenarios)
    titles = sorted(
        format_scenario_title(name) for name in set(documents.manifests) - {scenario.name for scenario in scenarios}
    )
    answer = f"{format_count(len(rows), 'scenario')} with {format_count(episodes, 'episode')}."
    answer += f" Not played yet: {', '.join(titles)}." if titles else ""
    return Section(
        "scenarios",
        "Scenarios",
        [Table("Each has a page with its rules, metrics and episodes", _SCENARIO_COLUMNS, rows)],
        answer,
    )


def _build_scenario_row(scenario: ScenarioResults, boards: Sequence[BoardPage]) -> dict[str, Any]:
    best = next((page.board.models[0] for page in boards if page.board.models), None)
    players, manifest = scenario.filter_by_metric(), scenario.pack.manifest if scenario.pack else None
    return {
        "link": scenario.link,
        "description": manifest.description if manifest else "It is no longer installed.",
        "status": manifest.status if manifest else None,
        "players": len(players),
        "best": best.model if best else None,
        "mean": best.score if best else None,
        "unit": scenario.unit,
        "episodes": len(scenario.episodes),
        "seeds": int(players["n_clusters"].max()) if len(players) else None,
        "version": scenario.version,
    }


def _build_personas_section(scenarios: Sequence[ScenarioResults]) -> Section:
    return personas_section([row for scenario in scenarios for row in build_persona_rows(scenario)])


def _compute_item_scores(scenarios: Sequence[ScenarioResults]) -> pd.DataFrame:
    """Return the mean reward of each model on each game (seed, seat, opponent) and persona, over draws."""
    frames = [_compute_game_rewards(scenario) for scenario in scenarios]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(ITEM_COLUMNS))


def _compute_game_rewards(scenario: ScenarioResults) -> pd.DataFrame:
    models = scenario.episodes[~scenario.episodes["is_baseline"]]
    keys = ["name", "as_persona", "item_id", "cluster", "seat", "opponent"]
    means = models.groupby(keys, sort=True)["reward"].mean().reset_index()
    return pd.DataFrame([_build_reward_row(scenario, row) for row in convert_to_rows(means)], columns=list(ITEM_COLUMNS))


def _build_reward_row(scenario: ScenarioResults, row: dict[Any, Any]) -> dict[str, Any]:
    as_persona = f", as {row['as_persona']}" if row["as_persona"] else ""
    return {
        "model": row["name"],
        "item": f"{scenario.name}/{row['item_id']}/{row['as_persona']}",
        "label": f"{scenario.title}, {describe_game(scenario, row)}{as_persona}, reward in {scenario.unit}",
        "page": state_address(scenario.path, game=row["item_id"], **({"as": row["as_persona"]} if row["as_persona"] else {})),
        "score": row["reward"],
    }


def _build_counts_section(scenarios: Sequence[ScenarioResults]) -> Section:
    total = sum(len(scenario.episodes) for scenario in scenarios)
    by_models = sum(int((~scenario.episodes["is_baseline"]).sum()) for scenario in scenarios)
    answer = (
        f"{format_count(total, 'episode')} of {format_count(len(scenarios), 'scenario')}, {by_models:,} by models and "
        "the others by baselines."
    )
    return Section("episodes", "episodes", [], answer)


def _build_unplayed_section(scenarios: Sequence[ScenarioResults]) -> Section:
    rows = list(list_unplayed(scenarios))
    n = sum(row["n"] for row in rows)
    note = "An episode without a result does not count as 0. Episodes that a budget ended continue when the same command runs again."
    answer = f"{format_count(n, 'episode')} {'was' if n == 1 else 'were'} not played to the end." if n else ""
    return Section(
        "unplayed",
        "episodes without a result",
        [Table("Not played to the end", _UNPLAYED_COLUMNS, rows)],
        answer,
        note if n else "",
    )


def _build_missing_values_section(scenarios: Sequence[ScenarioResults]) -> Section:
    """Build one row per metric and reason, for players over all opponents."""
    rows: list[dict[str, Any]] = []
    for scenario in scenarios:
        overall = scenario.overall
        is_inapplicable = overall["is_baseline"] & overall["metric"].isin(_MODEL_METRICS)
        none = overall[overall["mean"].isna() & ~is_inapplicable]
        rows += [
            {
                "scenario": scenario.link,
                "metric": format_metric_title(str(metric)),
                "n": len(group),
                "players": ", ".join(group["player"]),
                "reason": reason,
            }
            for (metric, reason), group in none.groupby(["metric", "reason"], dropna=False)
        ]
    return Section(
        "without-value", "metrics without a value", [Table("Metrics without a value", _VALUELESS_COLUMNS, rows, first=10)]
    )

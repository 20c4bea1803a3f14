"""The page of a scenario: its players, results against opponents, every metric, rules and episodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.games.contract import EXPECTED_RETURN, list_general_metrics
from dtef_pipeline.games.game_in_play import describe_unit
from dtef_pipeline.games.persona_results import ALL_OPPONENTS
from dtef_pipeline.games.personas import BASELINE_PREFIX, Persona
from dtef_pipeline.games.site.boards import BoardPage, build_board, describe_board
from dtef_pipeline.games.site.episode_list import build_episodes_section, build_transcript_files, read_listed_episodes
from dtef_pipeline.games.site.game_labels import format_metric_title
from dtef_pipeline.games.site.league_rows import ScenarioResults, read_mean
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.site.content import Column, DataFile, Fold, Link, Page, Section, Table, TemplateBlock, convert_to_rows
from dtef_pipeline.site.leaderboard import board_block
from dtef_pipeline.site.paths import board_page
from dtef_pipeline.text.number_words import format_count

_METRIC_COLUMNS_SHOWN = 6
"""Number of metrics shown at first."""
_ARROWS = {"higher": " ↑", "lower": " ↓"}


def build_scenario_pages(
    scenario: ScenarioResults, boards: Sequence[BoardPage], stored: StoredRows, personas: Mapping[str, Persona]
) -> Iterator[Page | DataFile]:
    """Build the page, then the transcripts that it loads."""
    episodes, players = read_listed_episodes(scenario, stored), scenario.players
    board = build_board(scenario, players, "", "", label="player")
    sections = [
        Section("players", "Players", [board_block(board)], guide=board.guide),
        build_opponents_section(scenario),
        build_metrics_section(scenario),
        build_episodes_section(scenario, episodes),
        build_rules_section(scenario, personas),
    ]
    n_baselines = format_count(len(players), "baseline")
    answer = describe_board(boards[0]) if boards else f"No model has played yet; results are those of {n_baselines}."
    text = scenario.pack.manifest.description if scenario.pack else "This scenario is no longer installed."
    crumbs = (Link("Games", board_page("games")),)
    yield Page(scenario.link.href, scenario.link.text, answer, sections, crumbs, text, scripts=("games.js",))
    yield from build_transcript_files(scenario, episodes)


def _pivot_means(scenario: ScenarioResults, results: pd.DataFrame, key: str) -> list[dict[str, Any]]:
    """Return a row for each player of these results, best first, with its mean for each value of the column `key`."""
    rows: dict[str, dict[str, Any]] = {name: {"player": name} for name in scenario.players["player"]}
    for row in convert_to_rows(results):
        rows.setdefault(row["player"], {"player": row["player"]})[row[key]] = read_mean(row)
    return [row for row in rows.values() if len(row) > 1]


def build_opponents_section(scenario: ScenarioResults) -> Section:
    """Build the table of the mean reward of each player against each opponent."""
    results = scenario.results[scenario.results["mean"].notna()]
    results = results[(results["metric"] == EXPECTED_RETURN) & (results["opponent"] != ALL_OPPONENTS)]
    opponents = sorted(set(results["opponent"]), key=lambda name: (not name.startswith(BASELINE_PREFIX), name))
    columns = [Column(name, scenario.labels.opponent(name), "signed", heat=True) for name in opponents]
    peak = results["mean"].abs().max() or 1.0
    table = Table(
        f"Mean reward, {describe_unit(scenario.unit)}, of the player of a row against the opponent of a column",
        [Column("player", "Player", "model"), *columns],
        _pivot_means(scenario, results, "opponent"),
        shades=(-peak, peak),
    )
    guide = "The darker a cell, the better for the player of its row."
    return Section("opponents", "Against each opponent", [table], guide=guide)


def build_metrics_section(scenario: ScenarioResults) -> Section:
    """Build the table of all metrics but the mean reward: the composite score, those of the scenario, then general ones."""
    results = scenario.overall[scenario.overall["mean"].notna() & (scenario.overall["metric"] != EXPECTED_RETURN)]
    own_metrics = scenario.pack.scenario.metrics if scenario.pack else ()
    descriptions = {metric.name: metric.description for metric in (*own_metrics, *list_general_metrics(scenario.unit))}
    first_rows = results.drop_duplicates("metric").set_index("metric")
    columns = [Column("player", "Player", "model")]
    for name in dict.fromkeys(("composite", *descriptions, *first_rows.index)):
        if name in first_rows.index:
            unit, direction = first_rows.loc[name, ["unit", "direction"]]
            title, meaning = (
                f"{format_metric_title(name)}{_ARROWS.get(direction, '')}",
                f"{descriptions.get(name, '')} Unit: {unit}",
            )
            columns.append(Column(name, title, "number", meaning, more=len(columns) > _METRIC_COLUMNS_SHOWN))
    guide = (
        "Players are sorted by their mean reward. ↑: higher is better, ↓: lower is better. Refusals are counted separately from illegal "
        "texts. If a player writes no legal move in a turn, it forfeits, or the game makes a move for it."
    )
    table = Table("Mean over all episodes", columns, _pivot_means(scenario, results, "metric"))
    return Section("metrics", "Other metrics", [table], guide=guide)


def build_rules_section(scenario: ScenarioResults, personas: Mapping[str, Persona]) -> Section:
    """Build the facts on a scenario, the rules that every player gets, and the texts of its personas; empty if it is no longer installed."""
    if scenario.pack is None:
        return Section("rules", "Rules", [])
    manifest = scenario.pack.manifest
    constraints = [f"You must not: {rule}" for rule in manifest.constraints]
    texts = {"The rules that every player gets": [manifest.rules, *constraints, manifest.reply_format]}
    for name in sorted(set(scenario.players["persona"]) & set(personas)):
        persona = personas[name]
        texts[f"{persona.display_name} v{persona.version}, {persona.status}"] = [persona.system_prompt]
    folds = [Fold(title, [TemplateBlock("games/words.html.j2", {"texts": words})]) for title, words in texts.items()]
    facts = TemplateBlock("games/rules.html.j2", {"pack": scenario.pack, "version": scenario.version})
    return Section("rules", "Rules", [facts, *folds])

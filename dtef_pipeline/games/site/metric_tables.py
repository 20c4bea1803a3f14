"""Tables of a scenario: every metric by player, the form of play, results against opponents, and results on common games."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dtef_pipeline.games.game_pairs import FORM_FAMILY, PLAYED_COVERAGE
from dtef_pipeline.games.metrics import EXPECTED_RETURN, FORFEIT_RATE, ILLEGAL_RATE, SUCCESS_RATE
from dtef_pipeline.games.persona_results import ALL_OPPONENTS
from dtef_pipeline.games.site.boards import GAME_BOARD_HOW, describe_mean, list_player_keys, list_values
from dtef_pipeline.games.site.game_labels import SIDE_WORDS, format_metric_title, format_unit
from dtef_pipeline.games.site.league_rows import FAMILY_ORDER, ScenarioResults
from dtef_pipeline.site.content import (
    Block,
    Chart,
    Column,
    Estimate,
    Fold,
    Section,
    Table,
    TemplateBlock,
    convert_to_rows,
    is_unknown,
)
from dtef_pipeline.site.leaderboard import MAX_IN_CHART
from dtef_pipeline.site.number_text import show
from dtef_pipeline.text.number_words import format_count

_METRIC_COLUMNS_SHOWN = 4
"""Number of metrics shown at first in a family's table."""
_ARROWS = {"higher": "↑", "lower": "↓"}
_PLAYER_COLUMNS_SHOWN = (
    Column("player", "Player", "model"),
    Column("mean", "Mean reward", "score", always=True, ends=("low", "high")),
    Column("won", "Won", "percent", "Episodes won, of all episodes"),
    Column("illegal", "Illegal texts", "number", "Texts that were not a legal move, per turn; lower is better", always=True),
    Column("n_clusters", "Seeds", "count"),
    Column("n_episodes", "Episodes", "count", more=True),
    Column("lowest", "Lowest seed", "number", "The lowest mean reward of a seed", more=True),
    Column("median", "Median seed", "number", more=True),
    Column("highest", "Highest seed", "number", more=True),
    Column("snapshot", "Snapshot", "code", more=True),
    Column("note", "Note", "note"),
)

_SHARED_GAME_COLUMNS = tuple(
    entry for entry in _PLAYER_COLUMNS_SHOWN if entry.name in ("player", "mean", "n_clusters", "n_episodes", "note")
)


def build_mean_estimate(row: Mapping[Any, Any]) -> Estimate:
    return Estimate(row["mean"], row["low"], row["high"])


def build_players_section(scenario: ScenarioResults) -> Section:
    """Build the table of all players, models, personas and baselines, by their mean reward."""
    players = scenario.filter_by_metric()
    seeds = _compute_seed_spread(scenario.episodes)
    rows = [
        {**row, **seeds.get(row["player"], {}), "won": wins, "illegal": row[ILLEGAL_RATE], "note": describe_mean(row)}
        for row, wins in zip(convert_to_rows(players), list_values(scenario, SUCCESS_RATE, players), strict=True)
    ]
    caption = f"Mean reward of an episode{_format_unit(scenario.unit)}; higher is better"
    points = [
        {"label": row["player"], "value": row["mean"], "low": row["low"], "high": row["high"]}
        for row in rows
        if not is_unknown(row["mean"])
    ]
    block = TemplateBlock(
        "leaderboard.html.j2",
        {"table": Table(caption, _PLAYER_COLUMNS_SHOWN, rows), "chart": Chart("intervals", points[:MAX_IN_CHART], caption)},
    )
    return Section("players", "Players", [block] if rows else [], guide=GAME_BOARD_HOW)


def _format_unit(unit: str) -> str:
    return f", in{format_unit(unit)}" if format_unit(unit) else ""


def _compute_seed_spread(episodes: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the lowest, median and highest mean reward of a seed, by player."""
    by_seed = episodes.groupby(["player", "cluster"])["reward"].mean().groupby("player")
    spread = by_seed.agg(lowest="min", median="median", highest="max")
    return {str(player): {str(name): float(value) for name, value in row.items()} for player, row in spread.iterrows()}


def build_metrics_section(scenario: ScenarioResults) -> Section:
    """Build the tables of all metrics but the mean reward, by family, with players as rows and metrics as columns."""
    overall = scenario.overall
    families = [name for name in FAMILY_ORDER if name != FORM_FAMILY and (overall["metric_family"] == name).any()]
    tables = {name: block for name in families if (block := _build_family_table(scenario, name))}
    blocks: list[Block] = [Fold(name.capitalize(), [block], index == 0) for index, (name, block) in enumerate(tables.items())]
    note = "Players are sorted by their mean reward. ↑: higher is better, ↓: lower is better."
    return Section("metrics", "Other metrics", blocks, guide=note)


def _build_family_table(scenario: ScenarioResults, family: str) -> Table | None:
    rows = scenario.overall[scenario.overall["metric_family"] == family]
    names = [name for name in scenario.metrics if name != EXPECTED_RETURN and (rows["metric"] == name).any()]
    if not names:
        return None
    columns, players = [Column("player", "Player", "model")], scenario.filter_by_metric()
    lines: list[dict[str, Any]] = [{"player": name, "_kind": "model"} for name in players["player"]]
    for index, name in enumerate(names):
        metric_rows = rows[rows["metric"] == name]
        cells = dict(zip(list_player_keys(metric_rows), map(build_mean_estimate, convert_to_rows(metric_rows)), strict=True))
        for line, key in zip(lines, list_player_keys(players), strict=True):
            line[name] = cells.get(key)
        columns.append(_build_metric_column(scenario, metric_rows, index >= _METRIC_COLUMNS_SHOWN))
    return Table(f"{family.capitalize()}: mean over all episodes", columns, lines)


def _build_metric_column(scenario: ScenarioResults, rows: pd.DataFrame, more: bool) -> Column:
    name, unit, side = (str(rows[column].iloc[0]) for column in ("metric", "unit", "direction"))
    metric = scenario.descriptions.get(name)
    meaning = "; ".join(
        filter(None, (metric.description if metric else "", unit, SIDE_WORDS.get(side, "neither way is better")))
    )
    return Column(name, f"{format_metric_title(name)} {_ARROWS.get(side, '')}".strip(), "number", meaning, more=more)


def build_form_section(scenario: ScenarioResults) -> Section:
    """Build the table of texts that were not moves and their consequences, for models, because baselines write no texts."""
    table = _build_family_table(scenario, FORM_FAMILY)
    models = scenario.filter_by_metric(ILLEGAL_RATE)
    models = models[~models["is_baseline"]]
    if table is None or not len(models):
        return Section("form", "Illegal texts and forfeits", [])
    names = set(models["player"])
    rows = [row for row in table.rows if row["player"] in names]
    clean = int((models["mean"] == 0).sum())
    model = models.sort_values("mean", ascending=False, kind="stable").iloc[0]
    subject = "No player wrote" if clean == len(models) else f"{clean} of {format_count(len(models), 'player')} never wrote"
    answer = f"{subject} an illegal text"
    if model["mean"] > 0:
        answer += f"; {model['player']} wrote the most illegal texts, {show(float(model['mean']), 'number')} per turn"
        answer += (
            f", and forfeited {show(float(model[FORFEIT_RATE]), 'percent')} of its episodes" if model[FORFEIT_RATE] > 0 else ""
        )
    note = "Refusals are counted separately. If a player writes no legal move in a turn, it forfeits, or the game makes a move for it."
    return Section("form", "Illegal texts and forfeits", [Table(table.caption, table.columns, rows)], f"{answer}.", note)


def build_opponents_section(scenario: ScenarioResults) -> Section:
    """Build the table of the mean reward of each player against each opponent."""
    matchups = scenario.matchups[scenario.matchups["mean"].notna()]
    if not len(matchups):
        return Section("opponents", "Against each opponent", [])
    opponents = sorted(matchups["opponent"].unique(), key=lambda name: (not name.startswith("baseline/"), name))
    cells: dict[str, dict[str, Any]] = {}
    for row in convert_to_rows(matchups):
        cells.setdefault(row["player"], {})[row["opponent"]] = build_mean_estimate(row)
    rows = [{"player": name, **cells[name]} for name in scenario.filter_by_metric()["player"] if name in cells]
    columns = [
        Column("player", "Player", "model"),
        *(Column(opponent, scenario.labels.opponent(opponent), "signed", heat=True) for opponent in opponents),
    ]
    peak = float(matchups["mean"].abs().max()) or 1.0
    caption = f"Mean reward of the player of a row against the opponent of a column{_format_unit(scenario.unit)}"
    note = "Over the same deals in all seats. The darker a cell, the better for the player of its row."
    table = Table(caption, columns, rows, shades=(-peak, peak))
    return Section("opponents", "Against each opponent", [table], _describe_extremes(scenario, matchups), note)


def _describe_extremes(scenario: ScenarioResults, matchups: pd.DataFrame) -> str:
    """Describe the best and worst results of models, or of baselines if no model plays."""
    models = matchups[~matchups["is_baseline"]]
    ranking = (models if len(models) else matchups).sort_values("mean", kind="stable")
    weakest, best = ranking.iloc[0], ranking.iloc[-1]
    unit = format_unit(scenario.unit)
    first, last = (
        f"{row['player']} makes {show(float(row['mean']), 'signed')}{unit} against {scenario.labels.opponent(row['opponent'])}"
        for row in (best, weakest)
    )
    return f"{first}." if len(ranking) == 1 else f"Best: {first}; worst: {last}."


def build_same_games_section(scenario: ScenarioResults) -> Section:
    """Build the table of means over the games that all players have; empty if all have the same games."""
    title = "The same games"
    if not (scenario.overall[PLAYED_COVERAGE] < 1).any():
        return Section("same-games", title, [])
    rows = scenario.shared[scenario.shared["metric"] == EXPECTED_RETURN] if len(scenario.shared) else scenario.shared
    rows = rows[rows["opponent"] == ALL_OPPONENTS] if len(rows) else rows
    if not len(rows):
        return Section("same-games", title, [], "The players have no game in common.")
    best = rows.iloc[0]
    answer = (
        f"On the games that all players have, {best['player']} is first: "
        f"{show(build_mean_estimate(best.to_dict()))}{format_unit(scenario.unit)}."
    )
    table = Table(
        "Mean reward on the games that all players have",
        _SHARED_GAME_COLUMNS,
        convert_to_rows(rows.assign(note=rows["reason"])),
    )
    note = "Not all players have the same seeds and opponents, so the means above cover different games. The means here cover the same games."
    return Section("same-games", title, [table], answer, note)

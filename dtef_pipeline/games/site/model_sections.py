"""Sections on one model: its strengths and weaknesses, comparisons with baselines and itself, and its worst episodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from dtef_pipeline.games.contract import FORFEIT_RATE, ILLEGAL_RATE, VOLATILITY
from dtef_pipeline.games.game_pairs import FORM_FAMILY, rank_places
from dtef_pipeline.games.site.episode_list import EPISODE_COLUMNS, build_episode_rows
from dtef_pipeline.games.site.game_labels import format_metric_title
from dtef_pipeline.games.site.league_rows import ScenarioResults, describe_difference, read_mean
from dtef_pipeline.site.content import Column, Section, Table, convert_to_rows
from dtef_pipeline.text.number_words import format_count

_WORST, _SHOWN_FIRST = 10, 12
_COUNTED_FORMS = (ILLEGAL_RATE, FORFEIT_RATE)
"""Metrics of the form of play that are good or bad for a model."""
_SCENARIO, _PERSONA = Column("scenario", "Scenario"), Column("as_persona", "As")
_STANDING_COLUMNS = (
    _SCENARIO,
    Column("title", "Metric", always=True),
    _PERSONA,
    Column("value", "Value", "number"),
    Column("rank", "Rank", "count", "Among all players of the scenario, baselines too", always=True),
    Column("of", "Of", "count", always=True),
)
_DIFFERENCE_COLUMNS = (
    _SCENARIO,
    Column("rival", "Compared with", always=True),
    _PERSONA,
    Column("difference", "Difference", "signed", "Mean reward of the model minus that of the other, on the same games"),
    Column("verdict", "The model is", always=True),
    Column("unit", "Unit"),
)
_WORST_COLUMNS = (Column("episode", "Episode"), _SCENARIO, _PERSONA, *EPISODE_COLUMNS)


def build_model_sections(scenarios: Sequence[ScenarioResults], ranks: Sequence[dict[str, Any]], name: str) -> list[Section]:
    """Build the sections on a model. `ranks`: those of all models, see `rank_models`."""
    own_ranks = [row for row in ranks if row["name"] == name]
    return [
        _build_standing_section(own_ranks),
        _build_differences_section(scenarios, name),
        _build_worst_section(scenarios, name),
    ]


def rank_models(scenarios: Sequence[ScenarioResults]) -> list[dict[str, Any]]:
    """Rank each model by each metric that measures ability and on which players differ; strengths first.

    `share`: the share of players ahead, 0-1, where a player with the same mean counts half.
    """
    rows = [row for scenario in scenarios for row in _rank_models_of(scenario)]
    return sorted(rows, key=lambda row: (row["share"], row["scenario"].text, row["title"]))


def _rank_models_of(scenario: ScenarioResults) -> Iterator[dict[str, Any]]:
    for metric, rows in scenario.overall.groupby("metric"):
        is_form = rows["metric_family"].iloc[0] == FORM_FAMILY and metric not in _COUNTED_FORMS
        is_ability = rows["direction"].iloc[0] != "none" and metric != VOLATILITY and not is_form
        if not is_ability or not rows["mean"].max() > rows["mean"].min():
            continue
        places = rank_places(rows, pd.Series(True, index=rows.index))
        shares = places.map(
            lambda place, places=places: ((places < place).sum() + (places == place).sum() / 2) / places.count()
        )
        ranked = rows.assign(rank=places, of=places.count(), share=shares)
        for row in convert_to_rows(ranked[places.notna() & ~rows["is_reference"]]):
            yield {**row, "scenario": scenario.link, "title": format_metric_title(str(metric)), "value": read_mean(row)}


def _build_standing_section(rows: Sequence[dict[str, Any]]) -> Section:
    answer = f"Strongest: {_describe_rank(rows[0])}; weakest: {_describe_rank(rows[-1])}." if len(rows) > 1 else ""
    table = Table("By scenario and metric", _STANDING_COLUMNS, rows, first=_SHOWN_FIRST)
    guide = "Rows are ordered by the rank among all players of the scenario: strengths first. Ranks of equal means are shared."
    return Section("standing", "strengths and weaknesses", [table], answer, guide)


def _describe_rank(row: dict[str, Any]) -> str:
    return f"{row['title'].lower()} in {row['scenario'].text}, rank {row['rank']:.0f} of {row['of']}"


def _build_differences_section(scenarios: Sequence[ScenarioResults], name: str) -> Section:
    """Compare the model with each baseline, and as each persona with itself, on the games that both played."""
    rows = []
    for scenario in scenarios:
        players = scenario.players
        baselines = players.loc[players["is_reference"], "player"].tolist()
        for row in convert_to_rows(players[players["name"] == name]):
            for rival in [*baselines, *([name] if row["persona"] else [])]:
                difference = scenario.compare(row["player"], rival)
                label, verdict = "itself" if rival == name else rival, describe_difference(difference)
                values = {"scenario": scenario.link, "rival": label, "difference": difference, "verdict": verdict}
                rows += [{**row, **values}] if difference.value is not None else []
    words = [row["verdict"] for row in rows]
    untested = f", {n} not tested because the two share too few seeds" if (n := words.count("not tested")) else ""
    counts = f"better in {words.count('better')}, worse in {words.count('worse')}{untested}"
    answer = f"In {format_count(len(rows), 'comparison')} on the same games it is {counts}." if rows else ""
    table = Table("On the same games", _DIFFERENCE_COLUMNS, rows, first=_SHOWN_FIRST)
    guide = "Mean difference of rewards on the games that both played, with its 95% interval by seeds."
    return Section("baselines", "compared with baselines and itself", [table], answer, guide)


def _build_worst_section(scenarios: Sequence[ScenarioResults], name: str) -> Section:
    """Build the list of episodes in which the model fell furthest behind others on the same game."""
    rows = []
    for scenario in scenarios:
        frame = scenario.episodes
        worst = frame[(frame["name"] == name) & frame["is_listed"] & (frame["gap"] < 0)].nsmallest(_WORST, "gap")
        rows += [{**row, "scenario": scenario.link.text} for row in build_episode_rows(scenario, worst)]
    rows.sort(key=lambda row: (row["gap"], row["scenario"], row["id"]))
    guide = "Episodes in which it was furthest behind the mean of all players of the same game, in standard deviations of the rewards."
    return Section("worst", "worst episodes", [Table("Furthest behind others", _WORST_COLUMNS, rows[:_WORST])], "", guide)

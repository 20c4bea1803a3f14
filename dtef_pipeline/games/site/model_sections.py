"""Sections on one model: its strengths and weaknesses, comparisons with baselines, and its worst episodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from dtef_pipeline.games.game_pairs import FORM_FAMILY, rank_places
from dtef_pipeline.games.metrics import FORFEIT_RATE, ILLEGAL_RATE, VOLATILITY
from dtef_pipeline.games.site.episode_list import build_episode_link, describe_game
from dtef_pipeline.games.site.game_labels import SIDE_WORDS, format_metric_title, format_outcome_words
from dtef_pipeline.games.site.league_rows import ScenarioResults, compare_on_seeds, describe_difference
from dtef_pipeline.games.site.metric_tables import build_mean_estimate
from dtef_pipeline.site.content import Column, Section, Table, convert_to_rows
from dtef_pipeline.text.number_words import format_count

_WORST = 10
_COUNTED_FORMS = (ILLEGAL_RATE, FORFEIT_RATE)
"""Metrics of the form of play that are good or bad for a model."""
_STANDING_COLUMNS = (
    Column("scenario", "Scenario"),
    Column("metric", "Metric", always=True),
    Column("persona", "As"),
    Column("value", "Value", "number"),
    Column("rank", "Rank", "count", "Among all players of the scenario, baselines too", always=True),
    Column("of", "Of", "count", always=True),
    Column("side", "Better", more=True),
    Column("unit", "Unit", more=True),
)
_BASELINE_COLUMNS = (
    Column("scenario", "Scenario"),
    Column("baseline", "Baseline", always=True),
    Column("persona", "As"),
    Column("difference", "Difference", "signed", "Mean reward of the model minus that of the baseline, on the same games"),
    Column("verdict", "The model is", always=True),
    Column("unit", "Unit"),
)
_WORST_COLUMNS = (
    Column("episode", "Episode"),
    Column("scenario", "Scenario"),
    Column("persona", "As"),
    Column("outcome", "Outcome", always=True),
    Column("reward", "Reward", "number"),
    Column("above", "Above the mean", "signed", "Reward minus the mean of all players on the same game"),
    Column("illegal", "Illegal texts", "count", more=True),
)


class GameModelSections:
    """The sections on a model, by its name. `listed`: episodes on the scenarios' pages, by scenario."""

    def __init__(self, scenarios: Sequence[ScenarioResults], episodes: Mapping[str, pd.DataFrame]) -> None:
        self._scenarios, self._listed = scenarios, episodes

    def __call__(self, name: str) -> list[Section]:
        return [
            _build_standing_section(self._ranks, name),
            _build_baselines_section(self._scenarios, name),
            _build_worst_section(self._scenarios, self._listed, name),
        ]

    @cached_property
    def _ranks(self) -> list[dict[str, Any]]:
        return [row for scenario in self._scenarios for row in _ranks(scenario)]


def _build_standing_section(ranks: Sequence[dict[str, Any]], name: str) -> Section:
    rows = [row for row in ranks if row["name"] == name]
    rows.sort(key=lambda row: (row["share"], row["scenario"].text, row["metric"]))
    answer = ""
    if len(rows) > 1:
        answer = f"Strongest: {_rank_words(rows[0])}; weakest: {_rank_words(rows[-1])}."
    note = "Rows are ordered by the rank among all players of the scenario, baselines too: strengths first. Ranks of equal means are shared."
    return Section(
        "standing",
        "strengths and weaknesses",
        [Table("By scenario and metric", _STANDING_COLUMNS, rows, first=12)],
        answer,
        note,
    )


def _rank_words(row: dict[str, Any]) -> str:
    return f"{row['metric'].lower()} in {row['scenario'].text}, rank {row['rank']} of {row['of']}"


def _ranks(scenario: ScenarioResults) -> Iterator[dict[str, Any]]:
    """Rank each model by each metric of strength on which players differ."""
    for metric in scenario.metrics:
        rows = scenario.filter_by_metric(metric)
        if not _is_strength_metric(metric, rows):
            continue
        place = rank_places(rows, pd.Series(True, index=rows.index))
        for row in convert_to_rows(rows.assign(place=place)[place.notna() & ~rows["is_baseline"]]):
            yield {
                "name": row["name"],
                "scenario": scenario.link,
                "metric": format_metric_title(metric),
                "persona": row["as_persona"],
                "value": build_mean_estimate(row),
                "rank": int(row["place"]),
                "of": int(place.notna().sum()),
                "side": SIDE_WORDS[row["direction"]],
                "unit": row["unit"],
                "share": float(((place < row["place"]).sum() + (place == row["place"]).sum() / 2) / place.notna().sum()),
            }


def _is_strength_metric(metric: str, rows: pd.DataFrame) -> bool:
    """Whether the metric has a better direction and measures ability, unlike the spread of rewards and most of the form of play."""
    is_form = rows["metric_family"].iloc[0] == FORM_FAMILY and metric not in _COUNTED_FORMS
    return (
        rows["direction"].iloc[0] in SIDE_WORDS
        and metric != VOLATILITY
        and not is_form
        and rows["mean"].max() > rows["mean"].min()
    )


def _build_baselines_section(scenarios: Sequence[ScenarioResults], name: str) -> Section:
    rows = [row for scenario in scenarios for row in _iterate_differences(scenario, name)]
    words = [row["verdict"] for row in rows]
    wins, losses, n_untested = (words.count(verdict) for verdict in ("better", "worse", "not tested"))
    answer = f"Tests against {format_count(len(rows), 'baseline')}: better than {wins}, worse than {losses}"
    answer += f"; {n_untested} could not be tested because the two share too few seeds." if n_untested else "."
    note = "Mean difference of rewards on the games that both played, with its 95% interval. Both had the same deals, so luck does not widen it."
    return Section(
        "baselines",
        "compared with baselines",
        [Table("On the same games", _BASELINE_COLUMNS, rows, first=12)],
        answer if rows else "",
        note,
    )


def _iterate_differences(scenario: ScenarioResults, name: str) -> Iterator[dict[str, Any]]:
    players = scenario.filter_by_metric()
    model_rows, baselines = players[players["name"] == name], players[players["is_baseline"]]
    for row, baseline in product(convert_to_rows(model_rows), baselines["player"]):
        difference = compare_on_seeds(scenario.rewards, row["player"], baseline)
        if difference.value is not None:
            yield {
                "scenario": scenario.link,
                "baseline": baseline.removesuffix(" (baseline)"),
                "persona": row["as_persona"],
                "difference": difference,
                "verdict": describe_difference(difference),
                "unit": scenario.unit,
            }


def _build_worst_section(scenarios: Sequence[ScenarioResults], episodes: Mapping[str, pd.DataFrame], name: str) -> Section:
    """Build the list of episodes in which the model fell furthest behind others on the same game, in standard deviations of the scenario's
    rewards."""
    rows = []
    for scenario in scenarios:
        frame = episodes[scenario.name]
        spread = float(scenario.episodes["reward"].std(ddof=0)) if len(scenario.episodes) else np.nan
        for row in convert_to_rows(frame[frame["name"] == name]):
            if spread > 0 and row["above"] < 0:
                rows.append(_build_episode_row(scenario, row, row["above"] / spread))
    rows.sort(key=lambda row: (row["by"], row["scenario"], row["episode"].href))
    note = "Episodes in which it was furthest behind the mean of all players of the same game (seed, seat and opponent)."
    return Section("worst", "worst episodes", [Table("Furthest behind others", _WORST_COLUMNS, rows[:_WORST])], "", note)


def _build_episode_row(scenario: ScenarioResults, row: dict[Any, Any], gap: float) -> dict[str, Any]:
    return {
        "episode": build_episode_link(scenario, row["episode_id"], describe_game(scenario, row)),
        "scenario": scenario.title,
        "persona": row["as_persona"],
        "outcome": format_outcome_words(str(row["outcome"])),
        **{name: row[name] for name in ("reward", "above", "illegal")},
        "by": gap,
    }

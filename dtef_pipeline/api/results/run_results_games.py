"""Results of a run of games: a persona in a scenario, and the baselines that the manifest names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.api.answer_schemas import convert_to_json
from dtef_pipeline.api.results.family_results import Counts, FamilyResults, Row, is_in, open_tables
from dtef_pipeline.api.results.run_context import Unit, format_percent
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import EXPECTED_RETURN, FORM_RATES, RED_FLAG_RATE, RED_FLAG_WEIGHTED, SUCCESS_RATE, VOLATILITY
from dtef_pipeline.games.entrants import ALL_BASELINES, AS_ITSELF, resolve_entrants
from dtef_pipeline.games.episode_items import NO_OPPONENT, build_game_items, parse_seeds
from dtef_pipeline.games.packs import pack
from dtef_pipeline.games.persona_results import ALL_OPPONENTS, compute_results_of
from dtef_pipeline.games.personas import BASELINE_PREFIX

_RESULTS_COLUMNS = (
    *("episode_id", "item_id", "league", "scenario", "model_variant", "snapshot", "metric", "metric_family", "unit"),
    *("direction", "weight", "numerator", "denominator", "status", "reason"),
)
_TURN_COLUMNS = ("league", "scenario", "version", "persona", "model", "model_variant", "snapshot", "cluster", "temperature")
_EPISODE_METRICS = (
    *(SUCCESS_RATE, EXPECTED_RETURN, VOLATILITY, *FORM_RATES),
    *(RED_FLAG_RATE, RED_FLAG_WEIGHTED, "turns", "tokens", "dollars"),
)
_FORM_IN_WORDS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "default_rate": ("the game made a move for the player in {} of its turns, because it gave no legal move", format_percent),
    "forfeit_rate": ("the player forfeited {} of the episodes, because it gave no legal move", format_percent),
    # A turn that is tried again can be declined more than once.
    "refused_rate": ("the player declined to play {} times per turn", lambda rate: f"{rate:.2g}"),
}
"""Sentences for rates of FORM_RATES above 0, with the format of the rate."""


class GamesResults(FamilyResults):
    """A persona in a scenario: the version, seeds and opponents that were submitted."""

    unit = Unit("episode", "played")
    answers = "episodes"
    status = "status"
    answer_keys = trace_columns = ("episode_id",)
    choice_columns = ("version", "persona", "model", "draw", "opponent", "cluster")
    call_tables = ("episode_turns",)
    board = "persona_results"
    value, ends, known = "mean", ("low", "high"), "n_episodes"
    board_columns = ("persona", "n_clusters", "unit", "direction", "interval_kind", *FORM_RATES)

    @property
    def persona(self) -> str:
        """The persona with its version; empty: no persona."""
        return str(self.run.run.asks["persona"])

    @cached_property
    def models(self) -> set[str]:
        return self.run.names(self.config.get("players", ()))

    def select_rows(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Select the rows of the persona, or of a baseline of the manifest, including its opponents' turns."""
        if table == "episode_turns":
            turns = self.run.rows(table, None if columns is None else ["episode_id", *columns])
            return turns.filter(is_in(turns["episode_id"], set(self.traces())))
        return self._select_played(table, columns, and_all_baselines=False)

    def _select_played(self, table: str, columns: Sequence[str] | None, *, and_all_baselines: bool) -> pa.Table:
        """Select the played episodes. `and_all_baselines`: include all baselines, as others are measured against them."""
        asks, rows = self.run.run.asks, self.run.rows(table, self._add_choice_columns(table, columns))
        rows = rows.filter(pc.and_(pc.less(rows["draw"], self.draws), pc.equal(rows["version"], asks["scenario_version"])))
        rows = rows.filter(is_in(rows["cluster"], set(map(str, parse_seeds(asks["seeds"])))))
        rows = rows.filter(is_in(rows["opponent"], set(asks["opponents"] or [NO_OPPONENT])))
        baseline, named = pc.starts_with(rows["model"], BASELINE_PREFIX), is_in(rows["model"], self.models)
        plays = pc.and_(pc.and_(named, pc.equal(rows["persona"], self.persona)), pc.invert(baseline))
        every = and_all_baselines or self._has_all_baselines
        return rows.filter(pc.or_(plays, baseline if every else pc.and_(baseline, named)))

    @property
    def _has_all_baselines(self) -> bool:
        return not self.models.isdisjoint(ALL_BASELINES)

    def find_scored_names(self) -> set[tuple[Any, ...]]:
        scores = self.run.rows("episode_scores", ["episode_id", "status"])
        return {(episode_id,) for episode_id in scores.filter(pc.equal(scores["status"], "scored"))["episode_id"].to_pylist()}

    def count_planned(self) -> dict[Hashable, int] | None:
        """Count the planned episodes; None if a scenario, a persona or a model is no longer known."""
        from assets.games.game_catalog import find_scenario_version, load_known_personas

        asks, config, key = self.run.run.asks, self.config, self.run.run.key
        try:
            game = pack(key, {key: find_scenario_version(self.run.settings, key, asks["scenario_version"])})
            items = build_game_items(game.manifest, asks["seeds"], asks["opponents"])
            personas = load_known_personas(self.run.settings, config.get("persona_versions", {}))
            players = resolve_entrants(game, self.run.models, personas, config.get("players", ()), [self.persona or AS_ITSELF])
        except ConfigError:
            return None
        n_model_items = sum(item.opponent != NO_OPPONENT and not item.opponent.startswith(BASELINE_PREFIX) for item in items)
        episodes = Counter[Hashable]()
        for player in players:
            asks_all = player.model is not None
            if not asks_all or player.persona_name == self.persona:
                n_repeats = len(items) if asks_all else n_model_items
                episodes[(player.model_name,)] += len(items) + n_repeats * (self.draws - 1)
        return dict(episodes)

    def read_means(self, counts: Counts) -> Iterator[Mapping[Any, Any]]:
        """Read the means over all opponents, as in `dtef games board`."""
        scores = self._select_played("episode_scores", _RESULTS_COLUMNS, and_all_baselines=True)
        if not len(scores):
            return
        turns = self.run.rows("episode_turns", ["episode_id", "request_key", "under_test", "call_status", *_TURN_COLUMNS])
        turns = turns.filter(is_in(turns["episode_id"], set(scores["episode_id"].to_pylist())))
        with open_tables(episode_scores=scores, episode_turns=turns) as connection:
            results = compute_results_of(connection, "episode_scores")
        for row in results[results["opponent"] == ALL_OPPONENTS].to_dict("records"):
            if self._is_shown(row["model"]):
                yield row | {"n_requested": self._count_requested(row, counts), "remarks": list(_describe_form(row))}

    def _is_shown(self, model: str) -> bool:
        return model in self.models or (model.startswith(BASELINE_PREFIX) and self._has_all_baselines)

    def _count_requested(self, row: Mapping[Any, Any], counts: Counts) -> int | None:
        """Count the planned episodes; None for a metric that is not defined in every episode."""
        tally = counts.get(self.setting_of(row))
        return tally.n_planned if tally and row["metric"] in _EPISODE_METRICS and row["n_episodes"] == tally.answered else None

    def build_trace(self, answers: Sequence[Row]) -> Row:
        """Build the episode, the messages before its first text, and its turns in order."""
        (episode,) = answers
        turns = self.find_related_rows(answers, "episode_turns")
        opening = [
            row["messages"]
            for row in self.run.rows("episode_prompts").to_pylist()
            if all(row[name] == episode[name] for name in ("item_id", "version", "persona"))
        ]
        episode_parts = {
            "opening": opening[0] if opening else [],
            "turns": sorted(turns, key=itemgetter("turn", "seat", "attempt")),
        }
        trace: Row = convert_to_json(episode | episode_parts)
        return trace


def _describe_form(row: Mapping[Any, Any]) -> Iterator[str]:
    """Describe illegal, forfeited and refused moves of the player."""
    for name, (words, formatter) in _FORM_IN_WORDS.items():
        if convert_to_json(row[name]):
            yield words.format(formatter(row[name]))

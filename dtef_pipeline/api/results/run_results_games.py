"""Results of a run of games: a persona in a scenario, and beside it the baselines that the manifest names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.api.results.run_outcomes import OUTCOME_UNITS, OutcomeCounts, counts_by, in_words, percent
from dtef_pipeline.api.results.run_results import RunAsked, Spent, in_json, measured, spent_on
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.entrants import ALL_BASELINES, AS_ITSELF, entrants, opponent_item_name
from dtef_pipeline.games.episode_items import NO_OPPONENT, items_given, seeds_named
from dtef_pipeline.games.metrics import (
    BESIDE_METRICS,
    EXPECTED_RETURN,
    RED_FLAG_RATE,
    RED_FLAG_WEIGHTED,
    SUCCESS_RATE,
    VOLATILITY,
)
from dtef_pipeline.games.packs import pack
from dtef_pipeline.games.persona_results import ALL_OPPONENTS, results_of
from dtef_pipeline.games.players import BASELINE_PREFIX
from dtef_pipeline.games.stored_tables import GAMES_CALL_TABLES

_EPISODE_NAMED_BY = ("episode_id", "item_id", "version", "persona", "model", "draw", "opponent", "cluster")
_COLUMNS_OF_RESULTS = (
    *("league", "scenario", "model_variant", "snapshot", "metric", "family", "unit", "direction"),
    *("weight", "total", "of", "status", "reason"),
)
_PLAYED_BY = ("league", "scenario", "version", "persona", "model", "model_variant", "snapshot", "cluster", "temperature")
_COLUMNS_OF_CALLS = (
    *("league", "scenario", "snapshot", "persona", "model", "model_variant", "request_key", "call_status", "error"),
    *("prompt_tokens", "completion_tokens", "cost_usd", "unknown_cost_attempts", "unknown_cost_usd_most"),
)
_OF_EVERY_EPISODE = (
    *(SUCCESS_RATE, EXPECTED_RETURN, VOLATILITY, *BESIDE_METRICS),
    *(RED_FLAG_RATE, RED_FLAG_WEIGHTED, "turns", "tokens", "dollars"),
)
_FORM_IN_WORDS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "default_rate": ("a move was made for the player in {} of its turns, for want of a legal one", percent),
    "forfeit_rate": ("the player forfeited {} of the episodes for want of a legal move", percent),
    # A turn that is tried again can be declined more than once.
    "refused_rate": ("the player declined to play {} times per turn", lambda rate: f"{rate:.2g}"),
}
"""By a rate of BESIDE_METRICS, what is said where it is above 0, and how the rate is spelled in it."""


def counts_of(asked: RunAsked) -> dict[Hashable, OutcomeCounts]:
    """Of the episodes, by player: those of the plan, and what became of them."""
    rows = _on_the_games(asked, asked.rows("episodes", [*_EPISODE_NAMED_BY, "status"]))
    own = rows.filter(_is_own(asked, rows)).select(["model", "status", "episode_id"])
    scores = asked.rows("episode_scores", ["episode_id", "status"])
    scored = set(scores.filter(pc.equal(scores["status"], "scored"))["episode_id"].to_pylist())
    told = ((row["model"], row["status"], row["episode_id"] in scored) for row in own.to_pylist())
    return counts_by(told, _planned(asked))


def metrics_of(asked: RunAsked, counts: Mapping[Hashable, OutcomeCounts]) -> list[dict[str, Any]]:
    """Of each player and metric the mean over all opponents, as `dtef games board` has it."""
    rows = _on_the_games(asked, asked.rows("episode_scores", [*_EPISODE_NAMED_BY, *_COLUMNS_OF_RESULTS]))
    own = rows.filter(_is_own(asked, rows, and_all_baselines=True))
    if not len(own):
        return []
    turns = asked.rows("episode_turns", ["episode_id", "request_key", "under_test", "call_status", *_PLAYED_BY])
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("episode_scores", own)
        connection.register("episode_turns", turns.filter(pc.is_in(turns["episode_id"], own["episode_id"].combine_chunks())))
        found = results_of(connection, "episode_scores")
    found = found[found["opponent"] == ALL_OPPONENTS]
    wanted = _players(asked)
    return [
        measured(
            row["model"],
            row["metric"],
            row["mean"],
            (row["n_episodes"], _n_asked(row, counts)),
            (row["low"], row["high"]),
            row["reason"],
            remark=_remark(row, counts),
            persona=row["persona"],
            n_clusters=int(row["n_clusters"]),
            unit=row["unit"],
            direction=row["direction"],
            interval_kind=in_json(row["interval_kind"]),
            **in_json({name: row[name] for name in BESIDE_METRICS}),
        )
        for row in found.to_dict("records")
        if row["model"] in wanted or (row["model"].startswith(BASELINE_PREFIX) and not wanted.isdisjoint(ALL_BASELINES))
    ]


def _n_asked(row: dict[Any, Any], counts: Mapping[Hashable, OutcomeCounts]) -> int | None:
    """Episodes of the plan; None of a metric that an episode may say nothing of."""
    own = counts.get(row["model"])
    return own.asked if own and row["metric"] in _OF_EVERY_EPISODE and row["n_episodes"] == own.answered else None


def _remark(row: dict[Any, Any], counts: Mapping[Hashable, OutcomeCounts]) -> str | None:
    """What is missing, and what the player did not do itself."""
    own = counts.get(row["model"])
    formed = [words.format(spelled(row[name])) for name, (words, spelled) in _FORM_IN_WORDS.items() if in_json(row[name])]
    return in_words(own.told(OUTCOME_UNITS["games"]) if own else None, *formed)


def cost_of(asked: RunAsked) -> Spent:
    """Of the player's turns and of its opponents'. What a request used stands at its first turn, be it of another episode."""
    keys = request_keys_of(asked)
    turns = asked.rows("episode_turns", _COLUMNS_OF_CALLS)
    own = turns.filter(pc.is_in(turns["request_key"], pa.array(sorted(keys), pa.string())))
    return spent_on(asked, GAMES_CALL_TABLES, {"episode_turns": own}, keys)


def request_keys_of(asked: RunAsked) -> set[str]:
    """Of the turns of the run's episodes."""
    turns = asked.rows("episode_turns", ["episode_id", "request_key"])
    own = turns.filter(pc.is_in(turns["episode_id"], pa.array(traces_of(asked), pa.string())))
    return set(own["request_key"].drop_null().to_pylist())


def traces_of(asked: RunAsked) -> list[str]:
    """The ids of the episodes."""
    rows = _on_the_games(asked, asked.rows("episodes", _EPISODE_NAMED_BY))
    return sorted(rows.filter(_is_own(asked, rows))["episode_id"].to_pylist())


def trace_of(asked: RunAsked, trace_id: str) -> dict[str, Any] | None:
    """The episode, the messages before its first text, and its turns in their order."""
    if trace_id not in traces_of(asked):
        return None
    (episode,) = _of_episode(asked.rows("episodes"), trace_id)
    turns = _of_episode(asked.rows("episode_turns"), trace_id)
    prompts = asked.rows("episode_prompts")
    opening = [
        row["messages"]
        for row in prompts.filter(pc.equal(prompts["item_id"], episode["item_id"])).to_pylist()
        if (row["version"], row["persona"]) == (episode["version"], episode["persona"])
    ]
    found = {**episode, "opening": opening[0] if opening else [], "turns": sorted(turns, key=_in_play)}
    told: dict[str, Any] = in_json(found)
    return told


def _in_play(turn: dict[str, Any]) -> tuple[int, int, int]:
    return turn["turn"], turn["seat"], turn["attempt"]


def _of_episode(rows: pa.Table, episode_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.filter(pc.equal(rows["episode_id"], episode_id)).to_pylist()
    return found


def _on_the_games(asked: RunAsked, rows: pa.Table) -> pa.Table:
    """The rows of the version, seeds and opponents that were submitted, of as many draws."""
    if not len(rows):
        return rows
    rows = rows.filter(pc.less(rows["draw"], int(asked.told("episodes").get("draws", 1))))
    asks = asked.run.asks
    if "scenario_version" not in asks:
        return _on_the_latest_games(asked, rows)
    rows = rows.filter(pc.equal(rows["version"], asks["scenario_version"]))
    seeds, opponents = map(str, seeds_named(asks["seeds"])), asks["opponents"] or [NO_OPPONENT]
    rows = rows.filter(pc.is_in(rows["cluster"].cast(pa.string()), pa.array(seeds, pa.string())))
    return rows.filter(pc.is_in(rows["opponent"].cast(pa.string()), pa.array(opponents, pa.string())))


def _on_the_latest_games(asked: RunAsked, rows: pa.Table) -> pa.Table:
    """Of an evaluation that an earlier dtef-pipeline took, which did not note versions: the rows of the newest one, on the seeds, seats and
    opponents that it has now. A scenario that is gone has all items.
    """
    from assets.games.known_games import known_scenarios

    rows = rows.filter(pc.equal(rows["version"], pc.max(rows["version"])))
    manifests = known_scenarios(asked.settings)
    if asked.run.key not in manifests:
        return rows
    found, told = pack(asked.run.key, manifests), asked.told("scenario_items")
    opponents = [opponent_item_name(found, name) for name in told.get("opponents", ())]
    items = [one.item_id for one in items_given(found.manifest, told.get("seeds"), opponents)]
    return rows.filter(pc.is_in(rows["item_id"], pa.array(items, pa.string())))


def _planned(asked: RunAsked) -> dict[Hashable, int] | None:
    """Episodes of each player; None where a scenario, a persona or a model is not known any more."""
    from assets.games.known_games import known_personas, known_scenario_version, known_scenarios

    asks, told, key = asked.run.asks, asked.told("episodes"), asked.run.key
    persona = str(asks.get("persona", ""))
    try:
        if "scenario_version" in asks:
            found = pack(key, {key: known_scenario_version(asked.settings, key, asks["scenario_version"])})
            items = items_given(found.manifest, asks["seeds"], asks["opponents"])
        else:
            found = pack(key, known_scenarios(asked.settings))
            opponents = [opponent_item_name(found, name) for name in told.get("opponents", ())]
            items = items_given(found.manifest, told.get("seeds"), opponents)
        personas = known_personas(asked.settings, told.get("persona_versions", {}))
        players = entrants(found, asked.models, personas, told.get("players", ()), [persona or AS_ITSELF])
    except ConfigError:
        return None
    draws = int(told.get("draws", 1))
    of_models = sum(one.opponent != NO_OPPONENT and not one.opponent.startswith(BASELINE_PREFIX) for one in items)
    episodes = Counter[Hashable]()
    for player in players:
        asks_all = player.model is not None
        if not asks_all or player.persona_name == persona:
            episodes[player.model_name] += len(items) * draws if asks_all else len(items) + of_models * (draws - 1)
    return dict(episodes)


def _players(asked: RunAsked) -> set[str]:
    return asked.names(asked.told("episodes").get("players", ()))


def _is_own(asked: RunAsked, rows: pa.Table, *, and_all_baselines: bool = False) -> pa.ChunkedArray:
    """Which rows are of the persona's play, or of a baseline of the manifest. Of all baselines: others are measured against them."""
    names = _players(asked)
    baseline = pc.starts_with(rows["model"], BASELINE_PREFIX)
    named = pc.is_in(rows["model"], pa.array(sorted(names), pa.string()))
    plays = pc.and_(pc.and_(named, pc.equal(rows["persona"], str(asked.run.asks.get("persona", "")))), pc.invert(baseline))
    every = and_all_baselines or not names.isdisjoint(ALL_BASELINES)
    return pc.or_(plays, baseline if every else pc.and_(baseline, named))

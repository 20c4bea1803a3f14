"""The tables between the stages of the games family: names, types and descriptions of their columns.

Every table has the columns league and scenario. An item is a game to play, independent of the player; an episode is one player's run of an
item. Missing values are null, and `status` and `reason` say why.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dtef_pipeline.boards.family_calls import FamilyCalls, calls_by_key
from dtef_pipeline.keys import Space
from dtef_pipeline.tables import (
    ANSWERED_AT_FIELD,
    CALL,
    METRIC_FIELD,
    MODEL_FIELDS,
    SAMPLE_FIELDS,
    SNAPSHOT_FIELD,
    TableSpec,
    field,
)

_GAME_WORDS = pa.list_(pa.string())
_GAME_NUMBERS = pa.list_(pa.float64())
_GAME_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("text", pa.string())]))
_METRIC_COUNTS = pa.list_(pa.struct([("metric", pa.string()), ("numerator", pa.float64()), ("denominator", pa.float64())]))

OF_ONE_SCENARIO = (
    field("league", pa.string(), "League of scenarios: solitaire, poker, negotiation, or your own league"),
    field("scenario", pa.string(), "Scenario: thirteen, kuhn, limit-holdem, allocation, ..."),
    field("version", pa.int32(), "Version of the scenario; results of two versions are never averaged"),
)
GAME_ITEM_ID = field(
    "item_id", pa.string(), "Id of the item, unique in a version: seed, seat, opponent, as in 17/0/baseline/random"
)
GAME_PERSONA = field("persona", pa.string(), "Persona of the model, with its version: cautious:v2; empty: none")
GAME_OPPONENT = field(
    "opponent", pa.string(), "Player at all other seats: baseline/random, a model, or persona@model; empty: no other seat"
)
GAME_CLUSTER = field("cluster", pa.string(), "Seed as text: all seats and draws of a seed are one cluster")
EPISODE_ID = field("episode_id", pa.string(), "Hash of scenario, version, item, persona, model variant, draw and snapshot")
GAME_TRUTH = field("truth_id", pa.string(), "Hash of scenario, version, settings and limits: equal if the rules are equal")
OF_ONE_EPISODE = (
    *OF_ONE_SCENARIO,
    EPISODE_ID,
    GAME_ITEM_ID,
    GAME_PERSONA,
    *MODEL_FIELDS,
    *SAMPLE_FIELDS,
    SNAPSHOT_FIELD,
    GAME_OPPONENT,
    GAME_CLUSTER,
)
"""The key columns of an episode."""

SCENARIO_ITEMS = pa.schema(
    [
        *OF_ONE_SCENARIO,
        GAME_ITEM_ID,
        field("seed", pa.int64(), "Seed of the deal"),
        field("seat", pa.int32(), "Seat of the player under test, from 0"),
        GAME_OPPONENT,
        GAME_CLUSTER,
        GAME_TRUTH,
    ]
)  # fmt: skip
"""One row per episode to play."""

EPISODE_PROMPTS = pa.schema(
    [
        *OF_ONE_SCENARIO,
        GAME_ITEM_ID,
        GAME_PERSONA,
        field("prompt_id", pa.string(), "Hash of the messages"),
        field("messages", _GAME_MESSAGES, "Messages before the first text of the player; empty: another seat moves first"),
        GAME_TRUTH,
    ]
)
"""One row per item and persona that a model plays."""

EPISODE_TURNS = pa.schema(
    [
        *OF_ONE_SCENARIO,
        EPISODE_ID,
        GAME_ITEM_ID,
        GAME_CLUSTER,
        GAME_PERSONA,
        field("seat", pa.int32(), "Seat of the text's player, from 0"),
        field("under_test", pa.bool_(), "Flag: true if the player under test wrote the text; false: its opponent"),
        field("turn", pa.int32(), "Number of the turn in the episode, from 0; repeated texts share their turn"),
        field("attempt", pa.int32(), "Number of the text within its turn, from 0"),
        *CALL,
        field("plan", pa.string(), "Text before the action"),
        field("action", pa.string(), "Command that was played; null: the text was not a move"),
        field("reaction", pa.string(), "Reply of the game; after the last text of a seat, how the game ended"),
        field("legal", pa.bool_(), "Flag: true if the text was a legal move; null: no text"),
    ]
)
"""One row per text of a model in an episode, the opponent's too."""

_EPISODE_COUNTS = (
    field("n_turns", pa.int32(), "Turns of the player under test"),
    field("illegal", pa.int32(), "Texts of the player that were not a legal move, without refusals"),
    field("unparsed", pa.int32(), "Illegal texts of the player without any command"),
    field("refused", pa.int32(), "Texts of the player that decline to play"),
    field("forfeits", pa.int32(), "1 if the player forfeited because it gave no legal move, else 0"),
    field("defaults", pa.int32(), "Moves that the game made for the player because it gave no legal move"),
    field("tokens", pa.int64(), "Tokens of the player's requests, of prompts and texts; null: no model plays"),
    field("cost_usd", pa.float64(), "Cost of the player's requests in US dollars; null: no model plays, or a price is unknown"),
)
EPISODES = pa.schema(
    [
        *OF_ONE_EPISODE,
        field("seat", pa.int32(), "Seat of the player under test, from 0"),
        field("status", pa.string(), "Status of the episode: played, skipped_budget (a rerun continues it) or error"),
        field("reason", pa.string(), "Why the episode was not finished; null: it was"),
        field("outcome", pa.string(), "Outcome for the player under test: win, loss, draw, unsolved, agreement or "
                                      "no_agreement; null: see status"),
        field("reward", pa.float64(), "Reward of the player under test in the unit of the scenario: higher is better; null: see status"),
        field("rewards", _GAME_NUMBERS, "Rewards of all seats, from seat 0; empty: see status"),
        field("flags", _GAME_WORDS, "Flags: turn_limit, forfeit, resigned, ..."),
        *_EPISODE_COUNTS,
        field("metric_counts", _METRIC_COUNTS, "Counts for the scenario's metrics, of the player under test"),
        field("trace", pa.string(), "Moves that led to the result, as JSON: [seat, command] of each"),
        field("trace_hash", pa.string(), "Hash of moves, rewards, outcomes and flags: equal in a replay"),
        GAME_TRUTH,
        ANSWERED_AT_FIELD,
    ]
)  # fmt: skip
"""One row per item, persona, model variant, draw and snapshot."""

EPISODE_SCORES = pa.schema(
    [
        *OF_ONE_EPISODE,
        METRIC_FIELD,
        field("metric_family", pa.string(), "Family of the metric: efficacy, efficiency, expected value, risk, social, safety or form"),
        field("unit", pa.string(), "Unit of the metric: share (0-1), chips, points, moves, per turn, ..."),
        field("direction", pa.string(), "Better direction of the metric: higher, lower, or none"),
        field("unit_scale", pa.bool_(), "Flag: true if the metric is on 0-1 and has a better direction, which drift and "
                                        "composites need"),
        field("weight", pa.float64(), "Weight of the metric in the scenario's composite score; null: not part of it"),
        field("numerator", pa.float64(), "Numerator of the metric in this episode; null: unscored"),
        field("denominator", pa.float64(), "Denominator of the metric in this episode; null: unscored"),
        field("status", pa.string(), "Status of the score: scored, or unscored"),
        field("reason", pa.string(), "Why there is no value; null: there is one"),
        field("value", pa.float64(), "Numerator over denominator, in the unit; null: see the reason"),
        GAME_TRUTH,
        ANSWERED_AT_FIELD,
    ]
)  # fmt: skip
"""One row per episode and metric, of the seat under test."""

_MEAN_ENDS = (
    field("low", pa.float64(), "Lower end of the 95 % interval; null: see reason"),
    field("high", pa.float64(), "Upper end of the 95 % interval; null: see reason"),
    field(
        "interval_kind",
        pa.string(),
        "Kind: wilson (one episode per seed), t (by seed), jackknifed (volatility); null: none",
    ),
    field("reason", pa.string(), "Why there is no mean or no interval; null: both exist"),
)
PERSONA_RESULTS = pa.schema(
    [
        *OF_ONE_SCENARIO,
        GAME_PERSONA,
        *MODEL_FIELDS,
        SNAPSHOT_FIELD,
        METRIC_FIELD,
        field("metric_family", pa.string(), "Family of the metric; composite: arithmetic mean of normalised metrics"),
        field("unit", pa.string(), "Unit of the mean"),
        field("direction", pa.string(), "Better direction of the metric: higher, lower, or none"),
        field("opponent", pa.string(), "Opponent of these episodes, or all"),
        field("n_episodes", pa.int64(), "Episodes in which the metric is defined"),
        field("n_total", pa.int64(), "Planned episodes"),
        field("n_clusters", pa.int64(), "Seeds of the episodes in which the metric is defined"),
        field("mean", pa.float64(), "Mean of the metric in its unit (volatility: standard deviation of rewards); null: see "
                                    "reason"),
        *_MEAN_ENDS,
        field("illegal_rate", pa.float64(), "Texts that were not a legal move, per turn of these episodes; null: no turns"),
        field("forfeit_rate", pa.float64(), "Share of episodes that the player forfeited because it gave no legal move, 0-1; null: no "
                                            "episodes were played"),
        field("unparsed_rate", pa.float64(), "Texts without any command, per turn of these episodes; null: no turns"),
        field("refused_rate", pa.float64(), "Texts that decline to play, per turn of these episodes; null: no turns"),
        field("default_rate", pa.float64(), "Moves that the game made for the player, per turn; null: no turns"),
    ]
)  # fmt: skip
"""One row per scenario, version, persona, model variant, metric and opponent of the latest snapshot, and one for all
opponents."""

LEAGUE_SPACE = Space("league_scenario", first="league", second="scenario", order=str.casefold)
"""One partition is one scenario: `solitaire/thirteen`, `poker/limit-holdem`, `negotiation/allocation`."""


_BY_GAMES_RUN = "dtef games run {options} {players} --max-calls 0"
_BY_GAMES_ROLL_UP = "dtef games board --refresh"
_OF_SCENARIO, _OF_SCENARIO_SNAPSHOT = ("league", "scenario"), ("league", "scenario", "snapshot")
GAMES_TABLES: Mapping[str, TableSpec] = {
    "scenario_items": TableSpec(SCENARIO_ITEMS, LEAGUE_SPACE, _OF_SCENARIO, _BY_GAMES_RUN),
    "episode_prompts": TableSpec(EPISODE_PROMPTS, LEAGUE_SPACE, _OF_SCENARIO, _BY_GAMES_RUN),
    "episode_turns": TableSpec(EPISODE_TURNS, LEAGUE_SPACE, _OF_SCENARIO_SNAPSHOT, _BY_GAMES_RUN),
    "episodes": TableSpec(EPISODES, LEAGUE_SPACE, _OF_SCENARIO_SNAPSHOT, _BY_GAMES_RUN),
    "episode_scores": TableSpec(EPISODE_SCORES, LEAGUE_SPACE, _OF_SCENARIO_SNAPSHOT, _BY_GAMES_RUN),
    "persona_results": TableSpec(PERSONA_RESULTS, remake=_BY_GAMES_ROLL_UP),
}
"""The family's tables by name. The first one with the space is written by ingest and defines the partitions."""
GAMES_CALL_TABLES = FamilyCalls(
    LEAGUE_SPACE,
    (calls_by_key("episode_turns", purpose="persona"),),
    "persona",
    summed_by=("role", "scenario", "persona", "model"),
)

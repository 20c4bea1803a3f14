"""Tables of how the play of models moves from snapshot to snapshot."""

from __future__ import annotations

import pyarrow as pa

from dtef_pipeline.games.tables import OF_ONE_SCENARIO
from dtef_pipeline.tables import (
    EVIDENCE,
    METRIC_FIELD,
    MODEL_FIELDS,
    NIGHT,
    RULE,
    RULE_OF_MODEL,
    SNAPSHOT_FIELD,
    TIMELINE,
    field,
)

_WATCHED_AS = (
    *MODEL_FIELDS,
    field("persona", pa.string(), "Persona that the model plays, with its version: cautious:v2; none: it plays as itself"),
    field("opponent", pa.string(), "Player at all other seats: baseline/random, a model, or persona@model; nobody: one seat"),
    METRIC_FIELD,
)
GAMES_DRIFT = pa.schema(
    [
        *OF_ONE_SCENARIO,
        *_WATCHED_AS,
        field("n_snapshots", pa.int64(), "Snapshots compared"),
        field("n_items", pa.int64(), "Items that are scored in every snapshot"),
        *RULE,
    ]
)
"""One row per scenario, version, model variant, persona, opponent and metric on 0-1, at temperature 0.

Of a metric whose lower side is the better one, the score is 1 less the value.
"""

_MOVED_DEALS_FIELD = pa.list_(pa.struct([("item", pa.string()), ("shift", pa.float64())]))
_CHANGED_PLAY = pa.struct([(name, pa.string()) for name in ("what", "snapshot", "before", "after")])
GAMES_MODEL_DRIFT = pa.schema(
    [
        *_WATCHED_AS,
        field("leagues", pa.list_(pa.string()), "Leagues whose items are compared"),
        field("n_scenarios", pa.int64(), "Scenarios whose items are compared"),
        field("n_items", pa.int64(), "Items of the baseline"),
        field("n_snapshots", pa.int64(), "Snapshots compared"),
        field("latest_snapshot", pa.string(), "Newest snapshot of the series, compared or not"),
        *RULE_OF_MODEL,
        *EVIDENCE,
        *NIGHT,
        field(
            "moved",
            _MOVED_DEALS_FIELD,
            "Items that moved most, largest shift first: league/scenario/seed/seat/opponent and shift of the score",
        ),
        field("changes", pa.list_(_CHANGED_PLAY), "Changes beside the scores: legal play, served model, prompts, rules, ..."),
        field("told", pa.string(), "Verdict last sent to the webhook; null: none was sent"),
        field("night_told", pa.string(), "Verdict on the night last sent to the webhook; null: none was sent"),
    ]
)
"""One row per model variant, persona, opponent and metric, over all scenarios. Not compared at another temperature than 0."""

GAMES_DRIFT_SERIES = pa.schema([*_WATCHED_AS, SNAPSHOT_FIELD, *TIMELINE])
"""One row per series of GAMES_MODEL_DRIFT and snapshot."""

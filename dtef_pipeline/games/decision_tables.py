"""The tables of decision points: what models said in each, and what the strategies are worth that follow.

A decision point is an information set of a small game: all states that look the same to the seat that is to move.
"""

from __future__ import annotations

import pyarrow as pa

from dtef_pipeline.games.tables import GAME_PERSONA, GAME_TRUTH, OF_ONE_SCENARIO
from dtef_pipeline.tables import CALL, MODEL_FIELDS, SNAPSHOT_FIELD, field

DECISION_ANSWERS = pa.schema(
    [
        *OF_ONE_SCENARIO,
        field("point", pa.string(), "Decision point: own card, public card and betting, as in K:check,bet"),
        field("seat", pa.int32(), "Seat that is to move there, from 0"),
        field("allowed", pa.list_(pa.string()), "Commands that are legal there, in the order of the scenario"),
        GAME_PERSONA,
        *CALL,
        field("command", pa.string(), "Legal command that was read from the response; null: none was, or there is no response"),
        field("illegal_kind", pa.string(), "Kind of what was wrong: illegal, unparsed or refused; null: nothing"),
        field("illegal_reason", pa.string(), "Reason why the response gives no legal command; null: it gives one"),
        GAME_TRUTH,
    ]
)
"""One row per decision point, persona, model variant, draw and snapshot."""

STRATEGY_VALUES = pa.schema(
    [
        *OF_ONE_SCENARIO,
        GAME_PERSONA,
        *MODEL_FIELDS,
        SNAPSHOT_FIELD,
        field("quantity", pa.string(), "Quantity: value, exploitability or exploitability_corrected"),
        field("opponent", pa.string(), "Baseline that a value is won from, as in baseline/nash; null: of other quantities"),
        field("value", pa.float64(), "Value of the quantity, in the unit, mean of both seats; exploitability: lower is better; null: see why"),
        field("low", pa.float64(), "Lower end of the 95 % interval over other draws of the same player; null: see the reason"),
        field("high", pa.float64(), "Upper end of the 95 % interval over other draws of the same player; null: see the reason"),
        field("unit", pa.string(), "Unit of the value: that of the scenario, per hand"),
        field(
            "scale",
            pa.float64(),
            "Exploitability of play at random in the points that were asked, for comparison; null: of other quantities",
        ),
        field("status", pa.string(), "State of the value: scored, partial (a baseline plays where nobody asked, see filled_by) or unscored"),
        field("reason", pa.string(), "Reason why there is no value or no interval; null: there are both"),
        field("n_points", pa.int32(), "Decision points that were asked; of a baseline: that its strategy has"),
        field("n_missing", pa.int32(), "Decision points without a strategy: nobody asked, or no response could be read"),
        field("n_filled", pa.int32(), "Decision points that nobody asked and where filled_by plays in place of the player"),
        field("filled_by", pa.string(), "Baseline that plays where nobody asked; null: none was told to"),
        field("n_draws", pa.int64(), "Responses that the quantity follows from; null: of a baseline"),
        field("n_readable", pa.int64(), "Responses, of n_draws, from which a legal command was read; null: of a baseline"),
        GAME_TRUTH,
    ]
)  # fmt: skip
"""One row per scenario, version, persona, model variant, snapshot, quantity and opponent. Baselines are players too."""

"""Tables that are made of whole blueprints of the rubric family: summaries, champions, agreement, validity, drift and costs.

As in `dtef_pipeline.rubric.tables`, what could not be made is null, and `reason` says why.
"""

from __future__ import annotations

import pyarrow as pa

from dtef_pipeline.rubric.summary import GRADES, SUMMARIES
from dtef_pipeline.rubric.tables import BLUEPRINT_FIELD, CALLS_USED
from dtef_pipeline.rubric.validity_tables import (
    RUBRIC_AGREEMENT,
    RUBRIC_DISAGREED,
    RUBRIC_JUDGES,
    RUBRIC_SELF_PREFERENCE,
    RUBRIC_VARIANCE_SHARES,
    SCALE_FIELD,
)
from dtef_pipeline.tables import (
    EVIDENCE,
    METRIC_FIELD,
    MODEL_FIELDS,
    NIGHT,
    RULE,
    RULE_OF_MODEL,
    SNAPSHOT_FIELD,
    TIMELINE,
    UNKNOWN_COST_FIELDS,
    field,
)

RUN_LABEL = field("run_label", pa.string(), "Hash of test, judges and policy: runs with another one are never compared")

RUBRIC_SUMMARIES = pa.schema(
    [
        *SUMMARIES,
        field("text", pa.string(), "Summary for people as markdown, with names in place of opaque ids; null: none was read"),
        *CALLS_USED,
    ]
)
"""One row per analyst of a blueprint in a snapshot; one without an analyst where nobody was asked."""

RUBRIC_GRADES = pa.schema(
    [MODEL_FIELDS[0] if column.name == "model" else column for column in GRADES],
)
"""One row per analyst, model and dimension of a blueprint in a snapshot."""

RUBRIC_CHAMPIONS = pa.schema(
    [
        field("dimension", pa.string(), "Dimension that analysts grade, such as clarity"),
        field("rank", pa.int64(), "Rank by mean grade, from 1; null: not eligible, for the reason in reason"),
        MODEL_FIELDS[0],
        field("mean", pa.float64(), "Mean grade over blueprints, 1-10: higher is better"),
        field("n_blueprints", pa.int64(), "Blueprints that the model is graded in"),
        field("n_steady", pa.int64(), "Latest blueprints with a grade of 5 or more"),
        field("n_latest", pa.int64(), "Latest blueprints that were looked at for it, at most 5"),
        field("champion", pa.bool_(), "Flag: true for the best eligible model of the dimension"),
        field("reason", pa.string(), "Reason why the model cannot be champion; empty: it can"),
    ]
)
"""One row per dimension and model that is graded in it."""

RUBRIC_VARIANCE = pa.schema(
    [
        field("cut", pa.string(), "Kind of the cut: overall, or blueprint"),
        field("value", pa.string(), "Value of the cut: all, or a blueprint's id"),
        SCALE_FIELD,
        *RUBRIC_VARIANCE_SHARES,
    ]
)
"""One row for all judgements together, then one per blueprint."""

RUBRIC_DRIFT = pa.schema(
    [
        BLUEPRINT_FIELD,
        RUN_LABEL,
        *MODEL_FIELDS,
        field("n_snapshots", pa.int64(), "Runs compared"),
        field("n_items", pa.int64(), "Prompts, each with each of its system prompts, that are scored in every run"),
        *RULE,
        field("investigate", pa.bool_(), "Flag: true for the flagged row with the largest gap of its blueprint and run label"),
    ]
)
"""One row per blueprint, run label and model variant at temperature 0."""

_JUDGES_FIELD = field("judges", pa.string(), "Judges that the scores rest on, joined by commas; functions alone: none")
_MOVED_PROMPTS_FIELD = pa.list_(pa.struct([("prompt", pa.string()), ("shift", pa.float64())]))
_CHANGED = pa.struct([(name, pa.string()) for name in ("what", "snapshot", "before", "after")])
RUBRIC_MODEL_DRIFT = pa.schema(
    [
        *MODEL_FIELDS,
        _JUDGES_FIELD,
        METRIC_FIELD,
        field("blueprints", pa.list_(pa.string()), "Blueprints whose prompts are compared"),
        field("n_prompts", pa.int64(), "Prompts of the baseline, each with each of its system prompts"),
        field("n_snapshots", pa.int64(), "Snapshots compared"),
        field("latest_snapshot", pa.string(), "Newest snapshot of the series, compared or not"),
        *RULE_OF_MODEL,
        *EVIDENCE,
        *NIGHT,
        field(
            "moved",
            _MOVED_PROMPTS_FIELD,
            "Prompts that moved most, largest shift first: blueprint/prompt and shift of the score",
        ),
        field("changes", pa.list_(_CHANGED), "Changes beside the scores: scored share, served model, prompts, rubric, ..."),
        field("cause", pa.string(), "Cause of the shift: model, judges, both, not told apart, or none; null: no anchors"),
        field(
            "judges_shift", pa.float64(), "Shift that the judges alone would have made, in units of the score; null: not known"
        ),
        field("net_shift", pa.float64(), "Shift of the model less that of its judges, in units of the score; null: not known"),
        field("told_of_judges", pa.string(), "Account of what the judges' drift has to do with it; null: no anchors"),
        field("told", pa.string(), "Verdict last sent to the webhook; null: none was sent"),
        field("night_told", pa.string(), "Verdict on the night last sent to the webhook; null: none was sent"),
    ]
)
"""One row per model variant and set of judges over all blueprints. Not compared (`verdict` null) at another temperature than 0."""

RUBRIC_DRIFT_SERIES = pa.schema([*MODEL_FIELDS, _JUDGES_FIELD, SNAPSHOT_FIELD, *TIMELINE])
"""One row per series of RUBRIC_MODEL_DRIFT and snapshot."""

RUBRIC_COSTS = pa.schema(
    [
        field("role", pa.string(), "Role in which the model was asked: candidate, judge, analyst or embedder"),
        *MODEL_FIELDS,
        field("answered", pa.int64(), "Conversations, judgements and summaries with a reply; each counts once"),
        field("calls", pa.int64(), "Calls in the response store; each counts once"),
        field("prompt_tokens", pa.int64(), "Tokens of prompts; each call counts once"),
        field("completion_tokens", pa.int64(), "Tokens of replies; each call counts once"),
        field("cost_usd", pa.float64(), "Sum of the known costs in US dollars; null: none is known"),
        field("unpriced", pa.int64(), "Replied ones with a call whose price is unknown"),
        *UNKNOWN_COST_FIELDS,
    ]
)
"""One row per role and model variant."""

RUBRIC_ROLLED_UP = {
    "rubric_champions": RUBRIC_CHAMPIONS,
    "rubric_agreement": RUBRIC_AGREEMENT,
    "rubric_disagreed": RUBRIC_DISAGREED,
    "rubric_self_preference": RUBRIC_SELF_PREFERENCE,
    "rubric_judges": RUBRIC_JUDGES,
    "rubric_variance_shares": RUBRIC_VARIANCE,
    "rubric_drift": RUBRIC_DRIFT,
    "rubric_model_drift": RUBRIC_MODEL_DRIFT,
    "rubric_drift_series": RUBRIC_DRIFT_SERIES,
    "rubric_costs": RUBRIC_COSTS,
}
"""The tables over all blueprints beside the boards, by name."""

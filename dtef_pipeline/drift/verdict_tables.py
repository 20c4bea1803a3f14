"""The tables of drift over all families: verdicts on models and judges, timelines, and the documented rule's results."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dtef_pipeline.tables import FAMILY_FIELD, MODEL_FIELDS, PARSE_RATE_FIELD, SNAPSHOT_FIELD, TableSpec, field

SETTING_FIELD = field(
    "setting",
    pa.string(),
    "Setting of the series, in which the model was asked and measured: `context 0`, `judged by standard(gpt-4.1)`",
)
_GAP_COLUMN = field("gap", pa.float64(), "Highest minus lowest mean score, 0-1; null: not compared")
_REASON_COLUMN = field("reason", pa.string(), "Result of the comparison in words, or why none was made")
_RULE = (
    field("lowest", pa.float64(), "Lowest mean score, 0-1"),
    field("lowest_snapshot", pa.string(), "Snapshot of the lowest mean"),
    field("highest", pa.float64(), "Highest mean score, 0-1"),
    field("highest_snapshot", pa.string(), "Snapshot of the highest mean"),
    _GAP_COLUMN,
    field("flagged", pa.bool_(), "Flag of the documented rule: true if the gap is at least 0.05 and 10 %"),
    _REASON_COLUMN,
)
"""The columns of the documented drift rule."""
_N_COMPARED = field("n_snapshots", pa.int64(), "Snapshots compared")
_ITEMS_COMPARED = field("n_items", pa.int64(), "Items with a score in every snapshot")
_LATEST = field("latest_snapshot", pa.string(), "Newest snapshot of the series, compared or not")
_OF_SHIFT = "95 % interval of shift, valid however often you look; null: too few snapshots"
EVIDENCE = (
    field(
        "verdict",
        pa.string(),
        "Verdict: none, watch (flagged by the rule; at most that without a control) or drift (confirmed by evidence); null: not compared",
    ),
    field(
        "log10_e",
        pa.float64(),
        "Highest e-value so far of the difference to control (none: of the series), as log10: 2 is 100 to 1; null: too few snapshots",
    ),
    field(
        "threshold",
        pa.float64(),
        "Value of log10_e needed for drift; grows with the number of series that share the error rate",
    ),
    field(
        "shift",
        pa.float64(),
        "Paired change of the mean score since first_snapshot, else since the reference snapshots; null: too few snapshots",
    ),
    field("shift_low", pa.float64(), f"Lower end of the {_OF_SHIFT}"),
    field("shift_high", pa.float64(), f"Upper end of the {_OF_SHIFT}"),
    field("first_snapshot", pa.string(), "Likeliest first snapshot of the shift; null: no strong evidence of drift"),
    field("control", pa.string(), "Other models in the same snapshots that this one is compared with, or none"),
    field(
        "shift_notes",
        pa.list_(pa.string()),
        "Notes on the shift: which scores changed, and by how much more than those of the other models; empty: none",
    ),
)
"""The evidence of drift."""
SHARED = (
    field(
        "shared_verdict", pa.string(), "Verdict on the shift that all models share: none or watch; null: fewer than two models"
    ),
    field(
        "shared_shift",
        pa.float64(),
        "Shift that all models share since shared_first_snapshot, else since the reference snapshots",
    ),
    field("shared_first_snapshot", pa.string(), "Likeliest first snapshot of the shared shift; null: no strong evidence"),
)
"""The verdict on the shift that all models of the same snapshots share."""
_TOP_CHANGES = field(
    "top_changes",
    pa.list_(pa.struct([("item", pa.string()), ("shift", pa.float64()), ("text", pa.string())])),
    "Items whose scores changed most, largest shift first: id, shift of the score, and text where there is one",
)
_CHANGES = field(
    "changes",
    pa.list_(pa.struct([(name, pa.string()) for name in ("kind", "snapshot", "before", "after")])),
    "Changes other than scores at the first snapshot of the shift, else since the reference snapshots: parse rate, served model, prompts, ...",
)
PARTITION_DRIFT = (
    *MODEL_FIELDS,
    SETTING_FIELD,
    _N_COMPARED,
    _ITEMS_COMPARED,
    *_RULE,
    *EVIDENCE,
    *SHARED,
    _TOP_CHANGES,
)
"""The columns of a verdict on a model in one partition, except the partition's keys."""

DRIFT = pa.schema(
    [
        FAMILY_FIELD,
        *MODEL_FIELDS,
        SETTING_FIELD,
        field("n_prompts", pa.int64(), "Prompts of the reference snapshots"),
        _N_COMPARED,
        _LATEST,
        _GAP_COLUMN,
        _REASON_COLUMN,
        *EVIDENCE,
        *SHARED,
        _TOP_CHANGES,
        _CHANGES,
        field("net_shift", pa.float64(), "Shift of the model minus that of its judges, in units of the score; null: not known"),
        field("judges_note", pa.string(), "Part of the shift that the judges' drift explains, in words; null: none"),
    ]
)
"""One row per model variant and setting, over all partitions of a family. Not compared (`verdict` null) at another temperature than 0
or with one snapshot."""

DRIFT_SERIES = pa.schema(
    [
        FAMILY_FIELD,
        *MODEL_FIELDS,
        SETTING_FIELD,
        SNAPSHOT_FIELD,
        field("compared", pa.bool_(), "Flag: true where it shares enough with the reference snapshots to be compared"),
        field(
            "in_baseline",
            pa.bool_(),
            "Flag: true for the reference snapshots: the first ones, with which later ones are compared",
        ),
        field(
            "score",
            pa.float64(),
            "Mean score over the prompts shared with the reference snapshots (not compared: over all), 0-1: higher is better",
        ),
        field("difference", pa.float64(), "Mean paired difference of the score to the reference snapshots: above 0 is better"),
        PARSE_RATE_FIELD,
        field("n_shared", pa.int64(), "Prompts shared with the reference snapshots"),
        field("n_prompts", pa.int64(), "Prompts of the snapshot"),
        field(
            "log10_e",
            pa.float64(),
            "E-value of the difference to the control (none: of the series) after this snapshot as log10: 2 is 100 to 1",
        ),
        field("served_models", pa.list_(pa.string()), "Models that served the responses, as the provider reports them"),
        field("fingerprints", pa.list_(pa.string()), "Provider's names for the configurations that answered"),
    ]
)
"""One row per series of `drift` and snapshot: the timeline."""

DRIFT_RULE = pa.schema(
    [
        FAMILY_FIELD,
        field(
            "partition",
            pa.string(),
            "Partition that is compared: GD4/country:kenya, a blueprint, suite/part or league/scenario",
        ),
        field(
            "test",
            pa.string(),
            "Version of the partition's items, such as a hash of its prompts; only snapshots of the same version are compared; empty: any",
        ),
        *MODEL_FIELDS,
        SETTING_FIELD,
        _N_COMPARED,
        _ITEMS_COMPARED,
        *_RULE,
        field("is_largest_gap", pa.bool_(), "Flag: true for the flagged row with the largest gap of its partition and test"),
    ]
)
"""One row per partition, test, model variant and setting: the documented rule's result at temperature 0."""

JUDGE_DRIFT = pa.schema(
    [
        FAMILY_FIELD,
        field("judge", pa.string(), "Name of the judge, such as standard(gpt-4.1), or of the model that judges"),
        field("judge_variant", pa.string(), "Model string of the judge and its sampling parameters"),
        field("evaluator", pa.string(), "Aspect of an answer that the judge scores; empty: criteria"),
        field("latest_snapshot", pa.string(), "Latest snapshot"),
        _N_COMPARED,
        field("n_items", pa.int64(), "Anchors with a score in every snapshot"),
        *_RULE,
        *EVIDENCE,
    ]
)
"""One row per judge and evaluator: whether its scores of the same anchors changed. A shift below 0: it became stricter."""

DRIFT_SCHEMAS: Mapping[str, pa.Schema] = {
    "drift": DRIFT,
    "drift_series": DRIFT_SERIES,
    "drift_rule": DRIFT_RULE,
    "judge_drift": JUDGE_DRIFT,
}
"""By table name."""

ANCHOR_FIELDS = (
    FAMILY_FIELD,
    field("anchor", pa.string(), "Hash of everything that judges are shown of the answer"),
    field("partition", pa.string(), "Partition of the answer: a blueprint, or suite/part"),
    field("item", pa.string(), "Prompt or item that was answered; anchors of one item are related"),
)
ANCHOR_ITEMS = pa.schema(
    [
        *ANCHOR_FIELDS,
        field("score", pa.float64(), "Mean score by the judge when the anchor was chosen, 0-1: higher is better; null: unused"),
        field("shown", pa.string(), "Texts that judges are shown, as JSON"),
    ]
)
"""One row per anchor: a stored answer that never changes, even if its item does, and that judges score in every snapshot."""
ANCHORS = pa.schema(
    [
        *ANCHOR_FIELDS,
        field("snapshot", pa.string(), "Snapshot of the judgement"),
        field("judge", pa.string(), "Name of the judge, such as standard(gpt-4.1), or of the model that judges"),
        field("judge_model", pa.string(), "Name of the model that judges"),
        field("judge_variant", pa.string(), "Model string of the judge and its sampling parameters"),
        field("evaluator", pa.string(), "Aspect of an answer that the judge scores; empty: a criterion"),
        field("score", pa.float64(), "What the judgement adds to a score, 0-1: higher is better; null: see reason"),
        field("reason", pa.string(), "Why there is no score, such as unreadable, cut, error or budget; null: there is one"),
        field("raw", pa.list_(pa.string()), "Replies as served"),
        field("request_keys", pa.list_(pa.string()), "Keys of the calls in the store"),
        field("prompt_tokens", pa.int64(), "Tokens of the prompts"),
        field("completion_tokens", pa.int64(), "Tokens of the replies"),
        field("cost_usd", pa.float64(), "Cost of the calls in US dollars; null: unknown"),
    ]
)
"""One row per family, snapshot, anchor, judge and evaluator."""
_BY_ANCHORS = "dtef anchors {options}"
ANCHOR_TABLES: Mapping[str, TableSpec] = {
    "anchor_items": TableSpec(ANCHOR_ITEMS, levels=("family",), remake=_BY_ANCHORS),
    "anchors": TableSpec(ANCHORS, levels=("family", "snapshot"), remake=_BY_ANCHORS),
}

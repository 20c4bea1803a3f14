"""The tables of drift over all families: verdicts on models and judges, timelines, and the documented rule's results."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dtef_pipeline.tables import FAMILY_FIELD, MODEL_FIELDS, PARSE_RATE_FIELD, SNAPSHOT_FIELD, field

WAY_FIELD = field(
    "way",
    pa.string(),
    "How the model was asked and measured, in words that tell its series apart: `context 0`, `judged by standard(gpt-4.1)`",
)
_GAP_COLUMN = field("gap", pa.float64(), "Highest less lowest mean score, 0-1; null: not compared")
_REASON_COLUMN = field("reason", pa.string(), "Comparison in words, or the reason why none was made")
_RULE = (
    field("lowest", pa.float64(), "Lowest mean score, 0-1"),
    field("lowest_snapshot", pa.string(), "Snapshot of the lowest mean"),
    field("highest", pa.float64(), "Highest mean score, 0-1"),
    field("highest_snapshot", pa.string(), "Snapshot of the highest mean"),
    _GAP_COLUMN,
    field("flagged", pa.bool_(), "Flag of the documented rule: true from a gap of 0.05 and 10 % on"),
    _REASON_COLUMN,
)
"""The columns of the documented drift rule."""
_N_COMPARED = field("n_snapshots", pa.int64(), "Snapshots compared")
_ITEMS_COMPARED = field("n_items", pa.int64(), "Items that are scored in every snapshot, with each of their prompts")
_LATEST = field("latest_snapshot", pa.string(), "Newest snapshot of the series, compared or not")
_OF_SHIFT = "95 % interval of shift, valid however often one looks; null: too few snapshots"
EVIDENCE = (
    field(
        "verdict",
        pa.string(),
        "Verdict: none, watch (by the rule; the most without a control) or drift (by the evidence too); null: not compared",
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
        "Paired change of the mean score since first_snapshot, else since the baseline; null: too few snapshots",
    ),
    field("shift_low", pa.float64(), f"Lower end of the {_OF_SHIFT}"),
    field("shift_high", pa.float64(), f"Upper end of the {_OF_SHIFT}"),
    field(
        "first_snapshot",
        pa.string(),
        "Likeliest first snapshot of the shift; null: no strong evidence of drift",
    ),
    field("control", pa.string(), "Other models of the same nights that this one is compared with, or none"),
    field(
        "about", pa.list_(pa.string()), "What of the scores moved, and how far beyond the other models; empty: nothing to add"
    ),
)
"""The evidence of drift besides the rule."""
NIGHT = (
    field("night_verdict", pa.string(), "Verdict on what all models did together: none or watch; null: fewer than two models"),
    field("night_shift", pa.float64(), "Common shift of the models since night_first_snapshot, else since the baseline"),
    field("night_first_snapshot", pa.string(), "Likeliest first snapshot of a shift of all models; null: no strong evidence"),
)
"""The verdict on what all models of the same nights did together."""
_MOVED = field(
    "moved",
    pa.list_(pa.struct([("item", pa.string()), ("shift", pa.float64()), ("text", pa.string())])),
    "Items that moved most, largest shift first: id, shift of the score, and text where there is one",
)
_CHANGES = field(
    "changes",
    pa.list_(pa.struct([(name, pa.string()) for name in ("what", "snapshot", "before", "after")])),
    "Changes beside the scores, at the first snapshot of the shift, else since the baseline: parse rate, served model, prompts, ...",
)
PARTITION_DRIFT = (
    *MODEL_FIELDS,
    WAY_FIELD,
    _N_COMPARED,
    _ITEMS_COMPARED,
    *_RULE,
    *EVIDENCE,
    *NIGHT,
    _MOVED,
)
"""The columns of a verdict on a model in one partition, besides the partition's."""

DRIFT = pa.schema(
    [
        FAMILY_FIELD,
        *MODEL_FIELDS,
        WAY_FIELD,
        field("partitions", pa.list_(pa.string()), "Blueprints, suites, leagues, ... whose items are compared"),
        field("n_prompts", pa.int64(), "Prompts of the baseline"),
        _N_COMPARED,
        _LATEST,
        _GAP_COLUMN,
        _REASON_COLUMN,
        *EVIDENCE,
        *NIGHT,
        _MOVED,
        _CHANGES,
        field("net_shift", pa.float64(), "Shift of the model less that of its judges, in units of the score; null: not known"),
        field("judges_note", pa.string(), "Account of what the judges' drift has to do with the shift; null: nothing to say"),
    ]
)
"""One row per model variant and way of asking, over all partitions of a family. Not compared (`verdict` null) at another temperature than 0
or with one snapshot."""

DRIFT_SERIES = pa.schema(
    [
        FAMILY_FIELD,
        *MODEL_FIELDS,
        WAY_FIELD,
        SNAPSHOT_FIELD,
        field("compared", pa.bool_(), "Flag: true where the snapshot shares enough with the baseline to be compared with it"),
        field("in_baseline", pa.bool_(), "Flag: true where the snapshot is part of the baseline"),
        field(
            "score", pa.float64(), "Mean score over the prompts in the baseline too (not compared: all), 0-1: higher is better"
        ),
        field("difference", pa.float64(), "Mean paired difference of the score to the baseline: above 0 is better"),
        PARSE_RATE_FIELD,
        field("n_shared", pa.int64(), "Prompts shared with the baseline"),
        field("n_prompts", pa.int64(), "Prompts of the snapshot"),
        field(
            "log10_e",
            pa.float64(),
            "E-value of the difference to the control (none: of the series) after this snapshot as log10: 2 is 100 to 1",
        ),
        field("served_models", pa.list_(pa.string()), "Models the provider says it served"),
        field("fingerprints", pa.list_(pa.string()), "Configurations that answered"),
    ]
)
"""One row per series of `drift` and snapshot: the timeline."""

DRIFT_RULE = pa.schema(
    [
        FAMILY_FIELD,
        field(
            "partition",
            pa.string(),
            "Partition whose items are compared: GD4/country:kenya, a blueprint, suite/part or league/scenario",
        ),
        field(
            "test",
            pa.string(),
            "What makes snapshots of a partition one test: hash of its prompts, run label or version; empty: nothing else does",
        ),
        *MODEL_FIELDS,
        WAY_FIELD,
        _N_COMPARED,
        _ITEMS_COMPARED,
        *_RULE,
        field("investigate", pa.bool_(), "Flag: true for the flagged row with the largest gap of its partition and test"),
    ]
)
"""One row per partition, test, model variant and way of asking: the documented rule's result at temperature 0."""

JUDGE_DRIFT = pa.schema(
    [
        FAMILY_FIELD,
        field("judge", pa.string(), "Name of the judge, such as standard(gpt-4.1), or of the model that judges"),
        field("judge_variant", pa.string(), "Model string of the judge and its sampling parameters"),
        field("evaluator", pa.string(), "Side of an answer that the judge looks at; empty: it looks at criteria"),
        field("n_anchors", pa.int64(), "Stored answers that the judge was shown in any night"),
        field("latest_snapshot", pa.string(), "Latest night"),
        field("n_snapshots", pa.int64(), "Nights that are compared"),
        field("n_items", pa.int64(), "Stored answers with a score in every night"),
        *_RULE,
        *EVIDENCE,
    ]
)
"""One row per judge and evaluator: whether its verdicts on the same stored answers moved. A shift below 0: it became stricter."""

DRIFT_SCHEMAS: Mapping[str, pa.Schema] = {
    "drift": DRIFT,
    "drift_series": DRIFT_SERIES,
    "drift_rule": DRIFT_RULE,
    "judge_drift": JUDGE_DRIFT,
}
"""By table name."""

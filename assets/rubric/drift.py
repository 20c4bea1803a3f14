"""Drift of models between runs of the same test: `rubric_drift`."""

import pyarrow as pa

from assets.stage.family_drift import SHIFT_COLUMNS, FamilyDrift, Judged, define_drift
from assets.stage.resources import Store
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.rubric.anchor_rows import judge_drift_rows
from dtef_pipeline.rubric.watched_drift import DRIFT_READS, WATCHED, documented_drift_table, net_drift, watched_drift


def _judged(store: Store, checks: pa.Table, options: WatchOptions) -> Judged:
    anchored = store.warehouse.read_or_empty("rubric_anchors")
    return net_drift(checks, anchored.to_pandas(), options), judge_drift_rows(anchored, options)


rubric_drift, rubric_no_drift, rubric_verdicts_were_told = define_drift(
    FamilyDrift(
        family="rubric",
        code_version="4",
        rows="Whether hybrid scores moved between runs of the same test: one row per blueprint, run label and model variant.",
        besides="`investigate` marks the pair of runs to look at first. Where judges were shown stored answers again (`rubric_anchors`), "
        "a model's shift is told net of theirs, and `rubric_judge_drift` has one row per judge.",
        subject=WATCHED,
        scores=("rubric_scores", "blueprint", "dtef rubric run"),
        reads=DRIFT_READS,
        rule=documented_drift_table,
        watched=watched_drift,
        rule_columns=("blueprint", "model", "lowest_snapshot", "highest_snapshot", "lowest", "highest", "investigate"),
        verdict_columns=("verdict", "model", "judges", *SHIFT_COLUMNS, "cause"),
        judged=_judged,
        judge_columns=("verdict", "judge", *SHIFT_COLUMNS),
    )
)

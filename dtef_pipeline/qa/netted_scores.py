"""Drift of judged scores, net of the judge's: what the judge alone would have moved them by, where it was shown stored answers again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from dtef_pipeline.drift.anchored import JudgeDrift, drifts_of_judges, night_times
from dtef_pipeline.drift.netted import NOT_SETTLED, Shift, net_of, other_nights, own_move, shift_on_anchors
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.subject import Row
from dtef_pipeline.drift.verdict_text import NEWS
from dtef_pipeline.qa.arbiter_prompts import ARBITER_VERSION
from dtef_pipeline.qa.judged_rows import JUDGE_SCORER
from dtef_pipeline.qa.scoring import JUDGED_METRIC

_KEPT_JUDGEMENTS = "an answer that did not change keeps its judgement, so this is the most that the judge can account for"

_NOT_JUDGED_AGAIN = "not net of the judge: it was not shown stored answers again"


def net_of_judge(rows: Sequence[Row], anchored: pa.Table, options: WatchOptions) -> Iterator[Row]:
    """Of each series whose judged score moved the judge's part of it and what is left; `judges_note` says what was done.

    `rows`: of `ModelDrift`. `anchored`: the rows of `qa_anchors`. The judge is compared on the mean of those evaluators that the metric is of:
    its nights from the first snapshot of the model's shift on with those before it, without the model's outages. A shift without a first
    snapshot is not netted.
    """
    return (_netted(row, anchored, options) for row in rows)


def _netted(row: Row, anchored: pa.Table, options: WatchOptions) -> dict[str, Any]:
    if row["verdict"] not in NEWS or row["shift"] is None or not str(row["measured_by"]).startswith(f"{JUDGE_SCORER} "):
        return {}
    judge = _judge_of(row, anchored, options.beside(row["model"], row["model_variant"]))
    if judge is None or row["first_snapshot"] is None:
        return {"judges_note": _not_netted(judge)}
    part = shift_on_anchors(judge, row["first_snapshot"], row.get("outage") or ())
    if part is None:
        return {"judges_note": f"{_NOT_JUDGED_AGAIN} on both sides of the shift"}
    net = net_of(Shift(row["shift"], row["shift_low"], row["shift_high"]), part)
    nights = f"; judge shown answers {other}" if (other := other_nights(judge, row)) else ""
    moved = f"on the same stored answers the judge moved by {_shift_words(part)}{nights}"
    words = f"net of the judge: {_shift_words(net)}; {moved}; {_KEPT_JUDGEMENTS}"
    return {
        "net_shift": net.value,
        "net_low": net.low,
        "net_high": net.high,
        "judges_note": words,
    }


def _not_netted(judge: JudgeDrift | None) -> str:
    """Of a judge that was shown nothing again, and of a model that is not known to have moved since some night."""
    if judge is None:
        return _NOT_JUDGED_AGAIN
    moved = own_move(judge)
    return f"not net of the judge: {NOT_SETTLED}{f'; on stored answers the judge itself moved by {moved}' if moved else ''}"


def _shift_words(shift: Shift) -> str:
    interval = "" if shift.low is None or shift.high is None else f" (95 %: {shift.low:+.4f} to {shift.high:+.4f})"
    return f"{shift.value:+.4f}{interval}"


def _judge_of(row: Row, anchored: pa.Table, options: WatchOptions) -> JudgeDrift | None:
    """The drift of the judge behind a judged metric, on anchors with a score by each evaluator that the metric is of; None: there are none."""
    frame = anchored.to_pandas().astype({"snapshot": "str", "suite": "str", "judge_variant": "str", "evaluator": "str"})
    for variant in sorted(set(frame["judge_variant"])):
        before = f"{JUDGE_SCORER} {ARBITER_VERSION}, {variant}, "
        if not row["measured_by"].startswith(before):
            continue
        evaluators = row["measured_by"].removeprefix(before).split(", ")[0].split("+")
        meant = evaluators if row["metric"] == JUDGED_METRIC else [row["metric"]]
        own = frame[(frame["judge_variant"] == variant) & frame["evaluator"].isin(meant) & frame["score"].notna()]
        return _on(own, len(meant), options)
    return None


def _on(own: pd.DataFrame, evaluators: int, options: WatchOptions) -> JudgeDrift | None:
    by = ["judge_variant", "snapshot", "anchor", "suite", "item_id"]
    means = own.groupby(by, sort=True)["score"].agg(["mean", "count"]).reset_index()
    means = means[means["count"] == evaluators]
    named = means.assign(judge=means["judge_variant"], evaluator="")
    frame = named.assign(item=means["anchor"], point=means["mean"], cluster=means["suite"] + "/" + means["item_id"])
    found = drifts_of_judges(frame, night_times(frame["snapshot"].tolist()), options) if len(frame) else []
    return found[0] if found else None

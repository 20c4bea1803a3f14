"""Drift detection for the qa family: scores of items by snapshot, in addition to the documented rule.

A series is a model variant under one condition, metric and `measured_by`, over all parts. An edited item, a changed expected answer,
another version of a scorer or another judge counts as different items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.drift.judge_verdicts import JudgeDrift, compute_judge_drifts, sort_snapshot_times, subtract_judges_of_row
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.subject import AnchorSubject, Row, Subject, build_statements
from dtef_pipeline.drift.verdict_text import NEWS
from dtef_pipeline.identity import digest
from dtef_pipeline.keys import Keys
from dtef_pipeline.qa.judging.arbiter import ARBITER_VERSION, Arbiter, judge_snapshot
from dtef_pipeline.qa.judging.arbitration import iterate_arbitrations, make_verdict_row
from dtef_pipeline.qa.judging.judgement_rows import JUDGE_SCORER, JudgedItem, JudgementEpisode, select_judged_items
from dtef_pipeline.qa.scoring import JUDGED_METRIC
from dtef_pipeline.qa.tables import QA_ANCHOR_ITEMS, QA_ANCHORS
from dtef_pipeline.tables import convert_to_schema

ANCHORS_CHOSEN_FROM = ("qa_judgements", "qa_responses", "qa_items")
"""Tables from which anchors are chosen."""
_FIFTHS = 5
"""Number of equal intervals of the score over which anchors are spread."""
_JUDGED_ANSWERS = """
    WITH judged AS (
        SELECT suite::VARCHAR AS suite, part::VARCHAR AS part, item_id, condition, model, model_variant, temperature, draw,
            snapshot::VARCHAR AS snapshot, avg(score) AS score
        FROM qa_judgements WHERE score IS NOT NULL GROUP BY ALL
    )
    SELECT * FROM judged JOIN (
        SELECT suite::VARCHAR AS suite, part::VARCHAR AS part, item_id, condition, model_variant, draw, snapshot::VARCHAR AS snapshot, response
        FROM qa_responses
    ) USING (suite, part, item_id, condition, model_variant, draw, snapshot)
    ORDER BY suite, part, item_id, condition, model_variant, draw, snapshot
"""
_ANCHORED_ITEMS = """
    SELECT item_id, scorers, text, solution, reference, quotes FROM qa_items
    WHERE suite::VARCHAR = $suite AND item_id IN (SELECT item_id FROM qa_judgements WHERE suite::VARCHAR = $suite)
"""


def load_judged_answers(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Return every answer with a judge's score and the texts shown to the judge: the columns of QA_ANCHOR_ITEMS.

    `connection` has the tables of ANCHORS_CHOSEN_FROM. Identical answers count once.
    """
    frame = connection.execute(_JUDGED_ANSWERS).df()
    records: dict[tuple[str, str], JudgedItem] = {}
    for suite in frame["suite"].unique():
        items = select_judged_items(connection.sql(_ANCHORED_ITEMS, params={"suite": suite}).to_arrow_table())
        records |= {(suite, item): record for item, record in items.items()}
    places = list(zip(frame["suite"], frame["item_id"], strict=True))
    frame = frame.loc[[place in records for place in places]]
    row_items = [records[place] for place in places if place in records]
    frame = frame.assign(
        text=[item.question for item in row_items],
        reference=[item.reference for item in row_items],
        response=[
            item.extract_answer_for_judge(response or "") for item, response in zip(row_items, frame["response"], strict=True)
        ],
        evaluators=pd.Series([list(item.evaluators) for item in row_items], index=frame.index, dtype=object),
    )
    answer_texts = zip(frame["text"], frame["reference"], frame["response"], strict=True)
    return frame.assign(anchor=[digest("anchor", *texts) for texts in answer_texts]).drop_duplicates("anchor")


def add_answers(anchors: pa.Table, n: int, seed: int, pool: pd.DataFrame) -> pa.Table:
    """Return `qa_anchor_items` filled up to `n` from the `pool` of `load_judged_answers`, or fewer if the pool is smaller. Existing anchors
    stay unchanged.

    New anchors are spread over the scores: one of each fifth of 0-1 in turn, in the order of a hash of the seed and the anchor. So the
    choice does not depend on the order of rows, and any first few anchors are spread too.
    """
    lacking = max(0, n - len(anchors))
    new = pool[~pool["anchor"].isin(anchors["anchor"].to_pylist())]
    new = new.assign(place=[digest("anchor", seed, key) for key in new["anchor"]], fifth=_assign_fifth(new["score"]))
    new = new.sort_values("place", kind="stable")
    counts = _assign_fifth(anchors["score"].to_pandas()).value_counts()
    turn = new.groupby("fifth").cumcount() + new["fifth"].map(counts).fillna(0)
    additions = new.assign(turn=turn).sort_values(["turn", "place"], kind="stable").head(lacking)
    return pa.concat_tables([anchors, convert_to_schema(additions, QA_ANCHOR_ITEMS)]) if len(additions) else anchors


def _assign_fifth(scores: pd.Series) -> pd.Series:
    return (scores.astype("float64") * _FIFTHS).clip(0, _FIFTHS - 1).astype("int64")


def iterate_anchor_looks(anchors: pa.Table, arbiter: Arbiter, snapshot: str) -> Iterator[JudgementEpisode]:
    """Yield a judgement per evaluator and anchor, with a new request in the snapshot."""
    for row in anchors.to_pylist():
        arguments = (row["text"], row["reference"], row["response"], arbiter, judge_snapshot(snapshot), row["evaluators"])
        for task in iterate_arbitrations(*arguments):
            yield JudgementEpisode(row, task, "")


def build_qa_anchor_rows(snapshot: str, looks: Sequence[JudgementEpisode], outcomes: Sequence[EpisodeResult]) -> pa.Table:
    """Return the rows of `qa_anchors`, in the order of `looks`."""
    rows = [
        {**look.response, **make_verdict_row(look.arbitration, outcome, look.response["model_variant"]), "snapshot": snapshot}
        for look, outcome in zip(looks, outcomes, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=QA_ANCHORS)


def convert_anchor_points(anchors: pa.Table) -> pd.DataFrame:
    """Convert rows of `qa_anchors` for `compute_judge_drifts`: the point is the score."""
    frame: pd.DataFrame = anchors.to_pandas().astype({"snapshot": "str", "suite": "str"})
    return frame.assign(
        judge=frame["judge_model"], item=frame["anchor"], point=frame["score"], cluster=frame["suite"] + "/" + frame["item_id"]
    )


_UNCHANGED_JUDGEMENTS_NOTE = (
    "an answer that did not change keeps its judgement, so this is the most that the judge can account for"
)


def subtract_judge_drifts(rows: Sequence[Row], anchors: pa.Table, options: WatchOptions) -> Iterator[Row]:
    """Split the shift of each series with a judged score into the judge's shift and the rest; `judges_note` explains the result.

    `rows`: rows of `ModelDrift`. `anchors`: rows of `qa_anchors`. The judge is compared on the mean of the metric's evaluators, before the
    first snapshot of the model's shift and from it on, without the model's outages. A shift without a first snapshot stays unchanged.
    """
    return (_subtract_judge_drift(row, anchors, options) for row in rows)


def _subtract_judge_drift(row: Row, anchors: pa.Table, options: WatchOptions) -> dict[str, Any]:
    if row["verdict"] not in NEWS or row["shift"] is None or not str(row["measured_by"]).startswith(f"{JUDGE_SCORER} "):
        return {}
    judge = _judge_of(row, anchors, options.settings_for_judges(row["model"], row["model_variant"]))
    net = subtract_judges_of_row(row, [judge] if judge else [])
    note = net.judges_note if net.net_shift is None else f"{net.judges_note}; {_UNCHANGED_JUDGEMENTS_NOTE}"
    return {"net_shift": net.net_shift, "judges_note": note}


def _judge_of(row: Row, anchors: pa.Table, options: WatchOptions) -> JudgeDrift | None:
    """Measure the drift of the judge behind a judged metric, on anchors scored by all of the metric's evaluators, or return None without
    such anchors.
    """
    frame = anchors.to_pandas().astype({"snapshot": "str", "suite": "str", "judge_variant": "str", "evaluator": "str"})
    for variant in sorted(set(frame["judge_variant"])):
        before = f"{JUDGE_SCORER} {ARBITER_VERSION}, {variant}, "
        if not row["measured_by"].startswith(before):
            continue
        evaluators = row["measured_by"].removeprefix(before).split(", ")[0].split("+")
        wanted_evaluators = evaluators if row["metric"] == JUDGED_METRIC else [row["metric"]]
        rows = frame[(frame["judge_variant"] == variant) & frame["evaluator"].isin(wanted_evaluators) & frame["score"].notna()]
        return _measure_judge_drift(rows, len(wanted_evaluators), options)
    return None


def _measure_judge_drift(rows: pd.DataFrame, evaluators: int, options: WatchOptions) -> JudgeDrift | None:
    keys = ["judge_variant", "snapshot", "anchor", "suite", "item_id"]
    means = rows.groupby(keys, sort=True)["score"].agg(["mean", "count"]).reset_index()
    means = means[means["count"] == evaluators]
    named = means.assign(judge=means["judge_variant"], evaluator="")
    frame = named.assign(item=means["anchor"], point=means["mean"], cluster=means["suite"] + "/" + means["item_id"])
    drifts = compute_judge_drifts(frame, sort_snapshot_times(frame["snapshot"].tolist()), options) if len(frame) else []
    return drifts[0] if drifts else None


QA_WATCHED_KEYS = Keys(
    space=("suite", "part"),
    item="item_id",
    noun="item",
    asked=("condition", "metric", "measured_by"),
    cluster="cluster",
    score_again="score those parts again with `dtef qa run`",
)
_WATCHED_ITEM_SCORES = """
    SELECT suite::VARCHAR AS suite, part::VARCHAR AS part, item_id, condition, coalesce(metric, '') AS metric,
        coalesce(measured_by, '') AS measured_by, model, model_variant, snapshot::VARCHAR AS snapshot, temperature, draw, score, status,
        prompt_id, truth_id, answered_at
    FROM qa_scores
"""


def _describe_answer_condition(row: Mapping[str, Any]) -> str:
    return f"{row['condition']}, {row['metric']} by {row['measured_by']}"


QA_WATCHED = Subject(
    family="qa",
    keys=QA_WATCHED_KEYS,
    describe_setting=_describe_answer_condition,
    truth="expected answer",
    truths="expected answers",
    reads=("qa_scores", "qa_responses"),
    statements=build_statements(_WATCHED_ITEM_SCORES, "qa_responses", "suite", QA_WATCHED_KEYS.asked, ("condition",)),
    anchors=AnchorSubject("qa_anchors", convert_anchor_points, subtract_judge_drifts),
    reason_left_out="had too few comparable items",
)
"""Drift of item scores, over all parts of a suite, because a part may have too few items for a verdict."""

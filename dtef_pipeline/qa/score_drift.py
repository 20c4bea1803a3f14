"""Drift detection for the qa family: scores of items by snapshot, in addition to the documented rule.

A series is a model variant under one condition, metric and `measured_by`, over all parts. An edited item, a changed expected answer,
another version of a scorer or another judge counts as different items.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import duckdb
import pandas as pd

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.drift.judge_verdicts import AnchorJudging
from dtef_pipeline.drift.subject import AnchorSubject, Row, Subject, build_statements
from dtef_pipeline.identity import digest
from dtef_pipeline.keys import Keys
from dtef_pipeline.qa.judging.arbiter import (
    ARBITER_VERSION,
    Arbiter,
    Arbitration,
    iterate_arbitrations,
    judge_snapshot,
    make_verdict_row,
)
from dtef_pipeline.qa.judging.judgement_rows import JUDGE_SCORER, JudgedItem, select_judged_items
from dtef_pipeline.qa.scoring import JUDGED_METRIC

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


def _load_anchor_pool(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Return every answer with a judge's score, and the texts shown to the judge."""
    frame = connection.execute(_JUDGED_ANSWERS).df()
    records: dict[tuple[str, str], JudgedItem] = {}
    for suite in frame["suite"].unique():
        items = select_judged_items(connection.sql(_ANCHORED_ITEMS, params={"suite": suite}).to_arrow_table())
        records |= {(suite, item): record for item, record in items.items()}
    places = list(zip(frame["suite"], frame["item_id"], strict=True))
    frame = frame.loc[[place in records for place in places]]
    row_items = [records[place] for place in places if place in records]
    texts = [
        (item.question, item.reference, item.extract_answer_for_judge(response or ""))
        for item, response in zip(row_items, frame["response"], strict=True)
    ]
    return frame.assign(
        anchor=[digest("anchor", *answer_texts) for answer_texts in texts],
        partition=frame["suite"] + "/" + frame["part"],
        item=frame["item_id"],
        shown=[json.dumps([*answer_texts, item.evaluators]) for answer_texts, item in zip(texts, row_items, strict=True)],
    )


def iterate_anchor_judgings(anchors: Sequence[Row], arbiter: Arbiter, snapshot: str) -> Iterator[AnchorJudging]:
    """Yield a judgement per evaluator and anchor, with a new request in the snapshot."""
    for anchor in anchors:
        question, reference, response, evaluators = json.loads(anchor["shown"])
        for task in iterate_arbitrations(question, reference, response, arbiter, judge_snapshot(snapshot), evaluators):
            yield AnchorJudging(anchor, task.judge, task)


def _read_anchor_judgement(task: Arbitration, outcome: EpisodeResult) -> Row:
    return {**make_verdict_row(task, outcome, judged_model=""), "judge": task.judge.name}


def _select_judgements(row: Row, anchors: pd.DataFrame) -> pd.DataFrame | None:
    """Return the mean scores of the judge behind a judged metric, on anchors that all of the metric's evaluators scored."""
    measured_by = str(row["measured_by"])
    if not measured_by.startswith(f"{JUDGE_SCORER} "):
        return None
    beginnings = {
        variant: f"{JUDGE_SCORER} {ARBITER_VERSION}, {variant}, " for variant in sorted(set(anchors["judge_variant"]))
    }
    judge = next((variant for variant, beginning in beginnings.items() if measured_by.startswith(beginning)), None)
    if judge is None:
        return anchors.head(0)
    evaluators = [row["metric"]]
    if row["metric"] == JUDGED_METRIC:
        evaluators = measured_by.removeprefix(beginnings[judge]).split(", ")[0].split("+")
    rows = anchors[(anchors["judge_variant"] == judge) & anchors["evaluator"].isin(evaluators) & anchors["score"].notna()]
    keys = ["judge_variant", "snapshot", "anchor", "partition", "item"]
    means = rows.groupby(keys, sort=True)["score"].agg(["mean", "count"]).reset_index()
    means = means[means["count"] == len(evaluators)]
    result: pd.DataFrame = means.assign(judge=judge, evaluator="", score=means["mean"])
    return result


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


QA_WATCHED = Subject(
    family="qa",
    keys=QA_WATCHED_KEYS,
    describe_setting=lambda row: f"{row['condition']}, {row['metric']} by {row['measured_by']}",
    truth="expected answer",
    truths="expected answers",
    reads=("qa_scores", "qa_responses"),
    statements=build_statements(_WATCHED_ITEM_SCORES, "qa_responses", "suite", QA_WATCHED_KEYS.asked, ("condition",)),
    anchors=AnchorSubject(
        50,
        reads=("qa_judgements", "qa_responses", "qa_items"),
        pool=_load_anchor_pool,
        add_texts=lambda chosen, _: chosen,
        stratum=lambda pool: (pool["score"].astype("float64") * _FIFTHS).clip(0, _FIFTHS - 1).astype("int64"),
        read=_read_anchor_judgement,
        judgements=_select_judgements,
        note="; an answer that did not change keeps its judgement, so this is the most that the judge can account for",
    ),
    reason_left_out="had too few comparable items",
)
"""Drift of item scores, over all parts of a suite, because a part may have too few items for a verdict."""

"""What is watched for drift of the qa family: scores of items, night by night, beside the documented rule.

A series is a model variant in one condition under one metric and measure, over all parts. An edited item, another expected answer, another
version of a scorer or another judge makes other items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.episodes import Played
from dtef_pipeline.drift.anchored import JudgeDrift, drifts_of_judges, night_times
from dtef_pipeline.drift.item_statements import watched_statements
from dtef_pipeline.drift.netted import NOT_SETTLED, Shift, net_of, other_nights, own_move, shift_on_anchors
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.subject import JudgedAgain, Row, Subject
from dtef_pipeline.drift.verdict_text import NEWS
from dtef_pipeline.identity import digest
from dtef_pipeline.keys import Keys
from dtef_pipeline.qa.judging.arbiter import Arbiter, judge_snapshot
from dtef_pipeline.qa.judging.arbiter_prompts import ARBITER_VERSION
from dtef_pipeline.qa.judging.arbitration import arbitrations, verdict_row
from dtef_pipeline.qa.judging.judged_rows import JUDGE_SCORER, JudgedItem, ResponseJudged, judged_items
from dtef_pipeline.qa.scoring import JUDGED_METRIC
from dtef_pipeline.qa.tables import QA_ANCHOR_ITEMS, QA_ANCHORS
from dtef_pipeline.tables import in_schema

ANCHORS_CHOSEN_FROM = ("qa_judgements", "qa_responses", "qa_items")
"""The tables that anchors are chosen from."""
_FIFTHS = 5
"""Into so many parts is the range of scores cut that anchors are spread over."""
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
_THEIR_ITEMS = """
    SELECT item_id, scorers, text, solution, reference, quotes FROM qa_items
    WHERE suite::VARCHAR = $suite AND item_id IN (SELECT item_id FROM qa_judgements WHERE suite::VARCHAR = $suite)
"""


def judged_answers(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Every answer that a judge gave a score, with what the judge is shown: the columns of QA_ANCHOR_ITEMS but `seed`.

    `connection` has the tables of ANCHORS_CHOSEN_FROM. An answer that is given word for word several times is one.
    """
    frame = connection.execute(_JUDGED_ANSWERS).df()
    known: dict[tuple[str, str], JudgedItem] = {}
    for suite in frame["suite"].unique():
        items = judged_items(connection.sql(_THEIR_ITEMS, params={"suite": suite}).to_arrow_table())
        known |= {(suite, item): shown for item, shown in items.items()}
    places = list(zip(frame["suite"], frame["item_id"], strict=True))
    frame = frame.loc[[place in known for place in places]]
    items_of = [known[place] for place in places if place in known]
    frame = frame.assign(
        text=[item.question for item in items_of],
        reference=[item.reference for item in items_of],
        response=[item.answer_in(response or "") for item, response in zip(items_of, frame["response"], strict=True)],
        evaluators=pd.Series([list(item.evaluators) for item in items_of], index=frame.index, dtype=object),
    )
    told = zip(frame["text"], frame["reference"], frame["response"], strict=True)
    return frame.assign(anchor=[digest("anchor", *one) for one in told]).drop_duplicates("anchor")


def more_answers(kept: pa.Table, n: int, seed: int, pool: pd.DataFrame) -> pa.Table:
    """`qa_anchor_items` filled up to `n` from the `pool` of `judged_answers`; fewer where there are fewer. Those that are kept stay as they are.

    They are spread over the scores: one of each fifth of 0-1 in turn, in the order of a hash of the seed and the anchor, so that the choice
    does not depend on the order of rows, and the first so many are spread too.
    """
    lacking = max(0, n - len(kept))
    new = pool[~pool["anchor"].isin(kept["anchor"].to_pylist())]
    new = new.assign(place=[digest("anchor", seed, one) for one in new["anchor"]], fifth=_fifth(new["score"]), seed=seed)
    new = new.sort_values("place", kind="stable")
    there = _fifth(kept["score"].to_pandas()).value_counts()
    turn = new.groupby("fifth").cumcount() + new["fifth"].map(there).fillna(0)
    chosen = new.assign(turn=turn).sort_values(["turn", "place"], kind="stable").head(lacking)
    return pa.concat_tables([kept, in_schema(chosen, QA_ANCHOR_ITEMS)]) if len(chosen) else kept


def _fifth(scores: pd.Series) -> pd.Series:
    return (scores.astype("float64") * _FIFTHS).clip(0, _FIFTHS - 1).astype("int64")


def anchor_looks(kept: pa.Table, arbiter: Arbiter, night: str) -> Iterator[ResponseJudged]:
    """Every look of an evaluator at the anchors, afresh under the label of the night."""
    for row in kept.to_pylist():
        asked = (row["text"], row["reference"], row["response"], arbiter, judge_snapshot(night), row["evaluators"])
        for one in arbitrations(*asked):
            yield ResponseJudged(row, one, "")


def qa_anchor_rows(night: str, looks: Sequence[ResponseJudged], played: Sequence[Played]) -> pa.Table:
    """The rows of `qa_anchors`, in the order of the looks."""
    rows = [
        {**one.response, **verdict_row(one.arbitration, came, one.response["model_variant"]), "snapshot": night}
        for one, came in zip(looks, played, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=QA_ANCHORS)


def points_of_anchors(judged: pa.Table) -> pd.DataFrame:
    """The rows of `qa_anchors` as `drifts_of_judges` takes them: the point is the score."""
    frame: pd.DataFrame = judged.to_pandas().astype({"snapshot": "str", "suite": "str"})
    return frame.assign(
        judge=frame["judge_model"], item=frame["anchor"], point=frame["score"], cluster=frame["suite"] + "/" + frame["item_id"]
    )


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


def _way_of_answering(row: Mapping[str, Any]) -> str:
    return f"{row['condition']}, {row['metric']} by {row['measured_by']}"


QA_WATCHED = Subject(
    family="qa",
    keys=QA_WATCHED_KEYS,
    way=_way_of_answering,
    truth="expected answer",
    truths="expected answers",
    reads=("qa_scores", "qa_responses"),
    statements=watched_statements(_WATCHED_ITEM_SCORES, "qa_responses", "suite", QA_WATCHED_KEYS.asked, ("condition",)),
    judged_again=JudgedAgain("qa_anchors", points_of_anchors, net_of_judge),
    unlike="asked other items",
)
"""Scores of items. A part may have too few items for a verdict of its own."""

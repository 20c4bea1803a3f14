"""Anchors: judged answers that are kept as they are and shown to the judge again every night, and whether what it says of them has moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.episodes import Played
from dtef_pipeline.identity import digest
from dtef_pipeline.qa.arbiter import Arbiter, judge_snapshot
from dtef_pipeline.qa.arbitration import arbitrations, verdict_row
from dtef_pipeline.qa.judged_rows import JudgedItem, ResponseJudged, judged_items
from dtef_pipeline.qa.result_tables import QA_ANCHOR_ITEMS, QA_ANCHORS
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

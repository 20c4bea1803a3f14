"""Anchors of questions: which answers can become some, and what the judge is shown of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure
from dtef_pipeline.drift.anchors import AnchorJudging, add_anchors, build_anchor_rows
from dtef_pipeline.drift.judge_verdicts import judge_drift
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.verdict_tables import ANCHOR_ITEMS, ANCHORS
from dtef_pipeline.qa.judging.arbiter import Arbiter
from dtef_pipeline.qa.judging.arbitration import Arbitration
from dtef_pipeline.qa.score_drift import QA_WATCHED, iterate_anchor_judgings
from dtef_pipeline.qa.tables import QA_ITEMS
from tests.made.qa_scores import connected, night, table_of

JUDGE = Arbiter(ModelSpec(name="j", model="openai/j"))
ANCHORED = QA_WATCHED.anchors
assert ANCHORED is not None


def of(item: str, suite: str = "gsm8k", **given: Any) -> dict[str, Any]:
    """The columns that name a response."""
    usual = {"part": "all", "condition": "plain", "model": "m", "model_variant": "m[t=0]", "draw": 0, "snapshot": "base"}
    return {"suite": suite, "item_id": item, **usual, **given}


def anchors_of(
    judged: Sequence[Mapping[str, Any]], answers: Mapping[str, str], items: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    responses = [{**row, "response": answers[row["item_id"]]} for row in judged]
    connection = connected([], responses, judged)
    usual = {"part": "all", "scorers": ["judge"], "solution": "", "reference": "12", "quotes": []}
    connection.register("qa_items", table_of([{**usual, **item} for item in items], QA_ITEMS))
    rows: list[dict[str, Any]] = add_anchors("qa", ANCHORED, ANCHOR_ITEMS.empty_table(), 10, 0, connection).to_pylist()
    return rows


def judgings_of(anchor: Mapping[str, Any], label: str = "2026-01-01") -> list[AnchorJudging]:
    return list(iterate_anchor_judgings([anchor], JUDGE, label))


def task_of(anchor: Mapping[str, Any]) -> Arbitration:
    task = judgings_of(anchor)[0].episode
    assert isinstance(task, Arbitration)
    return task


class TestPool:
    def test_an_answer_has_the_mean_of_its_evaluators_and_what_the_judge_is_shown(self) -> None:
        judged = [{**of("a"), "evaluator": name, "score": score} for name, score in (("semantic", 0.5), ("factuality", 1.0))]
        item = {"suite": "gsm8k", "item_id": "a", "text": "How many?", "solution": "6 + 6"}
        (row,) = anchors_of(judged, {"a": "Twelve."}, [item])
        assert (row["family"], row["partition"], row["item"], row["score"]) == ("qa", "gsm8k/all", "a", 0.75)
        task = task_of(row)
        assert (task.question, task.reference, task.answer) == ("How many?", "6 + 6\n#### 12", "Twelve.")

    def test_without_a_score_there_is_no_anchor(self) -> None:
        judged = [{**of("a"), "evaluator": "semantic", "score": None, "reason": "error"}]
        assert anchors_of(judged, {"a": "x"}, [{"suite": "gsm8k", "item_id": "a", "text": "t"}]) == []

    def test_the_same_answer_of_several_nights_is_one_and_items_of_one_id_in_two_suites_are_two(self) -> None:
        judged = [
            {**of("a", suite, snapshot=snapshot), "score": 0.3} for suite in ("gsm8k", "own") for snapshot in ("n1", "n2")
        ]
        items = [{"suite": suite, "item_id": "a", "text": f"text of {suite}"} for suite in ("gsm8k", "own")]
        found = anchors_of(judged, {"a": "x"}, items)
        assert {(row["partition"], task_of(row).question) for row in found} == {
            ("gsm8k/all", "text of gsm8k"),
            ("own/all", "text of own"),
        }
        assert len(found) == 2

    def test_of_an_answer_with_citations_the_judge_is_shown_the_answer(self) -> None:
        cited = '{"answer": "It is blue.", "citations": []}'
        item = {"suite": "gsm8k", "item_id": "a", "text": "t", "scorers": ["judge", "verbatim"]}
        (row,) = anchors_of([{**of("a"), "score": 1.0}], {"a": cited}, [item])
        assert task_of(row).answer == "It is blue."


ANCHOR = {"family": "qa", "anchor": "a0", "partition": "gsm8k/all", "item": "a", "shown": '["t", "r", "x", []]'}


class TestNight:
    def test_each_night_asks_afresh_by_every_evaluator(self) -> None:
        first, again, second = (judgings_of(ANCHOR, label) for label in ("2026-01-01", "2026-01-01", "2026-01-02"))
        (own,) = judgings_of({**ANCHOR, "shown": '["t", "r", "x", ["rationale"]]'})
        assert [judging.episode.evaluator for judging in (*first, own)] == ["semantic", "factuality", "rationale"]  # type: ignore[attr-defined]
        keys = [[judging.episode.next([]).key for judging in judgings] for judgings in (first, again, second)]  # type: ignore[union-attr]
        assert keys[0] == keys[1]
        assert not set(keys[0]) & set(keys[2])

    def test_a_row_is_of_the_night_and_says_why_it_has_no_score(self) -> None:
        failed = EpisodeResult([], Failure("key", "no answer", 1, "error"))
        rows = build_anchor_rows("2026-01-01", judgings_of(ANCHOR), [failed] * 2, ANCHORED.read)
        assert Counter(
            (row["snapshot"], row["anchor"], row["judge"], row["score"], row["reason"]) for row in rows.to_pylist()
        ) == {("2026-01-01", "a0", "j", None, "error"): 2}


def test_one_night_is_compared_with_nothing_and_no_night_has_no_row() -> None:
    named = {"partition": "p", "judge": "j", "judge_model": "j", "judge_variant": "j", "evaluator": "semantic", **night(0)}
    scored = [{**named, "anchor": f"a{at}", "item": f"i{at}", "score": 0.5} for at in range(9)]
    (row,) = judge_drift(QA_WATCHED, table_of(scored, ANCHORS), WatchOptions()).to_pylist()
    assert row["verdict"] is None
    assert row["reason"]
    empty: pa.Table = ANCHORS.empty_table()
    assert len(judge_drift(QA_WATCHED, empty, WatchOptions())) == 0

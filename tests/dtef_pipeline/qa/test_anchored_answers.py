"""Anchors are chosen once, spread over the scores, and tell a drift of the judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure
from dtef_pipeline.drift.judge_verdicts import judge_drift
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.verdict_text import list_moved_judges
from dtef_pipeline.qa.judging.arbiter import Arbiter
from dtef_pipeline.qa.score_drift import (
    QA_WATCHED,
    add_answers,
    build_qa_anchor_rows,
    iterate_anchor_looks,
    load_judged_answers,
)
from dtef_pipeline.qa.tables import QA_ANCHOR_ITEMS, QA_ANCHORS, QA_ITEMS
from tests.made.qa_scores import connected, night, table_of

JUDGE = Arbiter(ModelSpec(name="j", model="openai/j"))
NONE_KEPT = QA_ANCHOR_ITEMS.empty_table()


def of(item: str, suite: str = "gsm8k", **given: Any) -> dict[str, Any]:
    """The columns that name a response."""
    usual = {"part": "all", "condition": "plain", "model": "m", "model_variant": "m[t=0]", "draw": 0, "snapshot": "base"}
    return {"suite": suite, "item_id": item, **usual, **given}


def pool_of(
    judged: Sequence[Mapping[str, Any]], answers: Mapping[str, str], items: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    responses = [{**row, "response": answers[row["item_id"]]} for row in judged]
    connection = connected([], responses, judged)
    usual = {"part": "all", "scorers": ["judge"], "solution": "", "reference": "12", "quotes": []}
    connection.register("qa_items", table_of([{**usual, **item} for item in items], QA_ITEMS))
    return load_judged_answers(connection)


def scores(*numbers: float) -> pd.DataFrame:
    """Judged answers with these scores."""
    rows = [
        {**of(f"i{at}"), "score": score, "anchor": f"a{at}", "text": "t", "reference": "r"} for at, score in enumerate(numbers)
    ]
    return pd.DataFrame(rows).assign(temperature=0.0, response="x", evaluators=pd.Series([[] for _ in rows], dtype=object))


class TestPool:
    def test_an_answer_has_the_mean_of_its_evaluators_and_what_the_judge_is_shown(self) -> None:
        judged = [{**of("a"), "evaluator": name, "score": score} for name, score in (("semantic", 0.5), ("factuality", 1.0))]
        (row,) = pool_of(
            judged, {"a": "Twelve."}, [{"suite": "gsm8k", "item_id": "a", "text": "How many?", "solution": "6 + 6"}]
        ).to_dict("records")
        assert (row["score"], row["text"], row["response"], row["evaluators"]) == (0.75, "How many?", "Twelve.", [])
        assert row["reference"] == "6 + 6\n#### 12"

    def test_without_a_score_there_is_no_anchor(self) -> None:
        judged = [{**of("a"), "evaluator": "semantic", "score": None, "reason": "error"}]
        assert len(pool_of(judged, {"a": "x"}, [{"suite": "gsm8k", "item_id": "a", "text": "t"}])) == 0

    def test_the_same_answer_of_several_nights_is_one_and_items_of_one_id_in_two_suites_are_two(self) -> None:
        judged = [
            {**of("a", suite, snapshot=snapshot), "score": 0.3} for suite in ("gsm8k", "own") for snapshot in ("n1", "n2")
        ]
        items = [{"suite": suite, "item_id": "a", "text": f"text of {suite}"} for suite in ("gsm8k", "own")]
        found = pool_of(judged, {"a": "x"}, items)
        assert sorted(zip(found["suite"], found["text"], found["snapshot"], strict=True)) == [
            ("gsm8k", "text of gsm8k", "n1"),
            ("own", "text of own", "n1"),
        ]

    def test_of_an_answer_with_citations_the_judge_is_shown_the_answer(self) -> None:
        cited = '{"answer": "It is blue.", "citations": []}'
        item = {"suite": "gsm8k", "item_id": "a", "text": "t", "scorers": ["judge", "verbatim"]}
        (row,) = pool_of([{**of("a"), "score": 1.0}], {"a": cited}, [item]).to_dict("records")
        assert row["response"] == "It is blue."


class TestChoice:
    def test_rare_scores_have_their_share(self) -> None:
        pool = scores(*[1.0] * 60, *[0.0] * 20, *[0.5] * 3)
        chosen = add_answers(NONE_KEPT, 50, 0, pool)
        assert Counter(chosen["score"].to_pylist()) == {1.0: 27, 0.0: 20, 0.5: 3}
        assert Counter(chosen.slice(0, 9)["score"].to_pylist()) == {1.0: 3, 0.0: 3, 0.5: 3}

    def test_the_choice_does_not_depend_on_the_order_of_rows(self) -> None:
        pool = scores(*np.linspace(0, 1, 90))
        chosen = add_answers(NONE_KEPT, 20, 1, pool)
        assert add_answers(NONE_KEPT, 20, 1, pool.sample(frac=1, random_state=3)) == chosen
        assert add_answers(NONE_KEPT, 20, 2, pool) != chosen

    def test_those_that_are_kept_stay_and_what_is_lacking_is_filled_up_where_they_are_few(self) -> None:
        kept = add_answers(NONE_KEPT, 10, 0, scores(*[1.0] * 10))
        assert len(kept) == 10
        larger = scores(*[1.0] * 30, *[0.1] * 30)
        filled = add_answers(kept, 18, 0, larger)
        assert filled.slice(0, 10) == kept
        assert Counter(filled["score"].to_pylist()) == {1.0: 10, 0.1: 8}
        assert add_answers(filled, 18, 0, larger) == filled
        assert add_answers(NONE_KEPT, 5, 0, larger.head(0)) == NONE_KEPT


class TestNight:
    def test_each_night_asks_afresh_by_every_evaluator(self) -> None:
        kept = add_answers(NONE_KEPT, 2, 0, scores(0.2, 0.9).assign(evaluators=pd.Series([[], ["rationale"]], dtype=object)))
        first, again, second = (
            list(iterate_anchor_looks(kept, JUDGE, label)) for label in ("2026-01-01", "2026-01-01", "2026-01-02")
        )
        assert Counter(one.arbitration.evaluator for one in first) == {"semantic": 1, "factuality": 1, "rationale": 1}
        keys = [[one.next([]).key for one in looks] for looks in (first, again, second)]  # type: ignore[union-attr]
        assert keys[0] == keys[1]
        assert not set(keys[0]) & set(keys[2])

    def test_a_row_is_of_the_night_and_says_why_it_has_no_score(self) -> None:
        kept = add_answers(NONE_KEPT, 1, 0, scores(0.2))
        looks = list(iterate_anchor_looks(kept, JUDGE, "2026-01-01"))
        failed = EpisodeResult([], Failure("key", "no answer", 1, "error"))
        rows = build_qa_anchor_rows("2026-01-01", looks, [failed] * 2)
        assert rows.schema == QA_ANCHORS
        assert {(row["snapshot"], row["anchor"], row["score"], row["reason"]) for row in rows.to_pylist()} == {
            ("2026-01-01", "a0", None, "error")
        }


def judged_nights(
    shift: float, nights: int, *, since: int, evaluator: str = "semantic", judge: str = "j"
) -> list[dict[str, Any]]:
    """50 anchors, judged every night; from the night `since` on by `shift` higher."""
    rng = np.random.default_rng(0)
    level = rng.uniform(0.4, 0.6, 50)
    named_judge = {"judge_model": judge, "judge_variant": f"{judge}[t=0]", "evaluator": evaluator}
    rows = []
    for number in range(nights):
        named = {**named_judge, "snapshot": night(number)["snapshot"]}
        points = level + rng.normal(0, 0.02, 50) + shift * (number >= since)
        rows += [{**of(f"i{at // 2}"), **named, "anchor": f"a{at}", "score": point} for at, point in enumerate(points.tolist())]
    return rows


class TestDrift:
    def test_a_judge_that_became_stricter_is_reported_with_its_interval(self) -> None:
        rows = judged_nights(-0.15, 16, since=8) + judged_nights(0, 16, since=8, evaluator="factuality")
        rows += judged_nights(0, 16, since=8, judge="other")
        steady, moved, _ = judge_drift(QA_WATCHED, table_of(rows, QA_ANCHORS), WatchOptions()).to_pylist()
        assert (moved["evaluator"], moved["verdict"], moved["shift"] < 0) == ("semantic", "drift", True)
        assert moved["first_snapshot"] == night(8)["snapshot"]
        assert moved["shift_low"] < moved["shift"] < moved["shift_high"] < 0
        assert moved["shift"] == pytest.approx(-0.15, abs=0.02)
        assert (moved["n_anchors"], moved["n_items"], moved["n_snapshots"]) == (50, 50, 16)
        assert (steady["evaluator"], steady["verdict"], steady["flagged"]) == ("factuality", "none", False)

    def test_one_night_is_compared_with_nothing_and_no_night_has_no_row(self) -> None:
        (row,) = judge_drift(QA_WATCHED, table_of(judged_nights(0, 1, since=0), QA_ANCHORS), WatchOptions()).to_pylist()
        assert row["verdict"] is None
        assert row["reason"]
        empty: pa.Table = QA_ANCHORS.empty_table()
        assert len(judge_drift(QA_WATCHED, empty, WatchOptions())) == 0

    def test_what_is_reported_of_a_judge_that_moved_names_it_and_its_shift(self) -> None:
        rows = judged_nights(-0.15, 16, since=8) + judged_nights(0, 16, since=8, judge="other")
        (told,) = list_moved_judges(judge_drift(QA_WATCHED, table_of(rows, QA_ANCHORS), WatchOptions()).to_pylist())
        assert told.startswith(f"judge j, semantic: drift since {night(8)['snapshot']} on 50 stored answers, shift -0.1")
        (of_two_nights,) = list_moved_judges(
            judge_drift(QA_WATCHED, table_of(judged_nights(-0.3, 2, since=1), QA_ANCHORS), WatchOptions()).to_pylist()
        )
        assert of_two_nights.startswith("judge j, semantic: watch on 50 stored answers, ")

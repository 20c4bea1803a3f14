"""Drift of models on items beside the documented rule, anchors of questions, and judged scores netted of the judge's own move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure
from dtef_pipeline.drift.judge_verdicts import AnchorJudging, add_anchors, build_anchor_rows, judge_drift, subtract_judges
from dtef_pipeline.drift.models import compute_model_drift
from dtef_pipeline.drift.rule import build_rule_table
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.verdict_tables import ANCHOR_ITEMS, ANCHORS
from dtef_pipeline.qa.judging.arbiter import Arbiter, Arbitration
from dtef_pipeline.qa.score_drift import QA_WATCHED, iterate_anchor_judgings
from dtef_pipeline.qa.tables import QA_ITEMS
from tests.made.qa_scores import connected, night, score_row, table_of

NIGHTS = 12


def rows_of(lost: float, since: int = 6, **changed: Any) -> list[dict[str, Any]]:
    """Two models on two suites, right or wrong. From night `since` on `moved` scores `lost` less; `changed`: what items are there after."""
    rng = np.random.default_rng(1)
    hard = rng.uniform(0.3, 0.9, 80)
    rows = []
    for at in range(NIGHTS):
        for model in ("moved", "steady"):
            right = rng.random(80) < hard - (lost if model == "moved" and at >= since else 0.0)
            rows += [
                score_row(
                    float(one),
                    model=model,
                    suite="mmlu" if item % 2 else "own",
                    part=f"s{item % 4}",
                    item_id=f"i{item}",
                    prompt_id=f"p{item}",
                    **night(at),
                    **(changed if at >= since else {}),
                )
                for item, one in enumerate(right)
            ]
    return rows


def test_a_planted_shift_is_found_with_its_night_and_what_served_the_model() -> None:
    rows = rows_of(0.4)
    keys = ("suite", "part", "item_id", "condition", "model", "model_variant", "snapshot")
    served = [
        {**{name: row[name] for name in keys}, "served_model": f"{row['model']}-{row['snapshot'] >= night(6)['snapshot']}"}
        for row in rows
    ]
    drift = compute_model_drift(connected(rows, served), QA_WATCHED)
    found = {row["model"]: row for row in drift.checks.to_pylist()}
    assert any("moved-True" in str(change["after"]) for change in found["moved"]["changes"])
    assert len(drift.series) == 2 * NIGHTS
    assert found["moved"]["verdict"] == "drift"
    assert found["moved"]["first_snapshot"] == night(6)["snapshot"]
    assert found["moved"]["shift"] == pytest.approx(-0.35, abs=0.1)
    assert found["moved"]["n_prompts"] == 80
    assert found["moved"]["setting"].startswith("letters, exact_choice by ")
    assert found["moved"]["top_changes"][0]["item"].split("/")[0] in ("mmlu", "own")
    assert found["steady"]["verdict"] != "drift"


def test_another_expected_answer_or_judge_is_no_drift() -> None:
    """A shift that comes with another measure is of the measure."""
    for change, n_series in ({"truth_id": "edited"}, 2), ({"measured_by": "judge x"}, 4):
        series = compute_model_drift(connected(rows_of(0.4, **change), []), QA_WATCHED).checks.to_pylist()
        assert len(series) == n_series
        assert "drift" not in {row["verdict"] for row in series}


def test_the_documented_rule_is_applied_to_each_part_at_temperature_0_alone() -> None:
    warm = [score_row(0.5, model="warm", temperature=0.7, **night(at)) for at in range(3)]
    found = build_rule_table(connected([*rows_of(0.4), *warm], []), QA_WATCHED).to_pylist()
    assert {row["model"] for row in found} == {"moved", "steady"}
    assert len(found) == 8
    flagged = [row for row in found if row["model"] == "moved"]
    assert all(row["flagged"] and row["n_items"] == 20 and row["n_snapshots"] == NIGHTS for row in flagged)
    for row in flagged:
        assert row["highest"] - row["lowest"] == pytest.approx(row["gap"])


def test_no_scores_have_no_drift() -> None:
    assert len(build_rule_table(connected([], []), QA_WATCHED)) == 0
    assert len(compute_model_drift(connected([], []), QA_WATCHED).checks) == 0


BY = "judge 1, j[temperature=0,top_p=1], factuality+semantic"


def anchored(nights: range, lost: float) -> pa.Table:
    """What a judge said of the same answers: by one evaluator twice `lost` less from the sixth night on."""
    rng = np.random.default_rng(5)
    judge = {"judge": "j", "judge_model": "j", "judge_variant": "j[temperature=0,top_p=1]", "partition": "s/all"}
    rows = []
    for at, item, (evaluator, usual) in product(nights, range(30), (("semantic", 0.8), ("factuality", 0.6))):
        score = usual + float(rng.normal(0, 0.01)) - (2 * lost if at >= 6 and evaluator == "semantic" else 0.0)
        place = {"snapshot": night(at)["snapshot"], "anchor": f"a{item}", "item": f"i{item}"}
        rows.append({**judge, **place, "evaluator": evaluator, "score": score})
    return pa.Table.from_pylist(rows, schema=ANCHORS)


def moved(metric: str = "judged", by: str = BY, **changed: Any) -> dict[str, Any]:
    """One model whose score fell by .3 in the sixth night."""
    known = {"verdict": "drift", "shift": -0.3, "shift_low": -0.35, "shift_high": -0.25}
    named = {"model": "m", "model_variant": "m[temperature=0]", "metric": metric, "measured_by": by}
    return {**named, "first_snapshot": night(6)["snapshot"], **known, **changed}


def netted(row: dict[str, Any], judged: pa.Table, options: WatchOptions | None = None) -> dict[str, Any]:
    """The columns on judges of one model."""
    assert QA_WATCHED.anchors is not None
    (found,) = subtract_judges([row], QA_WATCHED.anchors, judged, options or WatchOptions())
    return {name: value for name, value in found.items() if name not in row}


def test_a_judged_shift_is_netted_of_its_evaluators_between_the_same_snapshots() -> None:
    judged = anchored(range(12), 0.1)
    for metric, part in (("judged", -0.1), ("semantic", -0.2), ("factuality", 0.0)):
        row = netted(moved(metric), judged)
        assert row["net_shift"] == pytest.approx(-0.3 - part, abs=0.01)
        assert "on anchors" in row["judges_note"]
        assert "an answer that did not change keeps its judgement" in row["judges_note"]


def test_what_is_not_known_to_have_moved_since_a_night_is_not_netted() -> None:
    """A model that fell by itself after its judge had become stricter was told as having moved by nothing."""
    row = netted(moved(verdict="watch", first_snapshot=None), anchored(range(9), 0.1))
    assert row["net_shift"] is None
    assert row["judges_note"] == "model or judges: the first snapshot of the shift is unknown"


def without(judged: pa.Table, *nights: int) -> pa.Table:
    lacking = {night(at)["snapshot"] for at in nights}
    return pa.Table.from_pylist([row for row in judged.to_pylist() if row["snapshot"] not in lacking], schema=ANCHORS)


@pytest.mark.parametrize("lacking", [(), (6,), (0, 1, 2, 3, 4), (6, 7, 8, 9, 10), (10, 11), range(1, 11)])
def test_the_judges_snapshots_count_by_their_time(lacking: tuple[int, ...]) -> None:
    """Without anchors in exactly the first snapshot of the shift nothing was netted."""
    labels = [night(at)["snapshot"] for at in range(12)]
    model = moved(baseline=labels[:5], latest_snapshot=labels[-1], n_snapshots=12)
    row = netted(model, without(anchored(range(12), 0.1), *lacking))
    assert row["net_shift"] == pytest.approx(-0.2, abs=0.02)
    assert "moved too" in row["judges_note"]


def test_an_outage_of_the_model_counts_on_no_side_of_its_judge() -> None:
    judged = anchored(range(12), 0.1).to_pylist()
    broken = night(3)["snapshot"]
    scores = [{**row, "score": 0.0} if row["snapshot"] == broken else row for row in judged]
    row = netted(moved(outage=[broken]), pa.Table.from_pylist(scores, schema=ANCHORS))
    assert row["net_shift"] == pytest.approx(-0.2, abs=0.02)


def test_it_is_stated_why_a_shift_is_not_netted_and_nothing_is_stated_of_what_no_judge_scored() -> None:
    later = netted(moved(), anchored(range(6, 12), 0.1))
    assert later["net_shift"] is None
    assert "no judge was shown anchors again" in later["judges_note"]
    accepted = WatchOptions(since={"m": night(7)["snapshot"]})
    assert netted(moved(), anchored(range(12), 0.1), accepted) == netted(moved(), anchored(range(7, 12), 0.1))
    other = WatchOptions(since={"other": night(7)["snapshot"]})
    assert netted(moved(), anchored(range(12), 0.1), other) == netted(moved(), anchored(range(12), 0.1))
    for rows, by in ((ANCHORS.empty_table(), BY), (anchored(range(12), 0.1), BY.replace("j[", "other["))):
        none = netted(moved(by=by), rows)
        assert "no judge was shown anchors again" in none["judges_note"]
    for row in (moved("correct", "numeric 1"), moved(verdict="none"), moved(shift=None)):
        assert netted(row, anchored(range(12), 0.1)) == {}


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

"""What the scorers of a part make of its responses: one row per response, scorer and metric, and a reason wherever there is no value."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.qa.item_files.item_log import LoadedItems
from dtef_pipeline.qa.item_files.item_rows import build_item_tables
from dtef_pipeline.qa.judging.arbiter import Arbiter
from dtef_pipeline.qa.judging.judgement_rows import merge_with_other_judges, select_judged_items
from dtef_pipeline.qa.model import QaItem, WrittenResponse
from dtef_pipeline.qa.prompt_rows import AskSettings, build_plain_prompts
from dtef_pipeline.qa.score_rows import score_rows
from dtef_pipeline.qa.scoring import (
    PartScoring,
    ScoringItem,
    group_by_response,
    list_judges,
    list_levels,
    list_response_keys,
    load_asked_items,
    select_as_shown,
    select_formulas,
)
from dtef_pipeline.qa.tables import QA_EXECUTIONS, QA_JUDGEMENTS, QA_RESPONSES

CHOICE = QaItem("law/0", "mmlu", "law", "choice", "Which one?", ("ash", "beech", "cedar", "date"), "C", "law")
SUM = QaItem("gsm8k/0", "gsm8k", "all", "number", "How many?", reference="7", solution="3 + 4 = 7")
CODE = QaItem("HE/0", "humaneval", "all", "code", "def f(): ...", reference='{"prompt": "", "entry_point": "f", "test": ""}')
SCORERS = {"choice": ["exact_choice"], "number": ["judge", "numeric"], "code": ["code_execution"]}


def responses_to(item: QaItem, *texts: str | None, **columns: Any) -> pa.Table:
    """One response per text, as a draw of its own."""
    condition = columns.pop("condition", "letters")
    rows = [
        {
            "suite": item.suite,
            "part": item.part,
            "item_id": item.item_id,
            "condition": condition,
            "snapshot": "base",
            "model": "m",
            "model_variant": "p/m",
            "draw": draw,
            "request_key": f"key {draw}",
            "prompt_id": "p",
            "call_status": "answered" if text is not None else "error",
            "response": text,
            "finish_reason": "stop",
            **columns,
        }
        for draw, text in enumerate(texts)
    ]
    return pa.Table.from_pylist(rows, schema=QA_RESPONSES)


def items_of(item: QaItem) -> pa.Table:
    return build_item_tables(item.suite, item.part, LoadedItems((item,)), lambda one: SCORERS[one.type]).qa_items


def scored(item: QaItem, responses: pa.Table, how: AskSettings | None = None, **more: Any) -> list[dict[str, Any]]:
    items = items_of(item)
    prompts = build_plain_prompts([item], [], how or AskSettings()).qa_prompts
    asked = load_asked_items(items, prompts)
    scoring = PartScoring(asked, select_formulas(asked.values()), keys=list_response_keys(responses), **more)
    return score_rows(responses, items, scoring.compute_scores_of, scoring.measures(), scoring.is_outside_sample).to_pylist()


def judged(**columns: Any) -> dict[str, Any]:
    named = {
        "item_id": SUM.item_id,
        "condition": "plain",
        "model_variant": "p/m",
        "draw": 0,
        "judge_variant": "j",
        "self_judged": False,
    }
    return {**named, **columns}


def test_a_response_has_a_row_with_the_rule_that_read_it() -> None:
    (row,) = scored(CHOICE, responses_to(CHOICE, "The answer is (C)."))
    assert (row["metric"], row["status"], row["value"], row["score"]) == ("correct", "ok", 1.0, 1.0)
    assert json.loads(row["detail"])["letter"] == "C"
    assert row["read_by"]
    assert row["measured_by"] == "exact_choice 2"
    assert (row["cluster"], row["type"]) == ("law", "choice")


def test_what_cannot_be_read_has_no_value_and_the_score_0() -> None:
    (row,) = scored(CHOICE, responses_to(CHOICE, "No idea"))
    assert (row["status"], row["value"], row["score"]) == ("unparseable", None, 0.0)


@pytest.mark.parametrize(
    ("columns", "status"),
    [
        ({"call_status": "error", "error": "time-out"}, "error"),
        ({"call_status": "budget"}, "budget"),
        ({"finish_reason": "content_filter"}, "refused"),
    ],
)
def test_what_is_no_fault_of_the_response_has_neither(columns: dict[str, str], status: str) -> None:
    (row,) = scored(CHOICE, responses_to(CHOICE, "C", **columns))
    assert (row["status"], row["value"], row["score"]) == (status, None, None)
    assert row["metric"] == "correct"


@pytest.mark.parametrize("rotation", [1, 2, 3])
def test_rotated_options_are_scored_as_they_were_shown_and_reported_as_in_the_file(rotation: int) -> None:
    how = AskSettings(order=f"rotated-{rotation}")
    shown = "ABCD"[(2 - rotation) % 4]
    right, wrong = scored(CHOICE, responses_to(CHOICE, shown, "C", condition=f"letters,rotated-{rotation}"), how)
    assert (right["value"], wrong["value"]) == (1.0, 0.0)
    assert json.loads(right["detail"]) | {"letter": shown, "file_letter": "C"} == json.loads(right["detail"])
    asked = load_asked_items(items_of(CHOICE), build_plain_prompts([CHOICE], [], how).qa_prompts)
    reference, options = select_as_shown(next(iter(asked.values())))
    assert options["ABCD".index(reference)] == "cedar"


def test_judges_and_numbers_stand_side_by_side() -> None:
    rows = [judged(evaluator="semantic", score=0.2, reason=None), judged(evaluator="factuality", score=1.0, reason=None)]
    judgements = pa.Table.from_pylist(rows, schema=QA_JUDGEMENTS)
    more = {"judgements": group_by_response(judgements), "judges": list_judges(judgements)}
    found = {row["metric"]: row for row in scored(SUM, responses_to(SUM, "#### 7", condition="plain"), **more)}
    assert {name: row["value"] for name, row in found.items()} == pytest.approx(
        {"correct": 1.0, "judged": 0.6, "semantic": 0.2, "factuality": 1.0}
    )
    assert found["judged"]["measured_by"] == "judge 1, j, factuality+semantic"


def test_judges_stand_beside_each_other_and_are_never_averaged_together() -> None:
    said = [("j", "judge", 0.2), ("k", "judge", 0.6), ("j", "judge/again", 1.0)]
    rows = [
        judged(evaluator="factuality", score=score, reason=None, judge_variant=variant, judge_snapshot=snapshot)
        for variant, snapshot, score in said
    ]
    judgements = pa.Table.from_pylist(rows, schema=QA_JUDGEMENTS)
    more = {"judgements": group_by_response(judgements), "judges": list_judges(judgements)}
    found = scored(SUM, responses_to(SUM, "#### 7", condition="plain"), **more)
    assert {row["measured_by"]: row["value"] for row in found if row["metric"] == "judged"} == pytest.approx(
        {"judge 1, j, factuality": 0.2, "judge 1, k, factuality": 0.6, "judge 1, j, factuality, judge/again": 1.0}
    )


def test_what_another_judge_stated_stays_as_long_as_its_response_stands() -> None:
    arbiter = Arbiter(ModelSpec(name="j", model="p/j"))
    named = {"item_id": SUM.item_id, "judge_snapshot": "judge", "evaluator": "factuality"}
    earlier = pa.Table.from_pylist(
        [
            {**named, "judge_variant": "other", "answer_key": "key 0", "score": 0.1},
            {**named, "judge_variant": "other", "answer_key": "gone", "score": 0.2},
            {**named, "judge_variant": arbiter.model.variant, "answer_key": "key 0", "score": 0.3},
        ],
        schema=QA_JUDGEMENTS,
    )
    responses = responses_to(SUM, "#### 7", condition="plain")
    kept = merge_with_other_judges(earlier, QA_JUDGEMENTS.empty_table(), responses, arbiter, "judge")
    assert kept["score"].to_pylist() == [0.1]
    assert merge_with_other_judges(earlier, QA_JUDGEMENTS.empty_table(), responses, None, "judge")["score"].to_pylist() == [
        0.1,
        0.3,
    ]


def test_a_failed_judge_leaves_null_with_a_reason_and_never_a_middle_value() -> None:
    rows = [judged(evaluator="semantic", reason="unreadable"), judged(evaluator="factuality", reason="error")]
    judgements = pa.Table.from_pylist(rows, schema=QA_JUDGEMENTS)
    more = {"judgements": group_by_response(judgements), "judges": list_judges(judgements)}
    found = {row["metric"]: row for row in scored(SUM, responses_to(SUM, "#### 7", condition="plain"), **more)}
    for name in ("judged", "semantic", "factuality"):
        assert (found[name]["status"], found[name]["value"], found[name]["score"]) == ("judge_failed", None, None)
        assert found[name]["reason"]
    assert found["correct"]["value"] == 1.0


@pytest.mark.parametrize(("reason", "status"), [("skipped_sample", "skipped_sample"), ("skipped_budget", "skipped_budget")])
def test_what_was_not_judged_says_why_under_every_evaluator(reason: str, status: str) -> None:
    limit = "not sent: the judges' daily budget of $2.00 for 2026-05-04 (UTC) was reached"
    rows = [judged(evaluator=name, reason=reason, error=limit) for name in ("semantic", "factuality")]
    judgements = pa.Table.from_pylist(rows, schema=QA_JUDGEMENTS)
    more = {"judgements": group_by_response(judgements), "judges": list_judges(judgements)}
    found = scored(SUM, responses_to(SUM, "#### 7", condition="plain"), **more)
    assert {row["metric"]: row["status"] for row in found} == {
        "correct": "ok",
        **dict.fromkeys(("judged", "semantic", "factuality"), status),
    }
    told = "sample_rate" if reason == "skipped_sample" else limit
    assert all(told in row["reason"] for row in found if row["metric"] != "correct")


def test_a_call_that_failed_misses_no_judgement_that_the_sample_leaves_out() -> None:
    rows = [judged(evaluator="semantic", reason="skipped_sample", judge_snapshot="judge")]
    judgements = pa.Table.from_pylist(rows, schema=QA_JUDGEMENTS)
    more = {"judgements": group_by_response(judgements), "judges": list_judges(judgements)}
    found = scored(SUM, responses_to(SUM, None, condition="plain"), **more)
    assert {row["metric"]: row["status"] for row in found} == {
        "correct": "error",
        "judged": "skipped_sample",
        "semantic": "skipped_sample",
    }


@pytest.mark.parametrize(
    ("verdict", "status", "value"),
    [
        ("passed", "ok", 1.0),
        ("assertion", "ok", 0.0),
        ("timeout", "ok", 0.0),
        ("empty", "ok", 0.0),
        ("sandbox_error", "sandbox_error", None),
    ],
)
def test_a_fault_of_the_sandbox_is_none_of_the_response(verdict: str, status: str, value: float | None) -> None:
    named = {"item_id": CODE.item_id, "condition": "plain", "model_variant": "p/m", "draw": 0}
    row = {**named, "verdict": verdict, "isolation": "bwrap", "python": "3.11.2", "message": "said"}
    executions = pa.Table.from_pylist([row], schema=QA_EXECUTIONS)
    more = {
        "executions": {key: rows[0] for key, rows in group_by_response(executions).items()},
        "executed_at": list_levels(executions),
    }
    (found,) = scored(CODE, responses_to(CODE, "code", condition="plain"), **more)
    assert (found["metric"], found["status"], found["value"], found["score"]) == ("passed", status, value, value)
    assert found["measured_by"] == "code_execution 2, bwrap"


def test_verdicts_of_two_levels_are_never_one_measure() -> None:
    """A run at another level that was killed leaves verdicts of both: their scores were averaged under the names of both."""
    verdicts = [("passed", "bwrap"), ("assertion", "sandlock"), ("syntax", None)]
    named = {"item_id": CODE.item_id, "condition": "plain", "model_variant": "p/m"}
    rows = [{**named, "draw": draw, "verdict": verdict, "isolation": level} for draw, (verdict, level) in enumerate(verdicts)]
    executions = pa.Table.from_pylist(rows, schema=QA_EXECUTIONS)
    more = {
        "executions": {key: rows[0] for key, rows in group_by_response(executions).items()},
        "executed_at": list_levels(executions),
    }
    found = scored(CODE, responses_to(CODE, "a", "b", "c", None, condition="plain"), **more)
    scores = {(row["measured_by"].removeprefix("code_execution 2, "), row["draw"]): row["score"] for row in found}
    # What needs no level stands at each; what was run elsewhere, or is not there, has no score.
    assert scores == {
        ("bwrap", 0): 1.0,
        ("bwrap", 1): None,
        ("bwrap", 2): 0.0,
        ("bwrap", 3): None,
        ("sandlock", 0): None,
        ("sandlock", 1): 0.0,
        ("sandlock", 2): 0.0,
        ("sandlock", 3): None,
    }
    assert {row["status"] for row in found if row["draw"] < 2 and row["score"] is None} == {"missing"}


def test_a_type_that_nobody_scores_says_so() -> None:
    essay = QaItem("q/e", "own", "q", "number", "Write.", reference="7")
    items = build_item_tables("own", "q", LoadedItems((essay,)), lambda _: []).qa_items
    asked = load_asked_items(items, build_plain_prompts([essay], [], AskSettings()).qa_prompts)
    responses = responses_to(essay, "text", condition="plain")
    scoring = PartScoring(asked, {}, keys=list_response_keys(responses))
    (row,) = score_rows(responses, items, scoring.compute_scores_of, scoring.measures(), scoring.is_outside_sample).to_pylist()
    assert (row["status"], row["value"], row["score"]) == ("no_scorer", None, None)


def test_a_reply_that_was_cut_is_scored_by_its_answer_alone() -> None:
    """`{"answer": "The sources do not say.", "citations": [{"quote": "... nets` had the full mark of the words quoted."""
    item = QaItem("q/2", "socioscope", "q", "ListOne", "What did Bo mend?", reference='{"nets": 1}')
    items = build_item_tables("socioscope", "q", LoadedItems((item,)), lambda _: ["list_one"]).qa_items
    quoting = ', "citations": [{"source_index": 0, "quote": "They mended the nets'
    texts = [f'{{"answer": "The sources do not say."{quoting}', f'{{"answer": "Nets."{quoting}', '{"answer": "The nets']
    responses = responses_to(item, *texts, condition="bm25,2-chunks")
    asked = {("q/2", "bm25,2-chunks"): ScoringItem(("list_one",), item.reference, (), None)}
    scoring = PartScoring(asked, select_formulas(asked.values()), keys=list_response_keys(responses), cites=True)
    rows = score_rows(responses, items, scoring.compute_scores_of, scoring.measures(), scoring.is_outside_sample).to_pylist()
    assert [(row["status"], row["score"], row["flags"]) for row in rows] == [
        ("ok", 0.0, ["cut_json"]),
        ("ok", 1.0, ["cut_json"]),
        ("unparseable", 0.0, ["cut_json"]),
    ]
    assert "no complete answer" in rows[2]["reason"]


def test_equal_responses_are_read_once() -> None:
    responses = responses_to(CHOICE, *(["The answer is C"] * 5))
    asked = load_asked_items(items_of(CHOICE), build_plain_prompts([CHOICE], [], AskSettings()).qa_prompts)
    scoring = PartScoring(asked, select_formulas(asked.values()), keys=list_response_keys(responses))
    first = scoring.compute_scores_of(0, WrittenResponse("The answer is C", "stop"))
    assert scoring.compute_scores_of(4, WrittenResponse("The answer is C", "stop"))[0][1] is first[0][1]


REASONED = QaItem(
    "q/1",
    "socioscope",
    "q",
    "Yes/No with Rationale",
    "Was it cold?",
    reference='{"answer": "yes", "rationale": {"judge": true}}',
)


@pytest.mark.parametrize(
    ("rows", "status", "value"),
    [
        ([], "missing", None),
        ([{"evaluator": "rationale", "score": 0.8, "reason": None}], "ok", 0.9),
        ([{"evaluator": "rationale", "score": None, "reason": "unreadable"}], "judge_failed", None),
        ([{"evaluator": "rationale", "score": None, "reason": "skipped_budget"}], "skipped_budget", None),
    ],
)
def test_a_judge_reads_the_reasons_of_a_right_answer(rows: list[dict[str, Any]], status: str, value: float | None) -> None:
    items = build_item_tables("socioscope", "q", LoadedItems((REASONED,)), lambda _: ["yes_no_rationale"]).qa_items
    responses = responses_to(REASONED, "Yes, because of the ice.", "No, because of the sun.", condition="bm25,2-chunks")
    asked = {("q/1", "bm25,2-chunks"): ScoringItem(("yes_no_rationale",), REASONED.reference, (), None)}
    judgements = {("q/1", "bm25,2-chunks", "p/m", 0): rows}
    scoring = PartScoring(asked, select_formulas(asked.values()), keys=list_response_keys(responses), judgements=judgements)
    right, wrong = score_rows(
        responses, items, scoring.compute_scores_of, scoring.measures(), scoring.is_outside_sample
    ).to_pylist()
    assert right["status"] == status
    assert right["value"] == (None if value is None else pytest.approx(value))
    assert (wrong["status"], wrong["value"]) == ("ok", 0.0)


def test_whose_reasons_a_judge_reads_is_reported_by_the_metric() -> None:
    named = replace(REASONED, item_id="q/2", reference='{"answer": "yes", "rationale": {"ice": 1}}')
    items = build_item_tables(
        "socioscope", "q", LoadedItems((REASONED, named)), lambda _: ["yes_no_rationale", "verbatim"]
    ).qa_items
    found = select_judged_items(items)
    assert list(found) == ["q/1"]
    assert (found["q/1"].evaluators, found["q/1"].cites) == (("rationale",), True)
    assert found["q/1"].reference.startswith("Yes.")

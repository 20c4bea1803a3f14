"""What the scorers of a part make of its responses: one row per response, scorer and metric, and a reason wherever there is no value."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.qa.item_files.item_log import ItemFinding, LoadedItems
from dtef_pipeline.qa.judging.arbiter import Arbiter
from dtef_pipeline.qa.judging.judgement_rows import merge_with_other_judges, select_judged_items
from dtef_pipeline.qa.model import ItemScore, QaItem, WrittenResponse
from dtef_pipeline.qa.prompt_rows import (
    AskSettings,
    build_item_tables,
    build_plain_prompts,
    read_stored_examples,
    read_stored_items,
    truth_id,
)
from dtef_pipeline.qa.scoring import (
    Measure,
    PartScoring,
    ResponseKey,
    ScoringItem,
    group_by_response,
    list_judges,
    list_levels,
    load_asked_items,
    score_rows,
    select_formulas,
)
from dtef_pipeline.qa.tables import QA_EXECUTIONS, QA_JUDGEMENTS, QA_SCORES
from tests.made.qa_items import BIRD, BIRDS_SHOWN, KEEPER, ROWERS, TWICE, responses_to, rows_of_items

CHOICE = QaItem("law/0", "mmlu", "law", "choice", "Which one?", ("ash", "beech", "cedar", "date"), "C", "law")
SUM = QaItem("gsm8k/0", "gsm8k", "all", "number", "How many?", reference="7", solution="3 + 4 = 7")
CODE = QaItem("HE/0", "humaneval", "all", "code", "def f(): ...", reference='{"prompt": "", "entry_point": "f", "test": ""}')
SCORERS = {"choice": ["exact_choice"], "number": ["judge", "numeric"], "code": ["code_execution"]}


of_choice = partial(responses_to, CHOICE, condition="letters")


def items_of(item: QaItem) -> pa.Table:
    return build_item_tables(item.suite, item.part, LoadedItems((item,)), lambda one: SCORERS[one.type]).qa_items


def scored(item: QaItem, responses: pa.Table, how: AskSettings | None = None, **more: Any) -> list[dict[str, Any]]:
    items = items_of(item)
    return rows_of(
        items, responses, load_asked_items(items, build_plain_prompts([item], [], how or AskSettings()).qa_prompts), **more
    )


def rows_of(items: pa.Table, responses: pa.Table, asked: dict[Any, ScoringItem], **more: Any) -> list[dict[str, Any]]:
    scoring = PartScoring(asked, select_formulas(asked.values()), **more)
    rows: list[dict[str, Any]] = score_rows(
        responses, items, scoring.compute_scores_of, scoring.measures(), scoring.is_outside_sample
    ).to_pylist()
    return rows


def scored_by_judges(*rows: dict[str, Any], response: str | None = "#### 7") -> list[dict[str, Any]]:
    """Scores of one response to SUM of which judges stated these rows."""
    named = {"item_id": SUM.item_id, "condition": "plain", "model_variant": "p/m", "draw": 0, "judge_variant": "j"}
    judgements = pa.Table.from_pylist([{**named, **row} for row in rows], schema=QA_JUDGEMENTS)
    more: Any = {"judgements": group_by_response(judgements), "judges": list_judges(judgements)}
    return scored(SUM, responses_to(SUM, response), **more)


def scored_by_verdicts(*verdicts: tuple[str, str | None], texts: Sequence[str | None]) -> list[dict[str, Any]]:
    """Scores of responses to CODE of which the first ended in these verdicts, each at the level of its sandbox."""
    named = {"item_id": CODE.item_id, "condition": "plain", "model_variant": "p/m", "message": "said"}
    rows = [{**named, "draw": draw, "verdict": verdict, "isolation": level} for draw, (verdict, level) in enumerate(verdicts)]
    executions = pa.Table.from_pylist(rows, schema=QA_EXECUTIONS)
    more: Any = {
        "executions": {key: found[0] for key, found in group_by_response(executions).items()},
        "executed_at": list_levels(executions),
    }
    return scored(CODE, responses_to(CODE, *texts), **more)


def test_a_response_has_a_row_with_the_rule_that_read_it() -> None:
    (row,) = scored(CHOICE, of_choice("The answer is (C)."))
    assert (row["metric"], row["status"], row["value"], row["score"]) == ("correct", "ok", 1.0, 1.0)
    assert json.loads(row["detail"])["letter"] == "C"
    assert row["read_by"]
    assert row["measured_by"] == "exact_choice 2"
    assert (row["cluster"], row["type"]) == ("law", "choice")


@pytest.mark.parametrize("rotation", [1, 2, 3])
def test_rotated_options_are_scored_as_they_were_shown_and_reported_as_in_the_file(rotation: int) -> None:
    how = AskSettings(order=f"rotated-{rotation}")
    shown = "ABCD"[(2 - rotation) % 4]
    right, wrong = scored(CHOICE, of_choice(shown, "C", condition=f"letters,rotated-{rotation}"), how)
    assert (right["value"], wrong["value"]) == (1.0, 0.0)
    assert json.loads(right["detail"]) | {"letter": shown, "file_letter": "C"} == json.loads(right["detail"])
    asked = load_asked_items(items_of(CHOICE), build_plain_prompts([CHOICE], [], how).qa_prompts)
    (shown_item,) = asked.values()
    assert shown_item.options["ABCD".index(shown_item.reference)] == "cedar"


def test_judges_and_numbers_stand_side_by_side() -> None:
    rows = scored_by_judges({"evaluator": "semantic", "score": 0.2}, {"evaluator": "factuality", "score": 1.0})
    found = {row["metric"]: row for row in rows}
    assert {name: row["value"] for name, row in found.items()} == pytest.approx(
        {"correct": 1.0, "judged": 0.6, "semantic": 0.2, "factuality": 1.0}
    )
    assert found["judged"]["measured_by"] == "judge 1, j, factuality+semantic"


def test_judges_stand_beside_each_other_and_are_never_averaged_together() -> None:
    said = [("j", "judge", 0.2), ("k", "judge", 0.6), ("j", "judge/again", 1.0)]
    found = scored_by_judges(
        *(
            {"evaluator": "factuality", "score": score, "judge_variant": variant, "judge_snapshot": snapshot}
            for variant, snapshot, score in said
        )
    )
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
    responses = responses_to(SUM, "#### 7")
    kept = merge_with_other_judges(earlier, QA_JUDGEMENTS.empty_table(), responses, arbiter, "judge")
    assert kept["score"].to_pylist() == [0.1]
    assert merge_with_other_judges(earlier, QA_JUDGEMENTS.empty_table(), responses, None, "judge")["score"].to_pylist() == [
        0.1,
        0.3,
    ]


LIMIT = "not sent: the judges' daily budget of $2.00 for 2026-05-04 (UTC) was reached"


@pytest.mark.parametrize(
    ("reason", "other", "status", "told"),
    [
        ("unreadable", "error", "judge_failed", ""),
        ("skipped_sample", "skipped_sample", "skipped_sample", "sample_rate"),
        ("skipped_budget", "skipped_budget", "skipped_budget", LIMIT),
    ],
)
def test_what_no_judge_stated_is_null_with_a_reason(reason: str, other: str, status: str, told: str) -> None:
    judgements = [
        {"evaluator": name, "reason": why, "error": LIMIT} for name, why in (("semantic", reason), ("factuality", other))
    ]
    found = {row.pop("metric"): row for row in scored_by_judges(*judgements)}
    assert found.pop("correct")["value"] == 1.0
    assert {name: (row["status"], row["value"], row["score"]) for name, row in found.items()} == dict.fromkeys(
        ("judged", "semantic", "factuality"), (status, None, None)
    )
    assert all(row["reason"] and told in row["reason"] for row in found.values())


def test_a_call_that_failed_misses_no_judgement_that_the_sample_leaves_out() -> None:
    skipped = {"evaluator": "semantic", "reason": "skipped_sample", "judge_snapshot": "judge"}
    assert {row["metric"]: row["status"] for row in scored_by_judges(skipped, response=None)} == {
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
    (found,) = scored_by_verdicts((verdict, "bwrap"), texts=["code"])
    assert (found["metric"], found["status"], found["value"], found["score"]) == ("passed", status, value, value)
    assert found["measured_by"] == "code_execution 2, bwrap"


def test_verdicts_of_two_levels_are_never_one_measure() -> None:
    """A run at another level that was killed leaves verdicts of both: their scores were averaged under the names of both."""
    found = scored_by_verdicts(("passed", "bwrap"), ("assertion", "sandlock"), ("syntax", None), texts=["a", "b", "c", None])
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


def test_a_type_that_nobody_scores_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCORERS, "number", [])
    (row,) = scored(SUM, responses_to(SUM, "text"))
    assert (row["status"], row["value"], row["score"]) == ("no_scorer", None, None)


def test_a_reply_that_was_cut_is_scored_by_its_answer_alone() -> None:
    """`{"answer": "The sources do not say.", "citations": [{"quote": "... nets` had the full mark of the words quoted."""
    item = QaItem("q/2", "socioscope", "q", "ListOne", "What did Bo mend?", reference='{"nets": 1}')
    items = build_item_tables("socioscope", "q", LoadedItems((item,)), lambda _: ["list_one"]).qa_items
    quoting = ', "citations": [{"source_index": 0, "quote": "They mended the nets'
    texts = [f'{{"answer": "The sources do not say."{quoting}', f'{{"answer": "Nets."{quoting}', '{"answer": "The nets']
    responses = responses_to(item, *texts, condition="bm25,2-chunks")
    asked = {("q/2", "bm25,2-chunks"): ScoringItem(("list_one",), item.reference, (), None)}
    rows = rows_of(items, responses, asked, cites=True)
    assert [(row["status"], row["score"], row["flags"]) for row in rows] == [
        ("ok", 0.0, ["cut_json"]),
        ("ok", 1.0, ["cut_json"]),
        ("unparseable", 0.0, ["cut_json"]),
    ]
    assert "no complete answer" in rows[2]["reason"]


def test_equal_responses_are_read_once() -> None:
    asked = load_asked_items(items_of(CHOICE), build_plain_prompts([CHOICE], [], AskSettings()).qa_prompts)
    scoring = PartScoring(asked, select_formulas(asked.values()))
    first, again = (
        scoring.compute_scores_of((CHOICE.item_id, "letters", "p/m", draw), WrittenResponse("The answer is C", "stop"))
        for draw in (0, 4)
    )
    assert again[0][1] is first[0][1]


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
    right, wrong = rows_of(items, responses, asked, judgements=judgements)
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


LENGTH, LETTERS_USED = Measure("length", 2, "long", "length 2"), Measure("letters", 1, "letters", "letters 1", "lexicon a")
OTHER = replace(BIRD, item_id="sea_birds/1", cluster="gulls", reference="C")
ITEMS = rows_of_items(OTHER, BIRD, ROWERS)
MEASURES = {item: [LENGTH, LETTERS_USED] for item in ("sea_birds/0", "sea_birds/1", "gsm8k/0")}


def by_length(key: ResponseKey, written: WrittenResponse) -> Sequence[tuple[Measure, ItemScore]]:
    text = written.text or ""
    own = {"draw": key[-1], "cut": written.is_truncated}
    return [
        (LENGTH, ItemScore("ok", len(text) / 10, "counted", ("short",), own)),
        (LETTERS_USED, ItemScore("unparseable", reason="no letter")),
    ]


def test_each_response_has_a_row_per_metric_with_what_is_known_of_its_item() -> None:
    responses = pa.concat_tables([responses_to(BIRD, "abc", finish_reason="length"), responses_to(OTHER, "abcde")])
    rows = score_rows(responses, ITEMS, by_length, MEASURES).to_pylist()
    assert [(row["item_id"], row["metric"], row["value"], row["score"]) for row in rows] == [
        ("sea_birds/0", "long", 0.3, 0.3),
        ("sea_birds/0", "letters", None, 0.0),
        ("sea_birds/1", "long", 0.5, 0.5),
        ("sea_birds/1", "letters", None, 0.0),
    ]
    assert [(row["cluster"], row["truth_id"]) for row in rows[::2]] == [
        ("sea_birds", truth_id(BIRD)),
        ("gulls", truth_id(OTHER)),
    ]
    first, second = rows[:2]
    assert json.loads(first["detail"]) == {"draw": 0, "cut": True}
    assert (first["read_by"], first["flags"], first["scorer_version"], first["measured_by"]) == (
        "counted",
        ["short"],
        2,
        "length 2",
    )
    assert (second["detail"], second["reason"], second["lexicon"], first["lexicon"]) == (None, "no letter", "lexicon a", None)
    assert (first["request_key"], first["model_variant"], first["snapshot"]) == ("key 0", "p/m", "base")


def test_a_call_without_a_response_has_its_state_under_every_metric_and_no_score() -> None:
    responses = pa.concat_tables(
        [
            responses_to(BIRD, None, error="HTTP 500"),
            responses_to(OTHER, "I must not", finish_reason="content_filter"),
            responses_to(ROWERS, None, call_status="budget"),
        ]
    )
    rows = score_rows(responses, ITEMS, by_length, MEASURES).to_pylist()
    assert [row["status"] for row in rows] == ["error", "error", "refused", "refused", "budget", "budget"]
    assert {(row["value"], row["score"]) for row in rows} == {(None, None)}
    assert (rows[0]["reason"], rows[2]["reason"]) == ("HTTP 500", "the provider's content filter stopped the response")


def test_an_empty_response_is_scored_and_no_responses_make_no_rows() -> None:
    (row, _) = score_rows(responses_to(BIRD, ""), ITEMS, by_length, MEASURES).to_pylist()
    assert (row["status"], row["value"]) == ("ok", 0.0)
    assert score_rows(responses_to(BIRD), ITEMS, by_length, MEASURES) == QA_SCORES.empty_table()


def test_texts_of_all_kinds_stand_in_the_detail() -> None:
    odd = {"found": ["ß", "\u2028", "\x00"], "set": {1}}
    made = score_rows(responses_to(BIRD, "a"), ITEMS, lambda *_: [(LENGTH, ItemScore("ok", 1.0, details=odd))], MEASURES)
    assert json.loads(made["detail"][0].as_py()) == {"found": ["ß", "\u2028", "\x00"], "set": "{1}"}


def finding(part: str | None, code: str) -> ItemFinding:
    return ItemFinding("error", code, "f.csv", 3, None, "'E'", "A, B", "it is no letter", part)


LOADED = LoadedItems(
    items=(replace(BIRD, item_id="winds/0", part="winds", cluster="winds"), BIRD, replace(BIRD, item_id="sea_birds/7")),
    findings=(finding("sea_birds", "letter"), finding("winds", "options"), finding(None, "more")),
    examples=(*BIRDS_SHOWN, replace(BIRDS_SHOWN[0], part="winds")),
)


def test_a_part_has_its_own_rows_and_the_findings_that_are_about_all() -> None:
    items, examples, findings = build_item_tables("mmlu", "sea_birds", LOADED, lambda _: ["exact_choice"])
    assert [(row["item_id"], row["position"], row["scorers"]) for row in items.to_pylist()] == [
        ("sea_birds/0", 0, ["exact_choice"]),
        ("sea_birds/7", 1, ["exact_choice"]),
    ]
    assert [(row["part"], row["position"], row["reference"]) for row in examples.to_pylist()] == [
        ("sea_birds", 0, "A"),
        ("sea_birds", 1, "B"),
    ]
    assert [(row["code"], row["part"], row["line"], row["found"]) for row in findings.to_pylist()] == [
        ("letter", "sea_birds", 3, "'E'"),
        ("more", "sea_birds", 3, "'E'"),
    ]


@pytest.mark.parametrize("item", [BIRD, ROWERS, TWICE, KEEPER], ids=lambda item: item.suite)
def test_an_item_is_read_back_as_it_was(item: QaItem) -> None:
    kept = replace(item, flags=("equal_options",), source_line=4, cluster=item.cluster or "somewhere")
    rows = build_item_tables(item.suite, item.part, LoadedItems((kept,)), lambda _: []).qa_items
    assert read_stored_items(rows) == [kept]
    alone = build_item_tables(item.suite, item.part, LoadedItems((replace(item, cluster=""),)), lambda _: []).qa_items
    assert alone["cluster"].to_pylist() == [item.item_id]


def test_examples_are_read_back_in_the_order_of_their_file() -> None:
    rows = build_item_tables("mmlu", "sea_birds", LOADED, lambda _: []).qa_examples
    shuffled = rows.take([1, 0])
    assert read_stored_examples(shuffled, "choice") == list(BIRDS_SHOWN)


def test_what_responses_are_scored_by_is_a_matter_of_type_options_and_reference_alone() -> None:
    same = replace(BIRD, item_id="x", suite="y", part="z", text="Another?", flags=("f",), source_line=9, solution="s")
    assert truth_id(same) == truth_id(BIRD)
    others = [replace(BIRD, reference="C"), replace(BIRD, options=("Tern", "Gannet")), replace(BIRD, type="number")]
    assert len({truth_id(one) for one in (BIRD, *others)}) == 4

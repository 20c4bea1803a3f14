"""The rows of scores: one per response and metric, with the columns of the response and of the item. Items become rows and rows items again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from dtef_pipeline.qa.item_files.item_log import ItemFinding, LoadedItems
from dtef_pipeline.qa.model import ItemScore, QaItem, WrittenResponse
from dtef_pipeline.qa.prompt_rows import build_item_tables, read_stored_examples, read_stored_items, truth_id
from dtef_pipeline.qa.scoring import Measure, score_rows
from dtef_pipeline.qa.tables import QA_SCORES
from tests.made.qa_items import BIRD, BIRDS_SHOWN, KEEPER, ROWERS, TWICE, responses_to, rows_of_items

LENGTH, LETTERS_USED = Measure("length", 2, "long", "length 2"), Measure("letters", 1, "letters", "letters 1", "lexicon a")
OTHER = replace(BIRD, item_id="sea_birds/1", cluster="gulls", reference="C")
ITEMS = rows_of_items(OTHER, BIRD, ROWERS)
MEASURES = {item: [LENGTH, LETTERS_USED] for item in ("sea_birds/0", "sea_birds/1", "gsm8k/0")}


def by_length(place: int, written: WrittenResponse) -> Sequence[tuple[Measure, ItemScore]]:
    text = written.text or ""
    own = {"place": place, "cut": written.is_truncated}
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
    assert json.loads(first["detail"]) == {"place": 0, "cut": True}
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

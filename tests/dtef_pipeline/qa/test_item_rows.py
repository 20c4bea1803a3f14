"""Items become rows and rows items again, with nothing lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dtef_pipeline.qa.item_files.item_log import ItemFinding, LoadedItems
from dtef_pipeline.qa.item_files.item_rows import build_item_tables, read_stored_examples, read_stored_items, truth_id
from dtef_pipeline.qa.model import QaItem
from tests.made.qa_items import BIRD, BIRDS_SHOWN, KEEPER, ROWERS, TWICE


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

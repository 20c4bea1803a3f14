"""What the explorer is given: everything that was said, in pages of bounded size, with long texts cut and told so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dtef_pipeline.qa.latest_scores import latest_scores, qa_snapshot_order
from dtef_pipeline.qa.site.item_entries import RESPONSE_CHARACTERS, ExploredPage, cut, explored_pages
from dtef_pipeline.qa.site.part_rows import PartRows, SuiteTables, part_names, read_part, shown_runs
from dtef_pipeline.report.page_files import packed
from dtef_pipeline.report.stored_rows import StoredRows
from tests.made.qa_pages import connected_qa
from tests.made.qa_scores import night
from tests.made.qa_suites import CHUNK, made_qa
from tests.made.qa_tables import QaMade

LARGE = 10**9


def read(made: QaMade, suite: str, part: str) -> PartRows:
    connection = connected_qa(made.tables(), boards=False)
    rows = StoredRows(connection)
    connection.register("shown", shown_runs(rows, latest_scores(connection), qa_snapshot_order(connection)))
    return read_part(SuiteTables(rows, suite, "shown"), part)


def explored(made: QaMade, suite: str, part: str, most_bytes: int = LARGE) -> list[ExploredPage]:
    return list(explored_pages(read(made, suite, part), most_bytes))


def items(made: QaMade, suite: str, part: str) -> list[dict[str, Any]]:
    return [item for page in explored(made, suite, part) for item in page.data["items"]]


def test_every_response_stands_with_its_item_and_every_score_with_its_response() -> None:
    made = made_qa()
    connection = connected_qa(made.tables(), boards=False)
    found = {name: items(made, *name) for name in part_names(StoredRows(connection))}
    said = [one for own in found.values() for item in own for one in item.get("said", ())]
    assert len(said) == len(made.rows["qa_responses"])
    assert sum(len(one["scores"]) for one in said) == len(made.rows["qa_scores"])
    assert sum(len(one.get("quoted", ())) for one in said) == len(made.rows["qa_citations"])
    assert sum(len(one.get("judged", ())) for one in said) == len(made.rows["qa_judgements"])
    assert sum(len(one.get("run", ())) for one in said) == len(made.rows["qa_executions"])


def test_options_keep_the_order_in_which_each_way_of_asking_showed_them() -> None:
    (page,) = explored(made_qa(), "mmlu", "subject_0")
    first = page.data["items"][0]
    assert page.data["ways"] == ["letters", "letters,rotated-1"]
    assert [asked.get("order") for asked in first["asked"]] == [None, [1, 2, 3, 0]]
    assert first["expected"] == "B"
    rotated = [one for one in first["said"] if one["way"] == 1 and one["model"] == 0]
    assert json.loads(rotated[0]["scores"][0]["detail"]) == {"file_letter": "B", "letter": "A"}


def test_what_has_no_score_keeps_its_reason_and_never_becomes_zero() -> None:
    said = [one for item in items(made_qa(), "gsm8k", "all") for one in item["said"]]
    lost = [score for one in said for score in one["scores"] if score.get("status") == "judge_failed"]
    assert lost
    assert all("score" not in score and score["reason"].startswith("unreadable") for score in lost)
    unread = [score for one in said for score in one["scores"] if score.get("status") == "unparseable"]
    assert [score["score"] for score in unread] == [0.0, 0.0]
    assert {one.get("ended") for one in said} == {None, "length"}


def test_quotations_keep_their_places_in_the_chunk_and_their_reasons() -> None:
    (page,) = explored(made_qa(), "socioscope", "talks")
    item = page.data["items"][0]
    best, worst = item["said"]
    texts = {one["id"]: one["text"] for one in page.data["documents"]}
    exact, nearly = best["quoted"]
    assert texts[exact["doc"]][exact["begin"] : exact["end"]] == exact["quote"]
    assert (exact["found"], nearly["found"], nearly["why"]) == ("exact", "relaxed", "not_found")
    assert CHUNK[nearly["begin"] : nearly["end"]] == "\u201cit was  raining\u201d"
    assert [(one.get("found"), one["why"]) for one in worst["quoted"]] == [(None, "not_found"), (None, "index_out_of_range")]
    assert [chunk["rank"] for chunk in item["asked"][0]["chunks"]] == [0, 1]
    assert item["asked"][0]["chunks"][0]["evidence"] is True


def test_the_tests_of_a_program_are_what_is_expected_of_it() -> None:
    (item,) = items(made_qa(), "humaneval", "all")
    assert item["expected"].startswith("def check(candidate):")
    broken = made_qa()
    for row in broken.rows["qa_items"]:
        if row["suite"] == "humaneval":
            row["reference"] = "{no json"
    assert items(broken, "humaneval", "all")[0]["expected"] == "{no json"


@pytest.mark.parametrize("most_bytes", [1, 3_000, 8_000, LARGE])
def test_pages_hold_all_items_in_order_each_within_its_bound(most_bytes: int) -> None:
    made = made_qa(1, 20)
    pages = explored(made, "mmlu", "subject_0", most_bytes)
    whole = [f"subject_0/{at}" for at in range(20)]
    assert [item["id"] for page in pages for item in page.data["items"]] == whole
    assert [page.first for page in pages] == [sum(other.n_items for other in pages[:at]) for at in range(len(pages))]
    for page in pages:
        size = sum(len(packed(item)) for item in page.data["items"])
        assert size <= most_bytes or page.n_items == 1
    assert (len(pages) == 1) == (most_bytes == LARGE)


def test_a_chunk_of_several_items_stands_on_a_page_once() -> None:
    (page,) = explored(made_qa(), "socioscope", "talks")
    assert [one["id"] for one in page.data["documents"]] == ["one.csv#0.0", "one.csv#1.0"]
    for page in explored(made_qa(), "socioscope", "talks", 1):
        assert len(page.data["documents"]) == 2


def test_a_long_response_is_cut_and_says_how_long_it_was() -> None:
    made = made_qa(1, 1)
    for row in made.rows["qa_responses"]:
        row["response"] = "x" * 1_000_000
    for page in explored(made, "mmlu", "subject_0"):
        for one in page.data["items"][0]["said"]:
            assert one["text"] == ["x" * RESPONSE_CHARACTERS, 1_000_000]
        assert len(packed(page.data)) < 30_000


@pytest.mark.parametrize(("text", "expected"), [(None, None), ("", ""), ("abc", "abc"), ("abcd", ["abc", 4])])
def test_a_text_is_cut_only_where_it_is_longer(text: str | None, expected: Any) -> None:
    assert cut(text, 3) == expected


def test_the_run_that_counts_is_shown_and_a_later_one_of_few_items_is_not() -> None:
    made = made_qa(1, 6)
    for row in list(made.rows["qa_responses"]):
        if row["suite"] == "mmlu" and row["item_id"] == "subject_0/0":
            made.rows["qa_responses"].append({**row, **night(3)})
    for row in list(made.rows["qa_scores"]):
        if row["suite"] == "mmlu" and row["item_id"] == "subject_0/0":
            made.rows["qa_scores"].append({**row, **night(3)})
    (page,) = explored(made, "mmlu", "subject_0")
    assert page.data["snapshots"] == ["base"]


def test_a_response_whose_item_is_no_more_still_stands_there() -> None:
    made = made_qa(1, 2)
    made.rows["qa_items"] = [row for row in made.rows["qa_items"] if row["item_id"] != "subject_0/1"]
    found = items(made, "mmlu", "subject_0")
    assert [item["id"] for item in found] == ["subject_0/0", "subject_0/1"]
    assert found[1]["said"]
    assert "text" not in found[1]


def test_responses_without_a_score_are_shown_all_the_same() -> None:
    made = made_qa(1, 2)
    made.rows["qa_scores"] = [row for row in made.rows["qa_scores"] if row["suite"] != "mmlu"]
    (page,) = explored(made, "mmlu", "subject_0")
    assert all("scores" not in one for item in page.data["items"] for one in item["said"])
    assert sum(len(item["said"]) for item in page.data["items"]) == 8

"""What the explorer is given: every response with how it was read, in files of some items, with long texts cut and sampled."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dtef_pipeline.qa.site import explorer
from dtef_pipeline.qa.site.explorer import RESPONSE_CHARACTERS, is_kept
from dtef_pipeline.qa.site.suite_scores import QaScores
from tests.made.qa_scores import night
from tests.made.qa_suites import CHUNK, connected_qa, data_of, items_of, made_qa, pages_of, view_of
from tests.made.qa_tables import QaMade


def data(made: QaMade) -> dict[str, Any]:
    return data_of(view_of(made, boards=False))


def items(made: QaMade, suite: str) -> list[dict[str, Any]]:
    return items_of(data(made.only(suite)), suite)


@pytest.fixture(scope="module")
def usual() -> dict[str, Any]:
    """The data of `made_qa()`."""
    return data(made_qa())


def index(made: QaMade, suite: str) -> dict[str, Any]:
    found: dict[str, Any] = data(made.only(suite))[f"qa/suites/{suite}/index.js"]
    return found


def test_every_response_stands_with_its_item_and_every_score_with_its_response(usual: dict[str, Any]) -> None:
    made = made_qa()
    said = [
        one for suite in ("mmlu", "gsm8k", "humaneval", "socioscope") for item in items_of(usual, suite) for one in item["said"]
    ]
    assert len(said) == len(made.rows["qa_responses"])
    assert sum(len(one["scores"]) for one in said) == len(made.rows["qa_scores"])
    assert sum(len(one.get("quoted", ())) for one in said) == len(made.rows["qa_citations"])
    assert sum(len(one.get("judged", ())) for one in said) == len(made.rows["qa_judgements"])
    assert sum(len(one.get("run", ())) for one in said) == len(made.rows["qa_executions"])


def test_the_index_lists_items_with_the_score_of_each_model() -> None:
    found = index(made_qa(2, 3), "mmlu")
    assert found["models"] == ["best", "worst"]
    assert found["parts"] == [["subject_0", "Subject 0"], ["subject_1", "Subject 1"]]
    assert found["ids"] == [f"subject_{part}/{at}" for part in range(2) for at in range(3)]
    assert found["part"] == [0, 0, 0, 1, 1, 1]
    labels = ["correct answers, letters", "correct answers, letters, options rotated by 1"]
    assert [label for _, label in found["measures"]] == labels
    assert found["scores"][0] == [[1, 1, 1, 1, 1, 1], [1, 0, 0, 1, 0, 0]]
    assert found["lines"][1] == "What is 1?"


def test_what_could_not_be_read_and_what_has_no_score_are_distinguished_from_zero() -> None:
    found = index(made_qa(1, 4), "gsm8k")
    correct, judged = found["scores"]
    assert [label for _, label in found["measures"]] == ["correct answers", "judged"]
    assert correct == [[1, 1, 1, -1], [0, 0, 0, -1]]
    assert judged == [[0.75, 0.75, 0.75, 0.75], [0.75, -2, 0.75, 0.75]]


def test_options_keep_the_order_in_which_each_way_of_asking_showed_them(usual: dict[str, Any]) -> None:
    first = items_of(usual, "mmlu")[0]
    assert [asked.get("order") for asked in first["asked"]] == [None, [1, 2, 3, 0]]
    assert first["expected"] == "B"
    rotated = [one for one in first["said"] if one["condition"].endswith("rotated by 1") and one["model"] == "best"]
    assert json.loads(rotated[0]["scores"][0]["detail"]) == {"file_letter": "B", "letter": "A"}


def test_what_has_no_score_keeps_its_reason_and_never_becomes_zero(usual: dict[str, Any]) -> None:
    said = [one for item in items_of(usual, "gsm8k") for one in item["said"]]
    lost = [score for one in said for score in one["scores"] if score.get("status") == "judge_failed"]
    assert lost
    assert all("score" not in score and score["reason"].startswith("unreadable") for score in lost)
    unread = [score for one in said for score in one["scores"] if score.get("status") == "unparseable"]
    assert [score["score"] for score in unread] == [0.0, 0.0]
    assert {one.get("ended") for one in said} == {None, "length"}


def test_what_a_judge_wrote_is_kept_where_it_gave_no_score(usual: dict[str, Any]) -> None:
    judged = [one for item in items_of(usual, "gsm8k") for said in item["said"] for one in said["judged"]]
    assert [one.get("raw") for one in judged if "score" in one] == [None] * (len(judged) - 2)
    assert [one["raw"] for one in judged if "score" not in one] == [["high "], ["high "]]
    assert {one.get("self_judged") for one in judged} == {True, None}


def test_quotations_keep_their_places_in_the_chunk_and_their_reasons(usual: dict[str, Any]) -> None:
    item = items_of(usual, "socioscope")[0]
    best, worst = item["said"]
    documents = usual["qa/suites/socioscope/items-1.js"]["documents"]
    exact, nearly = best["quoted"]
    assert documents[exact["doc_id"]]["text"][exact["begin"] : exact["end"]] == exact["quote"]
    assert (exact["exact"], nearly.get("exact"), nearly["relaxed"], nearly["reason"]) == (True, None, True, "not_found")
    assert CHUNK[nearly["begin"] : nearly["end"]] == "\u201cit was  raining\u201d"
    assert [one["reason"] for one in worst["quoted"]] == ["not_found", "index_out_of_range"]
    assert [chunk["rank"] for chunk in item["asked"][0]["chunks"]] == [0, 1]
    assert item["asked"][0]["chunks"][0]["contains_quote"] is True
    assert list(documents) == ["one.csv#0.0", "one.csv#1.0"], "a passage of several items stands once"


def test_the_tests_of_a_program_are_what_is_expected_of_it(usual: dict[str, Any]) -> None:
    (item,) = items_of(usual, "humaneval")
    assert item["expected"].startswith("def check(candidate):")
    broken = made_qa()
    for row in broken.rows["qa_items"]:
        if row["suite"] == "humaneval":
            row["reference"] = "{no json"
    assert items(broken, "humaneval")[0]["expected"] == "{no json"


@pytest.mark.parametrize(("most", "responses"), [(7, 1000), (100, 9)])
def test_files_hold_all_items_in_order_each_within_its_bound(
    most: int, responses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explorer, "FILE_ITEMS", most)
    monkeypatch.setattr(explorer, "FILE_RESPONSES", responses)
    monkeypatch.setattr(explorer, "_BATCH_ITEMS", 6)
    found = data(made_qa(2, 10).only("mmlu"))
    assert [item["id"] for item in items_of(found, "mmlu")] == [f"subject_{part}/{at}" for part in range(2) for at in range(10)]
    size = found["qa/suites/mmlu/index.js"]["size"]
    assert size == min(most, responses // 4)
    assert [len(found[f"qa/suites/mmlu/items-{at}.js"]["items"]) for at in (1, 2)] == [size, size]


def test_a_long_response_is_cut_and_says_how_long_it_was() -> None:
    made = made_qa(1, 1)
    for row in made.rows["qa_responses"]:
        row["response"] = "x" * 1_000_000
    for one in items(made, "mmlu")[0]["said"]:
        assert (one["text"], one["length"]) == ("x" * RESPONSE_CHARACTERS, 1_000_000)


def test_of_too_many_texts_a_sample_of_the_items_is_kept_and_all_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_qa(1, 20).only("mmlu")
    every = items(made, "mmlu")
    assert not any("left_out" in item for item in every)
    monkeypatch.setattr("dtef_pipeline.qa.site.family_site.compute_kept_share", lambda scores: 0.3)
    view = view_of(made, boards=False)
    (section,) = [one for one in pages_of(view)["qa/suites/mmlu.html"].sections if one.id == "items"]
    assert "random sample of 30.0% of the items" in section.answer
    sampled = items_of(data_of(view), "mmlu")
    kept = [item["id"] for item in sampled if "left_out" not in item]
    assert kept == [item["id"] for item in sampled if is_kept("mmlu", item["id"], 0.3)]
    assert 0 < len(kept) < 20
    for item, whole in zip(sampled, every, strict=True):
        assert [one["scores"] for one in item["said"]] == [one["scores"] for one in whole["said"]]
        assert all(("text" in one) == ("left_out" not in item) for one in item["said"])


def test_the_share_that_is_kept_follows_from_the_characters_of_all_texts() -> None:
    made = made_qa(1, 1)
    total = sum(len(row["response"]) for row in made.rows["qa_responses"])
    total += sum(len(row["explanation"] or "") for row in made.rows["qa_judgements"])
    scores = QaScores(connected_qa(made.tables()))
    assert explorer.compute_kept_share(scores) == 1
    assert explorer.compute_kept_share(scores, total) == 1
    assert explorer.compute_kept_share(scores, total // 2) == pytest.approx(total // 2 / total)


def test_a_sample_is_near_its_share_and_grows_with_it() -> None:
    kept = {share: {at for at in range(2_000) if is_kept("mmlu", str(at), share)} for share in (0.1, 0.5, 1.0)}
    assert 150 < len(kept[0.1]) < 250
    assert kept[0.1] < kept[0.5] < kept[1.0]
    assert len(kept[1.0]) == 2_000


def test_the_run_that_counts_is_shown_and_a_later_one_of_few_items_is_not() -> None:
    made = made_qa(1, 6)
    for name in ("qa_responses", "qa_scores"):
        rows = [row for row in made.rows[name] if row["suite"] == "mmlu" and row["item_id"] == "subject_0/0"]
        made.rows[name] += [{**row, **night(3)} for row in rows]
    assert {one["snapshot"] for item in items(made, "mmlu") for one in item["said"]} == {"base"}


def test_a_response_whose_item_is_no_more_still_stands_there() -> None:
    made = made_qa(1, 2).only("mmlu")
    made.rows["qa_items"] = [row for row in made.rows["qa_items"] if row["item_id"] != "subject_0/1"]
    found = data(made)
    first, gone = items_of(found, "mmlu")
    assert (first["id"], gone["id"]) == ("subject_0/0", "subject_0/1")
    assert gone["said"]
    assert "text" not in gone
    assert found["qa/suites/mmlu/index.js"]["lines"][1] == "subject_0/1"


def test_responses_without_a_score_are_shown_all_the_same() -> None:
    made = made_qa(1, 2).only("mmlu")
    made.rows["qa_scores"] = []
    found = data(made)
    said = [one for item in items_of(found, "mmlu") for one in item["said"]]
    assert len(said) == 8
    assert all("scores" not in one for one in said)
    assert found["qa/suites/mmlu/index.js"]["models"] == ["best", "worst"]
    assert found["qa/suites/mmlu/index.js"]["scores"] == []


def test_the_order_of_rows_changes_nothing() -> None:
    made, turned = made_qa(1, 3), made_qa(1, 3)
    for rows in turned.rows.values():
        rows.reverse()
    assert data(made) == data(turned)

"""What questions show on the site: boards, verdict, suites, strengths and weaknesses of a model, and nothing that a model wrote as markup."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from dtef_pipeline.qa.site.family_site import read
from dtef_pipeline.site.content import Estimate, Fold, Link, Page, Section, Table, is_unknown
from dtef_pipeline.site.family_content import ITEM_COLUMNS, FamilyContent
from tests.dtef_pipeline.site.made_site import unpacked
from tests.made.qa_suites import connected_qa, data_of, items_of, made_qa, pages_of, qa_site_files, view_of
from tests.made.qa_tables import HOSTILE_WORDS, QaMade, changed
from tests.made.read_page import ReadPage

SUITES = ("gsm8k", "humaneval", "mmlu", "socioscope")


@pytest.fixture(scope="module")
def view() -> FamilyContent:
    return view_of(made_qa(3, 4))


@pytest.fixture(scope="module")
def pages(view: FamilyContent) -> dict[str, Page]:
    return pages_of(view)


@pytest.fixture(scope="module")
def alone() -> FamilyContent:
    """Of one model."""
    return view_of(one_model(made_qa(1, 4)))


def section(sections: Any, id: str) -> Section:
    (found,) = [one for one in sections if one.id == id]
    return found


def rows(found: Section) -> list[dict[str, Any]]:
    tables = [one for block in found.blocks for one in (block.blocks if isinstance(block, Fold) else [block])]
    return [dict(row) for block in tables if isinstance(block, Table) for row in block.rows]


def one_model(made: QaMade) -> QaMade:
    for name, own in made.rows.items():
        made.rows[name] = [row for row in own if row.get("model") != "worst"]
    return made


def test_every_suite_way_and_metric_with_a_score_has_a_board_with_a_human_title(view: FamilyContent) -> None:
    assert [(board.id, board.title) for board in view.boards] == [
        ("gsm8k", "GSM8K"),
        ("gsm8k-2", "GSM8K: judged"),
        ("humaneval", "HumanEval"),
        ("mmlu", "MMLU, letters"),
        ("mmlu-2", "MMLU, letters, options rotated by 1"),
        ("socioscope", "Socioscope, BM25, 2 passages"),
        ("socioscope-2", "Socioscope, BM25, 2 passages: exact quotations"),
    ]
    assert view.boards[3].measure == "Share of correct answers, 0-1, higher is better; public for long"
    assert "Answers are scored by the judge jury." in view.boards[1].guide


def test_a_board_has_ranks_coverage_and_only_columns_that_say_something(view: FamilyContent) -> None:
    judged = view.boards[1]
    best, worst = judged.rows
    assert (best.model, best.rank, best.score.value) == ("best", 1, 0.75)
    assert (worst.model, worst.rank, worst.more["coverage"]) == ("worst", None, 0.75)
    assert worst.note.endswith("not ranked: it has scores for 3 of 4 items, at least 9 of 10 are needed")
    assert [column.name for column in judged.columns] == ["n_items", "coverage"]
    assert "parse_rate" in [column.name for column in view.boards[0].columns], "an answer was cut"
    assert "macro" in [column.name for column in view.boards[3].columns], "subjects have several items"


def test_the_verdict_counts_suites_and_says_where_tests_tell_the_best_apart(view: FamilyContent) -> None:
    assert view.verdict == (
        "best is best in all 4 suites (GSM8K 0.750, HumanEval 1.000, MMLU 1.000, Socioscope 1.000), "
        "but tests do not separate it from the next."
    )
    assert view_of(made_qa(8, 4)).verdict.endswith("ahead of every other model in 1 of these.")


def test_different_winners_are_reported_by_model_and_equal_models_share_the_first_place() -> None:
    made = made_qa(1, 4)
    for row in made.rows["qa_scores"]:
        if row["suite"] in ("mmlu", "gsm8k"):
            row["score"] = row["value"] = 1.0 - row["score"] if row["suite"] == "mmlu" else 0.5
    verdict = view_of(made).verdict
    assert "best is best in 2 of 4 suites (HumanEval 1.000, Socioscope 1.000), but tests do not" in verdict
    assert "worst is best in 1 of 4 suites (MMLU 0.750)" in verdict
    assert "best and worst share the first place in 1 of 4 suites (GSM8K 0.5" in verdict


def test_one_model_is_reported_by_its_numbers(alone: FamilyContent) -> None:
    verdict = alone.verdict
    assert verdict.startswith(
        "best is the only ranked model: GSM8K 0.750 (0.301 to 0.954), HumanEval 1.000 (0.207 to 1.000), MMLU"
    )
    assert section(alone.build_model_sections("best"), "parts").answer == ""


def test_suites_with_one_model_each_name_the_only_one_of_each() -> None:
    made = made_qa(1, 4)
    made.rows["qa_scores"] = [row for row in made.rows["qa_scores"] if (row["model"] == "worst") == (row["suite"] == "mmlu")]
    verdict = view_of(made).verdict
    assert verdict.startswith("best is the only ranked model in 3 of 4 suites (GSM8K 0.750 (")
    assert "; worst is the only ranked model in 1 of 4 suites (MMLU 0." in verdict


def test_one_suite_is_reported_as_its_board() -> None:
    assert view_of(made_qa(1, 4).only("mmlu")).verdict.startswith("On MMLU, best of 2 models: best scores 1.000")


def test_the_list_of_suites_leads_to_their_pages(view: FamilyContent, pages: dict[str, Page]) -> None:
    found = section(view.sections, "suites")
    assert found.answer == "4 suites with 21 items: each page opens every item. Answers of 1 may be in training data."
    assert [row["suite"] for row in rows(found)][2] == Link("MMLU", "qa/suites/mmlu.html")
    assert [row["parts"] for row in rows(found)] == [1, 1, 3, 1]
    assert set(pages) == {f"qa/suites/{suite}.html" for suite in SUITES}


def test_checks_of_validity_stand_in_words_those_to_look_into_first(view: FamilyContent) -> None:
    found = section(view.sections, "validity")
    assert found.answer.endswith("1 of 2 checks. Order of the options moves the mean (best, 0.25).")
    assert [(row["check"], row["is_suspect"]) for row in rows(found)] == [
        ("Order of the options moves the mean", True),
        ("Judged by a model of the same maker", False),
    ]
    assert found.blocks[0].columns[3].value_in(rows(found)[0]) == Estimate(0.25, 0.1, 0.4)


def test_programs_have_pass_at_k_of_as_many_draws_as_there_are(view: FamilyContent) -> None:
    found = section(view.sections, "pass-at-k")
    assert found.answer == "Best at k = 1: best, 1.000."
    assert {row["k"] for row in rows(found)} == {1}, "no item has 5 draws"


def test_a_page_of_a_suite_shows_parts_by_models_the_hardest_first() -> None:
    made = made_qa(2, 4).only("mmlu")
    for row in made.rows["qa_scores"]:
        if row["part"] == "subject_1" and row["model"] == "best" and row["item_id"] in ("subject_1/0", "subject_1/1"):
            row["score"] = row["value"] = 0.0
    page = pages_of(view_of(made))["qa/suites/mmlu.html"]
    assert page.introduction == "Public for long."
    found = section(page.sections, "by-part")
    assert found.answer == "Hardest: Subject 1, 0.375 on average; easiest: Subject 0, 0.625."
    assert [(row["place"].text, row["m0"], row["m1"]) for row in rows(found)[:2]] == [
        ("Subject 1", 0.5, 0.25),
        ("Subject 0", 1.0, 0.25),
    ]
    assert rows(found)[0]["place"].href == "qa/suites/mmlu.html#part=subject_1"
    assert found.blocks[0].shades == (0.25, 1.0)


def test_transcripts_stand_by_name_and_one_that_nobody_cites_has_no_score(pages: dict[str, Page]) -> None:
    found = section(pages["qa/suites/socioscope.html"].sections, "by-cluster")
    first, second, _, uncited = rows(found)
    assert [(row["place"], row["m0"], row["m1"]) for row in (first, second)] == [("one.csv", 1.0, 0.0), ("two.csv", 1.0, 0.0)]
    assert found.blocks[1].title == "Socioscope, BM25, 2 passages: exact quotations"
    assert (uncited["place"], uncited["m0"], is_unknown(uncited["m1"])) == ("two.csv", 0.5, True)
    retrieval = section(pages["qa/suites/socioscope.html"].sections, "retrieval")
    assert retrieval.answer.startswith("100% of the questions")
    assert rows(retrieval)[0]["precision"] == 0.5


def test_the_list_of_items_counts_those_that_no_model_and_every_model_is_right_on(
    pages: dict[str, Page], alone: FamilyContent
) -> None:
    def answer(pages: dict[str, Page], suite: str) -> str:
        return section(pages[f"qa/suites/{suite}.html"].sections, "items").answer

    assert answer(pages, "gsm8k").endswith("No model is right on 1 of them, every model on 0.")
    assert answer(pages, "mmlu").endswith("No model is right on 0 of them, every model on 3.")
    assert answer(pages_of(alone), "mmlu") == "4 items: open one to see what each model answered."


def test_a_model_is_seen_against_the_mean_of_the_others(view: FamilyContent) -> None:
    found = section(view.build_model_sections("worst"), "parts")
    assert found.answer == "Largest lead over other models: MMLU: Subject 0 (-0.750); smallest: Socioscope (-1.000)."
    by_place = {row["part"].text: row for row in rows(found)}
    assert list(by_place) == ["MMLU: Subject 0", "MMLU: Subject 1", "MMLU: Subject 2", "GSM8K", "Socioscope"]
    own = by_place["MMLU: Subject 1"]
    assert (own["score"], own["others"], own["lead"], own["rank"]) == (0.25, 1.0, -0.75, 2)


def test_the_worst_items_of_a_model_have_prompt_and_response(view: FamilyContent) -> None:
    found = section(view.build_model_sections("worst"), "worst")
    assert "the other models score 1.000" in found.answer
    mmlu = [row for row in rows(found) if row["item"].text.startswith("MMLU")]
    assert [row["item"].text for row in mmlu] == ["MMLU subject_0/1", "MMLU subject_0/2", "MMLU subject_0/3"]
    assert (mmlu[0]["question"], mmlu[0]["expected"], mmlu[0]["response"], mmlu[0]["others"]) == ("What is 1? ", "B", "D ", 1.0)
    assert [row["item"].text for row in rows(section(view.build_model_sections("best"), "worst"))] == ["GSM8K gsm8k/3"]
    assert all(one.is_empty for one in view.build_model_sections("nobody"))


def test_items_are_scored_by_the_main_measure_and_lead_to_the_explorer(view: FamilyContent) -> None:
    found = view.item_scores
    assert list(found.columns) == list(ITEM_COLUMNS)
    own = found[found["item"] == "mmlu/subject_2/subject_2/3"].set_index("model")
    assert own["score"].to_dict() == {"best": 1.0, "worst": 0.0}
    assert own["page"].unique().tolist() == ["qa/suites/mmlu.html#item=subject_2%2F3"]
    assert own["label"].unique().tolist() == ["MMLU: What is 3?"]
    assert len(found[found["model"] == "worst"]) == 4 + 12 + 4, "its program has no score"


def test_one_name_of_two_variants_is_reported_by_the_variant() -> None:
    made = made_qa(1, 4).only("mmlu")
    for own in made.rows.values():
        for row in own:
            if row.get("model") == "worst":
                row["model"] = "best"
    view = view_of(made)
    names = {"best[temperature=0]", "worst[temperature=0]"}
    assert {row.model for row in view.boards[0].rows} == names
    assert view.variants == {name: name for name in names}
    assert rows(section(view.build_model_sections("worst[temperature=0]"), "worst"))


def test_data_says_what_was_asked_what_is_public_and_what_was_set_aside() -> None:
    made = made_qa(1, 4).only("mmlu")
    finding = {"suite": "mmlu", "part": "subject_0", "file": "law.csv", "line": 7}
    made.add("qa_findings", **finding, level="error", code="bad-letter", text=f"E is no letter {HOSTILE_WORDS}")
    made.add("qa_findings", **finding, level="warning", code="equal-options", text="two options are equal")
    suites, findings = view_of(made).data
    assert suites.answer == "1 suite with 4 items: each page opens every item. Answers of 1 may be in training data."
    assert [row["exposure"] for row in rows(suites)] == ["public for long"]
    assert findings.answer == "1 row of files left out, 1 warning."
    assert [(row["level"], row["where"]) for row in rows(findings)] == [
        ("error", "MMLU, Subject 0"),
        ("warning", "MMLU, Subject 0"),
    ]


@pytest.mark.parametrize("kept", [{"qa_scores"}, {"qa_scores", "qa_items"}, {"qa_scores", "qa_responses"}])
def test_what_is_missing_is_left_out(kept: set[str]) -> None:
    tables = {name: rows for name, rows in made_qa(1).tables().items() if name in kept}
    view = read(connected_qa(tables, boards=False))
    assert "`dtef qa board --refresh`" in view.verdict
    assert view.boards == []
    pages = pages_of(view)
    assert set(pages) == {f"qa/suites/{suite}.html" for suite in SUITES}
    assert pages["qa/suites/mmlu.html"].answer == "4 items; no model is on a board yet."
    assert [one.id for one in view.sections if not one.is_empty] == ["suites"]
    assert view.build_model_sections("best")


def test_a_suite_without_responses_has_a_page_with_its_items() -> None:
    made = made_qa(1, 2).only("mmlu")
    made.item("new", "all", "new/0", text="What?", options=["a", "b"], reference="A")
    files = data_of(view_of(made, boards=False))
    index = files["qa/suites/new/index.js"]
    assert (index["ids"], index["models"], index["scores"]) == (["new/0"], [], [])
    (item,) = files["qa/suites/new/items-1.js"]["items"]
    assert (item["text"], item["options"], item["expected"]) == ("What?", ["a", "b"], "A")
    assert files["qa/suites/new/words.js"] == ["What? a b"]


def test_boards_of_a_suite_that_is_no_more_are_left_out() -> None:
    connection = connected_qa(made_qa(1, 1).tables())
    for name in ("qa_scores", "qa_items", "qa_responses"):
        rest = connection.sql(f"SELECT * FROM {name} WHERE suite <> 'mmlu'").to_arrow_table()
        connection.unregister(name)
        connection.register(name, rest)
    view = read(connection)
    assert not [board for board in view.boards if "MMLU" in board.title]
    assert "MMLU" not in view.verdict


def test_boards_that_differ_in_what_they_are_measured_by_are_distinguished() -> None:
    made = made_qa(1, 4).only("mmlu")
    made.rows["qa_scores"] += [{**row, "measured_by": "exact_choice 2"} for row in made.rows["qa_scores"]]
    titles = [board.title for board in view_of(made).boards if board.title.startswith("MMLU, letters,")]
    assert titles[:2] == [f"MMLU, letters, by the option that was chosen (version {at})" for at in (1, 2)]


def test_a_metric_without_any_score_is_stated_once_and_has_no_board() -> None:
    made = made_qa(1, 4).only("socioscope")
    for row in made.rows["qa_scores"]:
        if row["metric"] == "existence":
            row |= {"score": None, "value": None, "status": "missing", "reason": "the response cites nothing"}
    view = view_of(made)
    assert not [board for board in view.boards if "quotations" in board.title]
    (prose,) = section(view.sections, "unscored").blocks
    assert [text.partition(": no score")[0] for text in prose.paragraphs] == ["Socioscope, BM25, 2 passages: exact quotations"]


def test_hostile_text_of_models_and_files_stays_text() -> None:
    usual, hostile = qa_site_files(made_qa(1)), qa_site_files(made_qa(1, words=HOSTILE_WORDS))
    assert set(usual) == set(hostile)
    for path in usual:
        if path.endswith(".html"):
            kinds, expected = (Counter(tag for tag, _ in ReadPage(files[path]).elements) for files in (hostile, usual))
            assert kinds == expected, path
            assert not any(name.startswith("on") for _, attributes in ReadPage(hostile[path]).elements for name in attributes)
    data = {path: unpacked(text) for path, text in hostile.items() if path.startswith("qa/suites/mmlu/")}
    assert HOSTILE_WORDS in items_of(data, "mmlu")[0]["text"]
    assert HOSTILE_WORDS in items_of(data, "mmlu")[0]["said"][0]["text"]


def test_hostile_names_stay_text_and_make_plain_files() -> None:
    names = {
        name: f"{name}{HOSTILE_WORDS}"
        for name in ("mmlu", "subject_0", "best", "letters", "correct", "exact_choice 1", "base", "one.csv", "subject_0/1")
    }
    columns = [
        "suite",
        "part",
        "model",
        "model_variant",
        "condition",
        "metric",
        "measured_by",
        "snapshot",
        "cluster",
        "item_id",
    ]
    files = qa_site_files(changed(made_qa(1), lambda text: names.get(text, text), columns))
    for path, text in files.items():
        assert re.fullmatch(r"[A-Za-z0-9_./-]+\.(html|js|css)", path)
        if path.endswith(".html"):
            assert "<script>window.hacked" not in text
            assert not any(name.startswith("on") for _, attributes in ReadPage(text).elements for name in attributes)
    (page,) = [path for path in files if path.startswith("qa/suites/mmlu") and path.endswith(".html")]
    assert json.dumps(HOSTILE_WORDS)[1:-1] not in files[page]

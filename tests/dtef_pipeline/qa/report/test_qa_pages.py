"""The pages of the qa family: whole, without network, and with everything from data as text."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dtef_pipeline.drift.verdict_tables import DRIFT, DRIFT_SERIES
from dtef_pipeline.qa.report.index_page import counts_of, histogram
from dtef_pipeline.qa.report.part_page import files_of_parts, qa_pages
from dtef_pipeline.report.svg import CHART_STYLE
from tests.made.qa_pages import connected_qa, qa_pages_of
from tests.made.qa_suites import made_qa
from tests.made.qa_tables import HOSTILE_WORDS, QaMade, changed
from tests.made.read_page import ReadPage, check_pages

ELEMENTS = set(
    re.findall(
        r"\w+",
        "a article bdi body br button caption code dd details div dl dt figcaption figure h1 h2 h3 head header html input label li main"
        " meta nav noscript ol option p script section select span strong style summary table tbody td th thead title tr ul wbr"
        " svg g rect line text circle",
    )
)
PARTS = ["gsm8k__all", "humaneval__all", "mmlu__subject_0", "mmlu__subject_1", "socioscope__talks"]


@pytest.fixture(scope="module")
def made() -> QaMade:
    return made_qa(2)


@pytest.fixture(scope="module")
def pages(made: QaMade) -> dict[str, str]:
    return qa_pages_of(made)


@pytest.fixture(scope="module")
def small_pages() -> dict[str, str]:
    """Pages of as few items as there can be."""
    return qa_pages_of(made_qa(1), most_bytes=1)


def section_of(page: str, anchor: str) -> str:
    """The text of a section."""
    found = re.search(rf'<section id="{anchor}".*?</section>', page, re.DOTALL)
    assert found
    return ReadPage(found[0]).text


def test_the_index_comes_first_and_each_part_has_a_page(pages: dict[str, str]) -> None:
    assert list(pages) == ["index.html", *(f"{part}.html" for part in PARTS)]
    assert {link for link in ReadPage(pages["index.html"]).links if not link.startswith("#")} == set(pages) - {"index.html"}
    assert all("index.html" in ReadPage(page).links for name, page in pages.items() if name != "index.html")


def test_equal_tables_in_another_order_give_equal_pages(small_pages: dict[str, str]) -> None:
    tables = made_qa(1).tables()
    turned = {name: rows.take(list(range(len(rows)))[::-1]) if len(rows) else rows for name, rows in tables.items()}
    assert dict(qa_pages(connected_qa(turned), most_bytes=1)) == small_pages


@pytest.mark.parametrize("kept", ["pages", "small_pages"])
def test_pages_keep_the_rules_of_all_pages_and_lead_nowhere_outside(kept: str, request: pytest.FixtureRequest) -> None:
    pages = request.getfixturevalue(kept)
    check_pages(pages, ELEMENTS)
    assert not [link for page in pages.values() for link in ReadPage(page).links if link.startswith("http")]


def test_many_items_take_several_pages_that_link_each_other(small_pages: dict[str, str]) -> None:
    own = [name for name in small_pages if name.startswith("mmlu__subject_0")]
    assert own == ["mmlu__subject_0.html", *(f"mmlu__subject_0.items-{at}.html" for at in (2, 3, 4))]
    assert "items 2 to 2" in ReadPage(small_pages[own[0]]).text
    assert all({f"{name}#items" for name in own} <= set(ReadPage(small_pages[name]).links) for name in own)


def test_boards_stand_by_suite_with_micro_macro_and_exposure(pages: dict[str, str]) -> None:
    text = section_of(pages["index.html"], "boards")
    assert "Public for long." in text
    assert {"gsm8k", "humaneval", "mmlu", "socioscope"} <= set(re.findall(r"\w+", text))
    assert "correct, asked as letters,rotated-1 measured by exact_choice 1" in text
    assert "Macro" in text


def test_bars_stand_by_subject_and_by_transcript_and_what_has_no_score_has_none(pages: dict[str, str]) -> None:
    section = re.search(r'<section id="bars".*?</section>', pages["index.html"], re.DOTALL)
    assert section
    text = ReadPage(section[0]).text
    assert "mmlu, by subject" in text
    assert "socioscope, by transcript" in text
    assert text.count("n = 4") >= 2 * 2 * 2
    worst = re.search(r"<summary><h3><bdi>worst</bdi>: <bdi>existence</bdi>.*?</details>", section[0], re.DOTALL)
    assert worst
    assert "No score:" in worst[0]
    assert "two.csv (n = 0)" in worst[0]
    assert worst[0].count('class="bar"') == 1
    assert "svg .bar" in CHART_STYLE


def test_tables_beside_the_boards_are_there(pages: dict[str, str]) -> None:
    page = pages["index.html"]
    assert "no item has 5 scored draws" in section_of(page, "pass-at-k")
    assert "worst" in section_of(page, "comparisons")
    checked = section_of(page, "validity")
    assert checked.index("position bias") < checked.index("self judged")
    assert "look into it" in checked
    assert "0.500" in section_of(page, "retrieval")
    assert "2 scores, 2 without" in section_of(page, "quality")
    judges = section_of(page, "judge-drift")
    assert "drift" in judges
    assert "flagged" in judges
    assert "-0.30 to -0.10" in judges
    costs = section_of(page, "costs")
    assert "0.7500" not in costs
    assert {"0.2500", "0.5000"} <= set(re.findall(r"\d\.\d{4}", costs))


def test_without_boards_each_part_of_the_index_says_what_makes_it(made: QaMade) -> None:
    tables = {name: rows for name, rows in made.tables().items() if name in ("qa_scores", "qa_items")}
    pages = dict(qa_pages(connected_qa(tables, boards=False)))
    text = ReadPage(pages["index.html"]).text
    for words in (
        "No boards yet",
        "No bars",
        "No programs yet",
        "Nothing to compare",
        "Nothing was checked",
        "No costs yet",
        "No drift to show",
    ):
        assert words in text
    assert set(pages) == {"index.html", *(f"{part}.html" for part in PARTS)}


def test_a_part_without_responses_has_a_page_with_its_items(made: QaMade) -> None:
    alone = QaMade()
    alone.item("mmlu", "new", "new/0", text="What?", options=["a", "b"], reference="A")
    alone.rows["qa_scores"] = made.rows["qa_scores"]
    pages = dict(qa_pages(connected_qa(alone.tables(), boards=False)))
    data = explorer_data(pages["mmlu__new.html"])
    assert [item["id"] for item in data["items"]] == ["new/0"]
    assert data["models"] == []


def explorer_data(page: str) -> Any:
    (held,) = re.findall(r'<script type="application/json" id="explorer-data">(.*?)</script>', page, re.DOTALL)
    return json.loads(held)


def test_hostile_text_of_models_and_files_stays_text(pages: dict[str, str]) -> None:
    for name, page in qa_pages_of(made_qa(2, words=HOSTILE_WORDS)).items():
        read, usual = ReadPage(page), ReadPage(pages[name])
        kinds, expected = (Counter(tag for tag, _ in page.elements if tag != "wbr") for page in (read, usual))
        assert kinds == expected, name
        assert read.comments == []
        assert not any(name.startswith("on") for _, attributes in read.elements for name in attributes)
        if name != "index.html":
            assert HOSTILE_WORDS in json.dumps(explorer_data(page), ensure_ascii=False).replace('\\"', '"')


def test_hostile_names_stay_text_and_make_plain_files() -> None:
    names = {
        name: f"{name}{HOSTILE_WORDS}"
        for name in ("mmlu", "subject_0", "best", "letters", "correct", "exact_choice 1", "base", "one.csv")
    }
    made = changed(
        made_qa(1),
        lambda text: names.get(text, text),
        ("suite", "part", "model", "model_variant", "condition", "metric", "measured_by", "snapshot", "cluster"),
    )
    pages = qa_pages_of(made)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+\.html", name) for name in pages)
    for page in pages.values():
        read = ReadPage(page)
        assert {tag for tag, _ in read.elements} <= ELEMENTS
        assert not any(name.startswith("on") for _, attributes in read.elements for name in attributes)
        assert not any("window.hacked" in script for script in read.scripts if "addEventListener" in script)


def test_names_of_parts_never_share_a_file() -> None:
    parts = [
        ("a", "b"),
        ("a__b", "c"),
        ("a", "b__c"),
        ("A", "b"),
        ("a/b", "c"),
        ("a", "b/c"),
        ("x_", "y"),
        ("x", "_y"),
        ("..", ".."),
        ("index", ""),
    ]
    files = files_of_parts(parts)
    assert len({name.lower() for name in files.values()}) == len(parts)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.html", name) for name in files.values())


def test_scores_fall_into_ten_classes_of_which_the_last_has_the_one() -> None:
    scores = np.array([0.0, 0.05, 0.1, 0.95, 1.0, np.nan])
    assert counts_of(scores) == [2, 1, 0, 0, 0, 0, 0, 0, 0, 2]
    assert "5 scores, 1 without" in histogram(scores, "m")
    assert "no data" in histogram(np.array([np.nan]), "m")


def test_costs_without_judges_have_no_empty_part_on_evaluators(made: QaMade, pages: dict[str, str]) -> None:
    tables = {name: rows for name, rows in made.tables().items() if name in ("qa_scores", "qa_items", "costs")}
    tables["costs"] = tables["costs"].filter(pc.is_null(tables["costs"]["purpose"]))
    costs = section_of(dict(qa_pages(connected_qa(tables, boards=False)))["index.html"], "costs")
    assert "Costs by evaluator" in section_of(pages["index.html"], "costs")
    assert "Costs by evaluator" not in costs
    assert "Costs by model and suite" in costs


def test_judged_scores_that_moved_stand_with_what_is_left_net_of_the_judge(made: QaMade) -> None:
    told = "net of the judge: -0.2000; <b>on the same stored answers</b> the judge moved by -0.1000"
    row = {"model": "best", "model_variant": "best[]", "way": "plain, judged by judge 1"}
    known = {"verdict": "drift", "shift": -0.3, "net_shift": -0.2, "net_low": -0.25, "net_high": -0.15}
    rest = {"family": "qa", "partitions": ["s"], "reason": "r", "judges_note": told, "changes": [], "n_snapshots": 3}
    drift = pa.Table.from_pylist([{**row, **known, **rest}], schema=DRIFT)
    tables = {name: rows for name, rows in made.tables().items() if name in ("qa_scores", "qa_items")}
    tables |= {"drift": drift, "drift_series": DRIFT_SERIES.empty_table()}
    page = dict(qa_pages(connected_qa(tables, boards=False)))["index.html"]
    text = section_of(page, "drift")
    assert "Judged scores that moved, net of the judge" in text
    assert told in text
    assert "-0.250 to -0.150" in text

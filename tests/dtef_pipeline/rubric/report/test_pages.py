from __future__ import annotations

import re
from collections import Counter

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.rubric.report.pages import rubric_pages
from dtef_pipeline.tables import COSTS
from tests.made.hostile_rubrics import hostile_tables, with_summary
from tests.made.read_page import ReadPage, check_pages
from tests.made.rubric_pages import RubricTables, connected, made_tables, pages_of

ALLOWED_ELEMENTS = set(
    re.findall(
        r"\w+",
        "a article bdi blockquote body br button caption code datalist dd details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6"
        " head header hr html i input label li main meta nav ol option output p pre s"
        " script section span strong style summary table tbody td th thead title tr ul"
        " wbr",
    )
)
PAGE = "health__topic-0.html"


@pytest.fixture(scope="module")
def made() -> RubricTables:
    return made_tables()


@pytest.fixture(scope="module")
def pages(made: RubricTables) -> dict[str, str]:
    return pages_of(made)


def test_the_index_comes_first_and_each_blueprint_has_a_page(pages: dict[str, str]) -> None:
    assert list(pages) == ["index.html", "health__topic-0.html", "health__topic-1.html", "health__topic-2.html"]
    assert {link for link in ReadPage(pages["index.html"]).links if not link.startswith("#")} == set(pages) - {"index.html"}
    assert all("index.html" in ReadPage(page).links for name, page in pages.items() if name != "index.html")


def test_equal_tables_in_another_order_give_equal_pages(made: RubricTables, pages: dict[str, str]) -> None:
    turned = {name: rows.take(list(range(len(rows)))[::-1]) if len(rows) else rows for name, rows in made.tables().items()}
    assert dict(rubric_pages(connected(turned))) == pages


@pytest.mark.parametrize("most_bytes", [1, 10_000_000])
def test_pages_keep_the_rules_of_all_pages(made: RubricTables, most_bytes: int) -> None:
    check_pages(pages_of(made, most_bytes=most_bytes), ALLOWED_ELEMENTS)


def test_every_judgement_stands_on_the_page_whether_the_criterion_is_met_or_not(
    made: RubricTables, pages: dict[str, str]
) -> None:
    judgements = [row for row in made.rows["rubric_judgements"] if row["blueprint"] == "health__topic-0"]
    page = pages[PAGE]
    shown = Counter(re.findall(r'<span class="class">([a-z ]+)</span>', page))
    expected = Counter(
        row["class"].removeprefix("CLASS_").lower().replace("_", " ") for row in judgements if row["class"] is not None
    )
    assert shown == expected
    assert len(shown) == 5
    lost = [row for row in judgements if row["class"] is None]
    assert lost
    assert page.count("no verdict: unreadable") == len(lost)
    assert page.count("What the judge wrote") == len(lost)
    text = ReadPage(page).text
    assert all(row["reflection"] is None or row["reflection"] in text for row in judgements)


def test_a_point_of_some_judges_is_marked_with_its_bounds(made: RubricTables, pages: dict[str, str]) -> None:
    points = [row for row in made.rows["rubric_points"] if row["blueprint"] == "health__topic-0"]
    partial = [row for row in points if row["partial"]]
    assert partial
    text = ReadPage(pages[PAGE]).text
    assert text.count("partial: 1 of 2 judges, between") == len(partial)
    one = partial[0]
    assert f"between {one['low']:.2f} and {one['high']:.2f}" in text


def test_unscored_says_why_and_is_never_a_zero() -> None:
    made = made_tables(1, 2, 1)
    for row in made.rows["rubric_judgements"]:
        row |= {"class": None, "score": None, "reason": "declined"}
    for row in made.rows["rubric_points"]:
        if row["kind"] == "text":
            row |= {"score": None, "partial": False, "reason": "declined", "n_answered": 0}
    page = pages_of(made)[PAGE]
    text = ReadPage(page).text
    assert text.count("unscored: declined") == 2 * 4
    assert text.count("no verdict: declined") == 2 * 4 * 2
    assert ">0.00<" not in page


def test_a_failed_response_says_what_happened(pages: dict[str, str]) -> None:
    text = ReadPage(pages[PAGE]).text
    assert "error: 503 Service Unavailable" in text
    assert "cut by the limit of tokens" in text
    assert "Unscored: error." in text


def test_functions_say_what_they_found_and_repairs_what_was_written(pages: dict[str, str]) -> None:
    text = ReadPage(pages[PAGE]).text
    assert "found 1 of 1: Sleep loss" in text
    assert "written as $icontains: 'physician'" in text
    assert '$icontains("physician")' in text


def test_the_transcript_stands_where_the_model_wrote_several_turns(pages: dict[str, str]) -> None:
    page = pages[PAGE]
    assert page.count("Transcript of 2 turns by the model") == 4
    assert "Transcript of 1 turn" not in page


def test_the_latest_run_is_shown_unless_another_is_given() -> None:
    made = made_tables(1, 2, 1, snapshots=("2026-01-02", "2026-01-10"))
    for row in made.rows["rubric_responses"]:
        row["text"] = f"said on {row['snapshot']}"
    latest, first = pages_of(made), pages_of(made, snapshot="2026-01-02")
    assert "said on 2026-01-10" in latest[PAGE]
    assert "said on 2026-01-02" not in latest[PAGE]
    assert "said on 2026-01-02" in first[PAGE]
    assert "said on 2026-01-10" not in first[PAGE]
    assert "not run yet" in pages_of(made, snapshot="2030-01-01")[PAGE]


def test_before_any_run_prompts_and_criteria_can_be_read() -> None:
    tables = made_tables(1, 2, 2).tables()
    kept = ("rubric_blueprints", "rubric_prompts", "rubric_criteria", "rubric_findings")
    text = ReadPage(dict(rubric_pages(connected({name: tables[name] for name in kept})))[PAGE]).text
    assert "1. Says that attention and memory suffer within a day." in text
    assert text.count("No responses in this run.") == 2
    assert "not run yet" in text


def test_prompts_that_are_too_large_for_one_page_have_their_own(made: RubricTables, pages: dict[str, str]) -> None:
    apart = pages_of(made, most_bytes=10_000)
    names = [name for name in apart if name.startswith("health__topic-0")]
    assert names == [PAGE, *(f"health__topic-0.prompt-{at}.html" for at in (1, 2, 3))]
    assert len(apart[PAGE]) < len(pages[PAGE]) / 2
    assert "no verdict" not in apart[PAGE]
    assert sum(apart[name].count('class="response"') for name in names) == pages[PAGE].count('class="response"') == 12


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(name, marks=() if name in ("rubric_scores", "rubric_judgements") else pytest.mark.thorough)
        for name, rows in made_tables(1, 2, 1).tables().items()
        if len(rows)
    ],
)
def test_without_a_table_the_rest_is_shown(gone: str) -> None:
    tables = made_tables(1, 2, 1).tables()
    pages = dict(rubric_pages(connected({name: rows for name, rows in tables.items() if name != gone})))
    assert list(pages) == ["index.html", PAGE]
    assert all("Traceback" not in page for page in pages.values())
    if gone == "rubric_scores":
        assert "makes the table rubric_scores" in pages["index.html"]


def test_without_any_table_the_index_says_what_makes_them() -> None:
    ((name, page),) = rubric_pages(duckdb.connect())
    text = ReadPage(page).text
    assert name == "index.html"
    for what in (
        "No leaderboard yet",
        "No blueprints yet",
        "No model was graded yet",
        "No agreement yet",
        "No drift",
        "No costs yet",
    ):
        assert what in text
    assert "<code>dtef rubric run</code>" in page


def test_costs_are_added_up_by_role(made: RubricTables, pages: dict[str, str]) -> None:
    costs = {table: sum(row["cost_usd"] for row in made.rows[table]) for table in ("rubric_responses", "rubric_judgements")}
    text = ReadPage(pages["index.html"]).text
    assert all(f"{cost:,.4f}" in text for cost in (*costs.values(), sum(costs.values())))
    own = sum(row["cost_usd"] for row in made.rows["rubric_judgements"] if row["blueprint"] == "health__topic-0")
    assert f"{own:,.4f}" in ReadPage(pages[PAGE]).text


def test_costs_of_everything_are_shown_by_role_where_they_were_added_up() -> None:
    made = made_tables(1, 2, 1)
    rows = [("judge", "j", 2.0), ("candidate", "a", 0.25), ("candidate", "b", 0.5), ("analyst", "c", None)]
    usual = {"family": "rubric", "answered": 3, "calls": 3, "prompt_tokens": 0, "completion_tokens": 0}
    used = [{**usual, "role": role, "model": model, "cost_usd": cost} for role, model, cost in rows]
    made.extra["costs"] = pa.Table.from_pylist(used, schema=COSTS).to_pandas()
    text = ReadPage(pages_of(made)["index.html"]).text.partition("Costs by role")[2]
    first = re.findall(r"(candidate|judge|analyst|all)(\d+)(\d\.\d{4}|–)", text.partition("By model")[0])
    assert first == [
        ("candidate", "6600", "0.7500"),
        ("judge", "3300", "2.0000"),
        ("analyst", "3300", "–"),
        ("all", "121200", "2.7500"),
    ]


def test_a_run_that_no_analyst_read_says_why() -> None:
    made = made_tables(1, 2, 1)
    row = {
        "blueprint": "health__topic-0",
        "snapshot": "base",
        "analyst": None,
        "status": "not asked",
        "reason": "no analyst is <named>",
    }
    made.extra["rubric_summaries"] = pd.DataFrame([{**row, "cost_usd": None}])
    text = ReadPage(pages_of(made)[PAGE]).text
    assert "No summary of this run: no analyst is <named>." in text
    assert "Analysts" not in text.partition("Costs by role")[2]


def test_a_summary_links_the_models_that_it_names() -> None:
    page = pages_of(
        with_summary(made_tables(1, 12, 1), "openai/model-1 is clearer than openai/model-11, not openai/model-1b.")
    )[PAGE]
    read = ReadPage(page)
    (item,) = re.findall(r"<li dir=\"auto\">(.*?)</li>", page.split("Key findings")[1])[:1]
    linked = re.findall(r'<a href="#(model-\d+)">([^<]+)</a>', item)
    assert [name for _, name in linked] == ["openai/model-1", "openai/model-11"]
    assert {anchor for anchor, _ in linked} <= read.anchors
    assert "The analyst was shown 50% of each text." in read.text
    assert "8.50" in read.text


@pytest.mark.parametrize("most_bytes", [1, 10_000_000])
def test_hostile_text_stays_text(most_bytes: int) -> None:
    plain = pages_of(made_tables(1, 2, 3, systems=(None, "s")), most_bytes=most_bytes)
    pages = pages_of(hostile_tables(), most_bytes=most_bytes)
    assert len(pages) == len(plain) == (2 if most_bytes > 1 else 5)
    for name, page in pages.items():
        read = ReadPage(page)
        assert re.fullmatch(r"[A-Za-z0-9_.-]+\.html", name)
        assert {tag for tag, _ in read.elements} <= ALLOWED_ELEMENTS
        assert read.comments == []
        handlers = [(tag, key) for tag, attributes in read.elements for key in attributes if key.startswith("on")]
        assert handlers == []
        assert not any(
            re.match(r"\s*javascript:", str(attributes.get("href")), re.IGNORECASE) for _, attributes in read.elements
        )
        assert all("window.hacked" not in script or script.lstrip().startswith("{") for script in read.scripts)
        assert "window.hacked = 1" in read.text


def test_marks_that_turn_the_direction_of_writing_end_with_their_text() -> None:
    page = pages_of(hostile_tables())["index.html"]
    body = re.sub(r"<(script|style|title)\b.*?</\1>", "", page, flags=re.DOTALL)
    inside = re.sub(r'<(bdi|p|div|span|li)\b(?=[^>]*dir="auto"|>|[^>]*class="source")[^>]*>[^<]*(<wbr>[^<]*)*</\1>', "", body)
    assert "\u202e" not in re.sub(r'\s(title|aria-label|data-model)="[^"]*"', "", inside).replace("<h1>", "")

"""The report: one page that stands alone, says what the tables say, and trusts no text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from dtef_pipeline.drift.checks import drift_checks
from dtef_pipeline.report.page import build_report
from dtef_pipeline.tables import SURVEY_QUARANTINE
from tests.dtef_pipeline.rows import scores_table, survey_rows

MARGINAL, UNIFORM = "baseline/population-marginal", "baseline/uniform"
SECTIONS = ["leaderboard", "by-attribute", "under-every-metric", "consistency-over-segments", "drift", "data-quality"]


def variant(model: str, **given: Any) -> dict[str, Any]:
    return {"model": model, "model_variant": f"{model}[temperature=0]", **given}


ROWS = [
    variant(model, score=score, question_id=question, segment=segment, context_level=level)
    for model, score in ((MARGINAL, 0.8), (UNIFORM, 0.6), ("gpt", 0.7123456))
    for question in ("q0", "q1")
    for segment in ("country:kenya", "country:chile")
    for level in ("0", "all")
]


def page(rows: list[dict[str, Any]], **tables: pa.Table) -> str:
    with duckdb.connect() as connection:
        for name, table in {"scores": scores_table(rows), **tables}.items():
            connection.register(f"_{name}", table)
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM _{name}")
        return build_report(connection)


class Structure(HTMLParser):
    """Open tags, to see that the page is well formed, and the ids of its sections."""

    VOID = frozenset({"meta", "link", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sections: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]
        if tag == "section":
            self.sections.append(str(dict(attrs)["id"]))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(text: str) -> Structure:
    structure = Structure()
    structure.feed(text)
    structure.close()
    assert structure.open == []
    return structure


def test_the_page_is_well_formed_and_needs_nothing_else() -> None:
    text = page(ROWS)
    structure = parsed(text)
    assert structure.sections == SECTIONS
    assert structure.links == []
    assert "script" not in structure.tags
    assert not re.search(r"https?://|@import|url\(", text)


def test_the_leaderboard_stands_beside_the_marginal_at_each_context_level() -> None:
    text = page(ROWS)
    board = text.split('<section id="leaderboard">')[1].split("</section>")[0]
    assert re.findall(r"<h3>(.*?)</h3>", board) == ["Without context questions", "With all context questions that fit"]
    assert board.count("0.7123") == 2
    assert board.count("-0.0877") == 2
    assert board.count('style="left:80.00%"') == 6


def test_conditions_are_told_apart_wherever_models_stand() -> None:
    cot = [{**row, "condition": "shift/narrative+cot"} for row in ROWS]
    text = page([*ROWS, *cot])
    assert text.count("Without context questions, asked as <code>shift/narrative+cot</code>") == 2  # leaderboard, by attribute
    assert text.count("Without context questions, asked as <code>distribution/attribute-label</code>") == 2
    assert text.count(">Asked as<") == 2  # metrics, consistency
    assert "asked as" not in page(ROWS).lower()


def test_names_are_text_not_markup() -> None:
    text = page([*ROWS, variant('<script>alert("x")</script>', round="R&D", score=0.5)])
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "R&amp;D" in text


def test_drift_and_quarantine_are_shown_when_there_are_such_tables() -> None:
    dated = [variant("gpt", snapshot=day, score=score) for day, score in (("2026-01-01", 0.8), ("2026-01-03", 0.5))]
    quarantine = pa.Table.from_pylist(
        [{"round": "S1", "segment": "country:mali", "question_id": None, "reason": "segment-too-small", "detail": "n=3"}],
        schema=SURVEY_QUARANTINE,
    )
    text = page(
        dated,
        drift_checks=drift_checks(scores_table(dated)),
        survey_responses=survey_rows({}, {}),
        survey_quarantine=quarantine,
    )
    parsed(text)
    assert "1 flagged of 1 compared" in text
    assert "0.5000 in 2026-01-03, 0.8000 in 2026-01-01" in text
    assert "segment-too-small" in text


def test_without_the_tables_of_later_stages_it_says_so() -> None:
    text = page(ROWS)
    assert "No drift checks yet." in text


@pytest.mark.parametrize("rows", [[], [variant("gpt", status="error", score=None)]])
def test_nothing_scored_is_a_page_all_the_same(rows: list[dict[str, Any]]) -> None:
    structure = parsed(page(rows))
    assert structure.sections == SECTIONS


def test_a_model_without_a_score_has_a_dash_and_no_bar() -> None:
    text = page([*ROWS, variant("dead", status="error", score=None)])
    row = next(part for part in text.split("<tr>") if ">dead<" in part)
    assert "–" in row
    assert "bar" not in row
    assert "nan" not in row.lower()

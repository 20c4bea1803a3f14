"""The report: one page that stands alone, says what the tables say, and trusts no text."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from dtef_pipeline.drift.checks import drift_checks
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.report.chapters import survey_report
from dtef_pipeline.survey.tables import SURVEY_QUARANTINE
from tests.made.scores import scores_table, survey_rows

ANCHORS = [
    *(
        "leaderboard",
        "comparisons",
        "segments",
        "pairs",
        "context",
        "experiments",
        "gaps",
        "attributes",
        "metrics",
        "consistency",
        "questions",
    ),
    *("reliability", "drift", "data-quality", "costs", "methodology"),
]
MARGINAL, UNIFORM = "baseline/population-marginal", "baseline/uniform"


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
        return survey_report(connection)


@cache
def plain() -> str:
    """The page of `ROWS`, made once."""
    return page(ROWS)


class Structure(HTMLParser):
    """Open tags, to see that the page is well formed, and the ids of its sections."""

    VOID = frozenset({"meta", "link", "br", "wbr", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sections: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]
        self.ids += [str(value) for name, value in attrs if name == "id"]
        self.scripts += tag == "script" and dict(attrs).get("type") != "application/json"
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
    text = plain()
    structure = parsed(text)
    assert structure.sections == ANCHORS
    assert structure.links == [f"#{anchor}" for anchor in ("main", *ANCHORS)]
    assert set(structure.sections) | {"main"} <= set(structure.ids)
    assert len(structure.ids) == len(set(structure.ids))
    assert structure.tags.isdisjoint({"link", "img", "iframe", "object", "embed"})
    assert not re.search(r"https?://|@import|url\(|fetch\(|XMLHttp", text)


@pytest.mark.thorough
def test_equal_tables_give_an_equal_page() -> None:
    tables = {"survey_responses": survey_rows({}, {}, {"segment": "country:chile"})}
    assert page(ROWS, **tables) == page(list(reversed(ROWS)), **tables)


def section(text: str, anchor: str) -> str:
    return text.split(f'<section id="{anchor}"')[1].split("</section>")[0]


def test_the_leaderboard_stands_beside_the_marginal_at_each_context_level_most_context_first() -> None:
    board = section(plain(), "leaderboard")
    assert re.findall(r"<h3>(.*?)</h3>", board) == ["With all context questions that fit", "Without context questions"]
    assert board.count("<details open>") == 1
    assert board.count(">0.712<") + board.count(">0.712 <") >= 2
    assert board.count("population marginal 0.800</text>") == 2


def test_names_are_text_not_markup() -> None:
    name = '</script><script>alert("x")</script><!--'
    survey = survey_rows({"question_text": name, "options": [name, "b", "c"]}, {"round": "R&D"})
    given = {"predicted": [0.2, 0.3, 0.5]}
    text = page(
        [*ROWS, variant(name, score=0.5, **given), variant(name, round="R&D", score=0.5, **given)], survey_responses=survey
    )
    assert parsed(text).scripts == 1  # all others are data
    assert "alert(" in text
    assert "<script>alert" not in text
    assert "<!--" not in text.removeprefix("<!doctype html>")
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
        drift_checks=drift_checks(scores_table(dated), SUBJECT),
        survey_responses=survey_rows({}, {}),
        survey_quarantine=quarantine,
    )
    parsed(text)
    assert "1 flagged of 1 compared" in text
    assert "0.5000 in 2026-01-03, 0.8000 in 2026-01-01" in text
    assert "segment-too-small" in text


@pytest.mark.parametrize("rows", [[], [variant("gpt", status="error", score=None)]])
def test_nothing_scored_is_a_page_all_the_same(rows: list[dict[str, Any]]) -> None:
    structure = parsed(page(rows))
    assert structure.sections == ANCHORS


def test_published_tables_are_taken_as_they_are() -> None:
    """The page shows what the tables say: a table and a page that were computed apart could disagree."""
    told = pa.Table.from_pylist(
        [
            {
                "rank": 1,
                "model": "told",
                "model_variant": "told",
                "context_level": "0",
                "condition": "c",
                "score": 0.75,
                "n_pairs": 8,
                "metric": "js",
                "targets": targets,
                "score_low": 0.7,
                "score_high": 0.8,
                "rank_low": 1,
                "rank_high": 2,
                "tier": 1,
                "coverage": 1.0,
                "parse_rate": 1.0,
                "vs_marginal": None,
                "note": "no interval: 3 batteries, at least 5 are needed",
            }
            for targets in ("clean", "all")
        ]
    )
    board = section(page(ROWS, leaderboard=told), "leaderboard")
    assert "gpt" not in board
    assert board.count('<span class="name">told</span>') == 1
    assert '0.750<span class="ci">0.700 to 0.800</span>' in board
    assert '1<span class="ci">1 to 2</span>' in board
    assert "no interval: 3 batteries, at least 5 are needed" in board

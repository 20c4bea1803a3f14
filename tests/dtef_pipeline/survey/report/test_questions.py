"""The table of questions, from scores written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from dtef_pipeline.survey.report.questions import questions
from tests.made.scores import reference_table, scores_table, survey_rows
from tests.made.sections import OTHERS, cells

CHILE, KENYA, PERU, POLAND = SEGMENTS = ("country:chile", "country:kenya", "country:peru", "country:poland")
CEILINGS = {CHILE: 0.9, KENYA: 0.8, PERU: 0.95, POLAND: 0.95}
MARGINALS = {CHILE: 0.7, KENYA: 0.6, PERU: 0.9, POLAND: 0.9}


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    survey = [{"question_id": f"q{at}", "segment": segment} for at in range(5) for segment in SEGMENTS]
    references = [{**row, "ceiling": CEILINGS[row["segment"]], "others": MARGINALS[row["segment"]]} for row in survey]
    with duckdb.connect() as connection:
        for name, table in {"survey_responses": survey_rows(*survey), "reference_scores": reference_table(references)}.items():
            connection.register(f"_{name}", table)
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM _{name}")
        yield connection


def section(connection: duckdb.DuckDBPyConnection, rows: list[dict[str, Any]]) -> str:
    connection.register("scores", scores_table(rows))
    return questions(connection)


def said(model: str, scores: dict[str, float], question: str = "q0", level: str = "all") -> list[dict[str, Any]]:
    named = {"model": model, "model_variant": model, "question_id": question, "context_level": level}
    return [{**named, "segment": segment, "score": score} for segment, score in scores.items()]


def everywhere(model: str, score: float, question: str = "q0", level: str = "all") -> list[dict[str, Any]]:
    return said(model, dict.fromkeys(SEGMENTS, score), question, level)


def test_a_question_is_judged_by_its_models_and_its_room_by_the_references(connection: duckdb.DuckDBPyConnection) -> None:
    rows = [*everywhere("a", 0.9), *everywhere("b", 0.7), *everywhere(OTHERS, 0.85), *everywhere("b", 0.5, "q1")]
    first, _ = cells(section(connection, rows))
    means = ["0.800 2 models", "0.900 a", "0.700 b"]
    assert first == ["Question number 0?", "S1", "4 of 4", *means, "0.775", "0.900", "0.125"]


def test_all_numbers_of_a_row_are_over_the_segments_that_its_models_share(connection: duckdb.DuckDBPyConnection) -> None:
    """Ceiling and marginal were over all segments, the models over those that they were asked: 0.30 stood beside a ceiling of 0.90."""
    everyone = everywhere(OTHERS, 0.85)
    shared = said("a", {CHILE: 0.5, KENYA: 0.3, PERU: 1.0}) + said("b", {CHILE: 0.7, KENYA: 0.5, POLAND: 1.0})
    (row,) = cells(section(connection, everyone + shared))
    assert row[2:9] == ["2 of 4", "0.500 2 models", "0.600 b", "0.400 a", "0.650", "0.850", "0.200"]
    (row,) = cells(section(connection, everyone + shared + said("once", {CHILE: 0.1})))
    assert row[2:6] == ["2 of 4", "0.500 2 models; 1 with fewer segments left out", "0.600 b", "0.400 a"]


def test_every_question_stands_with_the_scores_of_whoever_was_asked_it(connection: duckdb.DuckDBPyConnection) -> None:
    """Where a language model was asked a few questions, all others were left out; a single model was its own best and worst."""
    rows = [
        *everywhere(OTHERS, 0.85),
        *everywhere(OTHERS, 0.8, "q1"),
        *everywhere("baseline/uniform", 0.6, "q1"),
        *everywhere(OTHERS, 0.7, "q2"),
        *everywhere("gpt", 0.65, "q2"),
        *everywhere("gpt", 0.4, "q2", "0"),
        *everywhere(OTHERS, 0.5, "q3"),
        *everywhere("gpt", 0.45, "q3", "0"),
    ]
    markup = section(connection, rows)
    richest, without_context = markup.split("</table>")[:2]
    assert [row[3:6] for row in cells(richest)] == [
        [f"0.850 {OTHERS}", "–", "–"],
        ["0.700 2 baselines", f"0.800 {OTHERS}", "0.600 baseline/uniform"],
        ["0.650 gpt", "–", "–"],
    ]
    assert [row[:4] for row in cells(without_context)] == [["Question number 12?", "S1", "4 of 4", "0.450 gpt"]]
    assert "nothing has a score on: 1." in markup

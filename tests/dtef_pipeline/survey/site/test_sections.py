"""Sections beneath the leaderboards and on the page of data."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.site.content import Section, Table
from dtef_pipeline.survey.boards.schemas import RESPONSIVENESS
from dtef_pipeline.survey.site.boards import board_sections
from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.survey.site.data_sections import data_sections
from dtef_pipeline.survey.tables import SURVEY_FINDINGS, SURVEY_QUARANTINE
from tests.dtef_pipeline.survey.site.conftest import Open
from tests.made.scores import scores_of, survey_rows
from tests.made.survey_boards import store_boards

OF_A = {
    "model": "a",
    "model_variant": "a",
    "context_level": "0",
    "condition": "distribution/attribute-label",
    "targets": "clean",
    "metric": "js",
}


def sections(open_tables: Open, scores: list[dict[str, Any]], **tables: pa.Table) -> dict[str, Section]:
    contents = SurveyContents(open_tables(scores, **tables))
    return {one.id: one for one in (*board_sections(contents), *data_sections(contents))}


def table(section: Section) -> Table:
    return next(block for block in section.blocks if isinstance(block, Table))


def test_attributes_stand_side_by_side_in_words(open_tables: Open) -> None:
    rows = scores_of("a", 0.5, 0.6) + scores_of("a", 0.8, 0.9, segment="ageGroup:18-25", attribute="ageGroup", value="18-25")
    found = sections(open_tables, rows)["attributes"]
    assert found.answer == "Models predict segments of the attribute “Age” best (0.850) and those of “Country” worst (0.550)."
    columns = table(found).columns
    assert [column.title for column in columns] == ["Model", "Age", "Country"]
    assert columns[1].value_in(table(found).rows[0]).value == pytest.approx(0.85)


def test_verdicts_on_context_are_counted_and_stand_with_both_ends(open_tables: Open) -> None:
    ends = {"score_at_lowest_context": 0.6, "score_at_highest_context": 0.62, "difference": 0.02, "low": 0.01, "high": 0.03}
    tested = {**OF_A, **ends, "levels": "0, 5", "verdict": "evidence-adapting", "note": ""}
    responsiveness = pa.Table.from_pylist([tested], schema=RESPONSIVENESS)
    found = sections(open_tables, scores_of("a", 0.6), responsiveness=responsiveness)["context"]
    assert found.answer == "1 test of models: 1 evidence-adapting."
    assert {name: table(found).rows[0][name] for name in ("condition", *ends)} == {"condition": "asked directly", **ends}


def test_each_metric_has_its_means(open_tables: Open) -> None:
    scores = [
        row | {"cosine": row["score"] - 0.1}
        for model, score in (("a", 0.6), ("b", 0.7))
        for row in scores_of(model, score, score)
    ]
    connection = open_tables(scores)
    store_boards(connection, ["metric"])
    found = next(section for section in board_sections(SurveyContents(connection)) if section.id == "metrics")
    assert found.answer.startswith("b has the highest mean under")
    assert [(row["name"], row["js"], row["cosine"]) for row in table(found).rows] == [
        ("b", pytest.approx(0.7), pytest.approx(0.6)),
        ("a", pytest.approx(0.6), pytest.approx(0.5)),
    ]


def test_evenness_leads_to_the_lowest_and_the_highest_segment(open_tables: Open) -> None:
    spread = {"segment_sd_true": 0.02, "segment_sd_low": 0.01, "segment_sd_high": 0.03, "lowest": 0.5, "highest": 0.6}
    rows = [
        {**OF_A, "model": name, "model_variant": name, **spread, "segment_sd_true": true, "lowest_segment": "country:kenya"}
        for name, true in (("b", 0.04), ("a", 0.02))
    ]
    stored = pa.Table.from_pylist([{**row, "highest_segment": "country:mali"} for row in rows])
    scores = scores_of("a", 0.5) + scores_of("b", 0.5)
    found = sections(open_tables, scores, consistency=stored, survey_responses=survey_rows({"question_id": "q0"}))["evenness"]
    assert found.answer == "a is the most even: its segments' true means spread by 0.020."
    assert [row["name"] for row in table(found).rows] == ["a", "b"]
    assert table(found).rows[0]["lowest_segment"].text == "Kenya"
    assert table(found).rows[0]["highest_segment"] == "country:mali"


def test_data_count_statuses_and_say_why(open_tables: Open) -> None:
    rows: list[dict[str, Any]] = [{"status": "refused", "score": 0.0, "reason": "an apology"}, {"draw": 1}]
    found = sections(open_tables, rows, survey_responses=survey_rows({"question_id": "q0"}))
    assert found["statuses"].answer == "50.0% of 2 predictions could be read."
    counts, reasons = (dict(block.rows[0]) for block in found["statuses"].blocks if isinstance(block, Table))
    assert {name: counts[name] for name in ("model", "predictions", "ok", "refused")} == {
        "model": "m",
        "predictions": 2,
        "ok": 1,
        "refused": 1,
    }
    assert reasons == {"status": "refused", "reason": "an apology", "predictions": 1}
    assert found["rounds"].answer == "1 round with 1 question in up to 1 segment: 1 pair."


def test_findings_about_the_files_are_listed_once(open_tables: Open) -> None:
    rows = [
        {"round": name, "level": "warning", "code": "c", "message": "A column is unknown.", "items": ["x"]}
        for name in ("S1", "S2")
    ]
    findings = pa.Table.from_pylist(rows, schema=SURVEY_FINDINGS)
    found = sections(open_tables, scores_of("a", 0.5), survey_findings=findings)["findings"]
    assert table(found).rows == [{"message": "A column is unknown.", "rounds": "S1, S2", "level": "warning"}]


def test_quarantine_is_counted_by_reason(open_tables: Open) -> None:
    aside = [{"round": "S1", "segment": f"country:{name}", "reason": "segment-too-small"} for name in ("mali", "chad")]
    quarantine = pa.Table.from_pylist(aside, schema=SURVEY_QUARANTINE)
    found = sections(open_tables, scores_of("a", 0.5), survey_quarantine=quarantine)["quarantine"]
    assert found.answer == "Left out before any request to a model: 2 rows of the files."
    (row,) = table(found).rows
    assert (row["reason"], row["round"], row["rows"]) == (
        "The whole segment has fewer respondents than the minimum.",
        "S1",
        2,
    )

"""Sections beneath the leaderboards and on the page of data."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.site.content import Chart, Section, Table
from dtef_pipeline.survey.boards.board_rows import compute_board
from dtef_pipeline.survey.boards.schemas import RESPONSIVENESS, SEGMENT_GAPS
from dtef_pipeline.survey.site import contents
from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.survey.site.data_sections import data_sections
from dtef_pipeline.survey.site.sections import build_conditions_section
from dtef_pipeline.survey.site.sections import sections as board_sections
from dtef_pipeline.survey.tables import SURVEY_FINDINGS, SURVEY_QUARANTINE
from tests.dtef_pipeline.survey.site.conftest import Open
from tests.made.predictions import predictions_of
from tests.made.scores import scores_of, scores_table, survey_rows

pytestmark = pytest.mark.usefixtures("boards_of_pages")
PLAIN = "distribution/attribute-label"
KEY = {"context_level": "0", "condition": PLAIN, "targets": "clean", "metric": "js"}


def of_model(model: str, **given: Any) -> dict[str, Any]:
    return {"model": model, "model_variant": model, **KEY, **given}


def sections(open_tables: Open, scores: list[dict[str, Any]], **tables: pa.Table) -> dict[str, Section]:
    contents = SurveyContents(open_tables(scores, **tables))
    return {one.id: one for one in (*board_sections(contents), build_conditions_section(contents), *data_sections(contents))}


def data(open_tables: Open, scores: list[dict[str, Any]], **tables: pa.Table) -> dict[str, Section]:
    """Sections of the page of data alone."""
    return {one.id: one for one in data_sections(SurveyContents(open_tables(scores, **tables)))}


def table(section: Section) -> Table:
    return next(block for block in section.blocks if isinstance(block, Table))


def asked(model: str, variant: str, score: float, **given: Any) -> list[dict[str, Any]]:
    known = {"model": model, "model_variant": variant, "score": score, **given}
    return [{**known, "question_id": f"q{at}"} for at in range(6)]


def test_ways_of_asking_are_compared_with_the_usual_one(open_tables: Open) -> None:
    variant = "openai/gpt[max_tokens=256,temperature=0]"
    turned = {"condition": f"{PLAIN}+reversed"}
    rows = asked("gpt", variant, 0.5) + asked("gpt", variant, 0.6, **turned) + asked("other", "openai/o[temperature=0]", 0.5)
    found = sections(open_tables, rows)["conditions"]
    assert found.answer == "1 comparison with “asked directly”: 1 better."
    shown = table(found)
    assert shown.caption == "asked directly, options reversed, against asked directly"
    (row,) = shown.rows
    assert (row["model"], row["verdict"], row["difference"], row["n_pairs"]) == ("gpt", "better", pytest.approx(0.1), 6)


def test_context_curves_are_of_the_pairs_of_all_levels_and_stand_with_their_verdict(open_tables: Open) -> None:
    tested = of_model(
        "a", levels="0, 5", verdict="evidence-adapting", slope=0.004, difference=0.02, low=0.01, high=0.03, note=""
    )
    scores = [row for level, score in (("0", 0.6), ("5", 0.62)) for row in scores_of("a", score, score, context_level=level)]
    scores += scores_of("a", 0.6, 0.6, 0.1, context_level="5")[2:]
    responsiveness = pa.Table.from_pylist([tested], schema=RESPONSIVENESS)
    found = sections(open_tables, scores, responsiveness=responsiveness)["context"]
    assert found.answer == "1 test of models: 1 evidence-adapting."
    curve, verdicts = found.blocks
    assert isinstance(curve, Chart)
    assert [(row["label"], row["x"], row["value"]) for row in curve.rows] == [
        ("a", 0.0, pytest.approx(0.6)),
        ("a", 5.0, pytest.approx(0.62)),
    ]
    assert isinstance(verdicts, Table)
    assert [verdicts.rows[0][name] for name in ("condition", "difference", "low", "high")] == [
        "asked directly",
        0.02,
        0.01,
        0.03,
    ]


def test_the_surest_gaps_come_first_and_all_are_counted(open_tables: Open) -> None:
    known = of_model("a", attribute="country", score=0.6, expected=0.65, low=-0.08, high=-0.02, note="")
    gaps = [
        {**known, "segment": "country:chile", "deviation": 0.01, "p_adjusted": 0.9, "verdict": "no clear difference"},
        {**known, "segment": "country:kenya", "deviation": -0.05, "p_adjusted": 0.01, "verdict": "worse"},
    ]
    found = sections(open_tables, scores_of("a", 0.5, 0.6), segment_gaps=pa.Table.from_pylist(gaps, schema=SEGMENT_GAPS))[
        "gaps"
    ]
    assert found.answer.startswith("2 pairs of a model and a segment")
    assert "1 worse than its attribute's other segments, 0 better" in found.answer
    assert [row["segment"] for row in table(found).rows] == ["country:kenya", "country:chile"]
    assert [table(found).rows[0][name] for name in ("deviation", "low", "high")] == [-0.05, -0.08, -0.02]


def test_untested_gaps_are_not_counted(open_tables: Open) -> None:
    """The page said “0 worse, 0 better” of rows that were not tested."""
    row = of_model("a", attribute="country", segment="country:kenya", score=0.6, verdict="not tested", note="not tested: alone")
    gaps = pa.Table.from_pylist([row], schema=SEGMENT_GAPS)
    found = sections(open_tables, scores_of("a", 0.5, 0.6), segment_gaps=gaps)["gaps"]
    assert found.answer == "No gap could be tested; the notes below the table say why."


def test_attributes_stand_side_by_side_in_words(open_tables: Open) -> None:
    """The caption promised intervals where there are none."""
    rows = scores_of("a", 0.5, 0.6) + scores_of("a", 0.8, 0.9, segment="ageGroup:18-25", attribute="ageGroup", value="18-25")
    found = sections(open_tables, rows)["attributes"]
    assert found.answer == "Models predict segments of the attribute “Age” best (0.850) and those of “Country” worst (0.550)."
    assert table(found).caption == "Mean score by attribute"
    assert [column.title for column in table(found).columns] == ["Model", "Age", "Country"]
    assert table(found).rows[0]["ageGroup"].value == pytest.approx(0.85)


def test_metrics_stand_with_their_ranks(open_tables: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "compute_board", compute_board)
    scores = [
        row | {"cosine": row["score"] - 0.1}
        for model, score in (("a", 0.6), ("b", 0.7))
        for row in scores_of(model, score, score)
    ]
    found = sections(open_tables, scores)["metrics"]
    assert found.answer.startswith("b has the highest mean under")
    assert {row["name"]: (row["js_cell"], row["cosine_cell"]) for row in table(found).rows} == {
        "b": ("0.700 (1)", "0.600 (1)"),
        "a": ("0.600 (2)", "0.500 (2)"),
    }


def test_data_count_statuses_and_say_why(open_tables: Open) -> None:
    rows: list[dict[str, Any]] = [{"status": "refused", "score": 0.0, "reason": "an apology"}, {"draw": 1}]
    tables = {
        "survey_responses": survey_rows({"question_id": "q0"}),
        "predictions": predictions_of(scores_table(rows), ["Sorry.", "1"]),
    }
    found = data(open_tables, rows, **tables)
    assert found["statuses"].answer == "50.0% of 2 predictions could be read."
    assert {name: table(found["statuses"]).rows[0][name] for name in ("name", "predictions", "ok", "refused")} == {
        "name": "m",
        "predictions": 2,
        "ok": 1,
        "refused": 1,
    }
    (example,) = table(found["unread"]).rows
    assert (example["name"], example["reason"], example["times"], example["response"]) == ("m", "an apology", 1, "Sorry.")
    assert example["pair"].text == "Kenya: Question number 0?"
    assert found["rounds"].answer == "1 round with 1 question in up to 1 segment: 1 pair."


def test_quarantine_and_findings_are_stated_once_each(open_tables: Open) -> None:
    aside = [
        {"round": name, "segment": "country:mali", "reason": "segment-too-small", "detail": "n=3"} for name in ("S1", "S2")
    ]
    noticed = [
        {"round": name, "level": "info", "code": "x", "message": "Said twice.", "items": ["b", "a"]} for name in ("S1", "S2")
    ]
    found = data(
        open_tables,
        scores_of("a", 0.5),
        survey_quarantine=pa.Table.from_pylist(aside, schema=SURVEY_QUARANTINE),
        survey_findings=pa.Table.from_pylist(noticed, schema=SURVEY_FINDINGS),
    )
    assert found["quarantine"].answer.startswith("2 rows of the files were left out")
    assert [row["rounds"] for row in table(found["findings"]).rows] == ["S1, S2"]
    assert table(found["findings"]).rows[0]["items"] == "a; b"


def batteries(open_tables: Open, rows: list[dict[str, Any]]) -> Section:
    """This section alone: those after it need boards."""
    contents = SurveyContents(open_tables(scores_of("a", 0.5), survey_responses=survey_rows(*rows)))
    return next(one for one in data_sections(contents) if one.id == "batteries")


def of(battery: str, *texts: str, round_id: str = "S1") -> list[dict[str, Any]]:
    return [
        {"battery": battery, "question_text": text, "round": round_id, "question_id": f"{battery}{at}"}
        for at, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("battery", "texts", "expected"),
    [
        ("rule:a", ("Do you trust judges?", "Do you trust <nurses>?"), "same stem: “Do you trust …”"),
        ("rule:a", ("Judges act as they should?", "Nurses act as they should?"), "same stem: “… act as they should?”"),
        ("rule:a", ("A judge", "The nurse"), "items of one list with the same scale"),
        ("rule:a", ("Is it?", "Was it?"), "neighbouring questions with the same scale, or repeated later"),
        ("given:B", ("Is it?", "Was it?"), "named B by the survey"),
    ],
)
def test_it_says_why_questions_are_together(open_tables: Open, battery: str, texts: tuple[str, ...], expected: str) -> None:
    (row,) = table(batteries(open_tables, of(battery, *texts))).rows
    assert (row["why"], row["different"], row["texts"]) == (expected, 2, "\n".join(texts))

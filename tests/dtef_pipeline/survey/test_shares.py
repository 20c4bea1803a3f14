"""Rounding, fractions, and questions with several answers a person: what percentages may sum to, and what they are not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.completeness import MULTI_SELECT, has_several_answers, remove_multi_select, sum_tolerance
from dtef_pipeline.survey.observations import observe

CASES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

HEADER = "round,question,option,attribute,value,percent,n\n"


def survey_file(tmp_path: Path, questions: dict[str, dict[str, list[float]]]) -> Path:
    """A long table of question -> country -> percentages; 500 respondents each."""
    path = tmp_path / "shares.csv"
    lines = [
        f"S1,{question},option {at},country,{country},{share},500\n"
        for question, of in questions.items()
        for country, shares in of.items()
        for at, share in enumerate(shares)
    ]
    path.write_text(HEADER + "".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("cells", "tolerance"),
    [
        ([[20.0, 20, 20, 20, 10, 10]], 3),  # six whole percentages: half a percent each
        ([[20.0, 20, 20, 20, 10, 10], [20.5, 19.5, 20, 20, 10, 10]], 1),  # one decimal somewhere: 0.3, and never below 1
        ([[50.0, 50.0]], 1),
        ([[4.0] * 25], 12.5),
        ([], 1),
    ],
)
def test_tolerance_follows_from_the_options_and_the_rounding_unit(cells: list[list[float]], tolerance: float) -> None:
    assert sum_tolerance(cells) == pytest.approx(tolerance)


def test_a_file_of_fractions_is_read_as_percentages_and_says_so(tmp_path: Path) -> None:
    survey = read_survey(survey_file(tmp_path, {"Good?": {"Kenya": [0.6, 0.4], "Chile": [0.29, 0.71]}}))
    assert [a.percentages for a in survey.answers] == [pytest.approx((60, 40)), pytest.approx((29, 71))]
    assert [(f.level, f.code) for f in survey.findings] == [("warning", "fractions")]


def test_fractions_among_percentages_are_set_aside_with_the_factor(tmp_path: Path) -> None:
    survey = read_survey(survey_file(tmp_path, {"Good?": {"Kenya": [0.6, 0.4], "Chile": [29, 71], "Peru": [50, 50]}}))
    assert not survey.findings
    (aside,) = observe(survey).quarantine.to_pylist()
    assert aside["reason"] == "sum-not-100"
    assert "multiply them by 100" in aside["detail"]


@pytest.mark.parametrize("text", CASES["texts_that_ask_for_several_answers"])
def test_texts_that_ask_for_several_answers(text: str) -> None:
    assert has_several_answers(text)


@pytest.mark.parametrize("text", CASES["texts_that_ask_for_one_answer"])
def test_texts_that_ask_for_one_answer(text: str) -> None:
    assert not has_several_answers(text)


def test_one_segment_above_what_rounding_explains_drops_the_question(tmp_path: Path) -> None:
    """A multi-select question was scored in the segments whose percentages happened to sum to about 100."""
    questions = {"Good?": {"Kenya": [60, 40], "Peru": [50, 50]}, "Which of these": {"Kenya": [60, 40.5], "Peru": [70, 55]}}
    survey = remove_multi_select(read_survey(survey_file(tmp_path, questions)))
    assert [q.text for q in survey.questions] == ["Good?"]
    assert {a.question_id for a in survey.answers} == {"Good?"}
    (finding,) = survey.findings
    assert (finding.level, finding.code) == ("warning", MULTI_SELECT)
    assert "Which of these" in finding.items[0]
    assert "country:peru" in finding.items[0]
    assert "125" in finding.items[0]

"""A survey that was cut, or whose columns were renamed, is an error that says what is missing, and an option lets it pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.model import Survey
from dtef_pipeline.survey.whole import ALLOWANCES, MISSING_ATTRIBUTES, MISSING_QUESTIONS, whole

POLL = "Poll Single Select"
HALF = ("50.0%", "50.0%")
GUIDE = ["Item type (dropdown)", "Content", "Poll or Category Option 1", "Poll or Category Option 2"]
Write = Callable[..., Path]
WriteCsv = Callable[[Path, Sequence[Sequence[object]]], Path]


def refused(survey: Survey) -> str:
    with pytest.raises(SurveyError) as raised:
        whole(survey)
    return str(raised.value)


def warnings(survey: Survey, code: str) -> list[str]:
    return [item for f in whole(survey, [code]).findings if (f.code, f.level) == (code, "warning") for item in f.items]


@pytest.fixture
def cut_at_a_line_end(round_directory: Write, write_csv: WriteCsv) -> Path:
    """An aggregate with one of four questions: the counts know a second, the mapping a third, the guide all but open ones."""
    counts = {"q1": {"O7: Kenya": 50}, "q2": {"O7: Kenya": 50}}
    folder = round_directory({"O7: Kenya": HALF}, counts=counts)
    mapping = [
        ["human_readable_id", "uuid", "question_text"],
        ["1", "q3", "Third?"],
        ["2", "q8", "Tell us more"],
        ["3", "", "Hi"],
    ]
    write_csv(folder / "GD9_question_id_mapping.csv", mapping)
    asked = [
        ["poll single select", "Is it  good?", "Yes", "No"],
        ["poll single select", "Third ?", "Yes", "No"],
        ["poll single select", "Fourth?", "Yes", "No"],
        ["ask opinion", "Tell us more", "", ""],
        ["ask experience multi select", "Which of these?", "A", "B"],
        ["speak", "Hi", "", ""],
    ]
    write_csv(folder / "GD9_discussion_guide.csv", [GUIDE, *asked])
    return folder


def test_questions_that_other_files_name_stop_a_round_but_open_ones_do_not(cut_at_a_line_end: Path) -> None:
    """GD4 cut after half its lines was ingested with 48 of 116 questions, and no word."""
    survey = read_survey(cut_at_a_line_end)
    said = refused(survey)
    assert "GD9_segment_counts_by_question.csv, GD9_question_id_mapping.csv and GD9_discussion_guide.csv name questions" in said
    assert "that GD9_aggregate_standardized.csv lacks: 3 questions: q2; Third?; Fourth?; the file may have been cut" in said
    assert "--allow-missing-questions" in said
    assert warnings(survey, MISSING_QUESTIONS) == ["q2", "Third?", "Fourth?"]


def test_attributes_that_the_guide_asks_for_and_no_column_has_stop_a_round(round_directory: Write, write_csv: WriteCsv) -> None:
    folder = round_directory({"O7: Kenya": HALF, "Sex: F": HALF, "Sex: M": HALF})
    asked = [
        ["onboarding single select", "Your gender?", "Female", "Male"],
        ["onboarding single select", "Your language?", "English", "French"],  # aggregates may be published without
        ["poll single select", "Is it good?", "Yes", "No"],
    ]
    write_csv(folder / "GD9_discussion_guide.csv", [GUIDE, *asked])
    survey = read_survey(folder)
    said = refused(Survey(**{**vars(survey), "findings": tuple(f for f in survey.findings if f.code != MISSING_QUESTIONS)}))
    assert (
        "asks for attributes of which no column of GD9_aggregate_standardized.csv could be read: 1 attribute: gender: Your"
        in said
    )
    assert "columns that were not read: Sex: F, Sex: M" in said
    assert ALLOWANCES[MISSING_ATTRIBUTES] in said
    assert whole(survey, ALLOWANCES)


def test_columns_that_are_not_read_are_named_with_their_share_of_respondents(round_directory: Write) -> None:
    columns = dict.fromkeys(["O7: Kenya", "Sex: F", "O8: Atlantis", "Norther Europe", "Branch A", "44+", "Somewhere"], HALF)
    counts = {"q1": {"All": 200, "O7: Kenya": 100, "Sex: F": 90, "O8: Atlantis": 3}}
    folder = round_directory(columns, counts=counts)
    table = folder / "GD9_segment_counts_by_question.csv"
    lines = table.read_text(encoding="utf-8").splitlines()
    table.write_text("\n".join([f"{lines[0]},All", f"{lines[1]},200"]), encoding="utf-8")
    findings = {f.code: f for f in read_survey(folder).findings}
    unknown = findings["unknown-column"]
    assert unknown.level == "error"
    assert unknown.items == ("O8: Atlantis (3 of 200 respondents, 2%)", "Sex: F (90 of 200 respondents, 45%)")
    assert "dtef_pipeline/survey/vocabulary.toml" in unknown.message
    assert (findings["unheard-column"].level, findings["unheard-column"].items) == ("warning", ("Somewhere",))
    assert findings["non-segment-column"].items == ("Norther Europe", "Branch A", "44+")


def test_regions_are_known_as_the_uk_guides_spell_them(round_directory: Write) -> None:
    columns = ["O8: East Midlands (e.g., Derbyshire, Leicestershire)", "O8: London (e.g. Camden)", "O8: I live outside the UK"]
    survey = read_survey(round_directory(dict.fromkeys(columns, HALF)))
    assert [s.key for s in survey.segments] == ["ukRegion:east-midlands", "ukRegion:london", "ukRegion:outside-the-uk"]


LONG = ["round", "question", "option", "attribute", "value", "percent", "n"]


def test_a_question_that_lost_its_last_options_stops_a_long_table(tmp_path: Path, write_csv: WriteCsv) -> None:
    rows = [
        ["S9", question, option, "country", country, share, 50]
        for question, options in (
            ("Good?", {"Yes": 60, "No": 40}),
            ("Often?", {"Always": 20, "Often": 30}),
            ("Ever?", {"Yes": 30}),
        )
        for option, share in options.items()
        for country in ("Kenya", "Chile")
    ]
    survey = read_survey(write_csv(tmp_path / "long.csv", [LONG, *rows]))
    assert "reach 99 % in no segment, so options are missing: 1 question: Ever?" in refused(survey)
    assert warnings(survey, MISSING_QUESTIONS) == ["Ever?", "Often?"]


def test_a_long_table_that_breaks_off_within_a_segment_or_a_question_is_warned_of(tmp_path: Path, write_csv: WriteCsv) -> None:
    rows = [["S9", f"Q{q}?", o, "country", c, 50, 50] for c in ("Kenya", "Chile") for q in range(3) for o in ("Yes", "No")]
    findings = whole(read_survey(write_csv(tmp_path / "long.csv", [LONG, *rows]))).findings
    assert findings == ()
    by_segment = whole(read_survey(write_csv(tmp_path / "long.csv", [LONG, *rows[:-4]]))).findings
    assert [(f.level, f.items) for f in by_segment] == [("warning", ("country:chile: 1 question, all others at least 3",))]
    by_question = sorted(rows, key=lambda row: row[1])[:-2]
    (finding,) = whole(read_survey(write_csv(tmp_path / "long.csv", [LONG, *by_question]))).findings
    assert "Q2?: 1 segment, all others at least 2" in finding.items


def test_counts_that_n_says_are_not_all_make_no_distribution(tmp_path: Path, write_csv: WriteCsv) -> None:
    header = [*LONG[:5], "count", "n"]
    rows = [["S9", "Good?", o, "country", c, 20, 50] for o, c in (("Yes", "Kenya"), ("No", "Kenya"), ("Yes", "Chile"))]
    kenya, chile = read_survey(write_csv(tmp_path / "long.csv", [header, *rows])).answers
    assert kenya.percentages == pytest.approx((50, 50))
    assert (chile.percentages, chile.n) == (pytest.approx((40, 0)), 50)


def test_a_question_that_no_segment_of_a_json_file_answers_stops_it(tmp_path: Path) -> None:
    question = {"type": "single-select", "options": ["Yes", "No"]}
    answer = {"questionId": "q1", "distribution": [60, 40]}
    document = {
        "surveyId": "s9",
        "questions": {name: {**question, "text": f"{name}?"} for name in ("q1", "q2")},
        "segments": [{"id": "k", "attributes": {"country": "Kenya"}, "sampleSize": 50, "responses": [answer]}],
    }
    (tmp_path / "s9.json").write_text(json.dumps(document), encoding="utf-8")
    assert "No segment has an answer to these questions: 1 question: q2?" in refused(read_survey(tmp_path / "s9.json"))


def test_the_published_rounds_are_whole(shared: Path) -> None:
    for number in range(1, 6):
        for path in (shared / "global-dialogues" / f"GD{number}", shared / "surveys" / f"gd{number}.json"):
            assert {f.level for f in whole(read_survey(path)).findings} <= {"info"}


def test_the_published_round_cut_at_a_line_end_is_refused(shared: Path, tmp_path: Path) -> None:
    for file in (shared / "global-dialogues" / "GD1").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    aggregate = tmp_path / "GD1_aggregate_standardized.csv"
    lines = aggregate.read_text(encoding="utf-8").splitlines(keepends=True)
    polls = [i for i, line in enumerate(lines) if ",Poll Single Select," in line]
    aggregate.write_text("".join(lines[: polls[-3]]), encoding="utf-8")
    assert "GD1_aggregate_standardized.csv lacks: 1 question: " in refused(read_survey(tmp_path, "GD1"))

"""A survey that was cut, or whose columns were renamed, is an error that says what is missing, and an option lets it pass."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.completeness import (
    ALLOWANCES,
    MISSING_ATTRIBUTES,
    MISSING_QUESTIONS,
    MULTI_SELECT,
    has_several_answers,
    remove_multi_select,
    require_whole_survey,
    sum_tolerance,
)
from dtef_pipeline.survey.model import Survey
from dtef_pipeline.survey.observations import observe

POLL = "Poll Single Select"
HALF = ("50.0%", "50.0%")
GUIDE = ["Item type (dropdown)", "Content", "Poll or Category Option 1", "Poll or Category Option 2"]
Write = Callable[..., Path]
WriteCsv = Callable[[Path, Sequence[Sequence[object]]], Path]


def refused(survey: Survey) -> str:
    with pytest.raises(SurveyError) as raised:
        require_whole_survey(survey)
    return str(raised.value)


def warnings(survey: Survey, code: str) -> list[str]:
    return [
        item
        for f in require_whole_survey(survey, [code]).findings
        if (f.code, f.level) == (code, "warning")
        for item in f.items
    ]


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
    assert "that GD9_aggregate_standardized.csv lacks: 3 questions: q2; Third?; Fourth?; " in said
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
    assert "attributes that GD9_discussion_guide.csv asks for: 1 attribute: gender: Your" in said
    assert "columns that were not read: Sex: F, Sex: M" in said
    assert ALLOWANCES[MISSING_ATTRIBUTES] in said
    assert require_whole_survey(survey, ALLOWANCES)


ASKED = (("Good?", "A", 50), ("Good?", "B", 50))
LONG = ["round", "question", "option", "attribute", "value", "percent", "n"]


@pytest.mark.parametrize(
    ("shares", "cut"),
    [
        ({"India": (60, 1000), "Kenya": (70, 50), "Chile": (100, 40)}, True),  # nobody in Chile chose what is gone
        ({"India": (100, 1000), "Kenya": (70, 50), "Chile": (100, 40)}, False),  # a fault of one segment, which is set aside
        ({"India": (60, 1000), "Kenya": (130, 50), "Chile": (90, 40)}, False),  # one may choose several options
    ],
)
def test_options_are_missing_where_segments_with_most_respondents_fall_short(
    tmp_path: Path, write_csv: WriteCsv, shares: dict[str, tuple[int, int]], cut: bool
) -> None:
    """A question that had lost its last option was scored in the segments in which nobody had chosen that."""
    whole_question = [
        ["S9", "Good?", option, "country", country, 50, n] for country, (_, n) in shares.items() for option in "AB"
    ]
    rows = [
        ["S9", "Which?", option, "country", country, share / 2, n] for country, (share, n) in shares.items() for option in "AB"
    ]
    survey = read_survey(write_csv(tmp_path / "long.csv", [LONG, *whole_question, *rows]))
    if cut:
        assert "options are missing: 1 question: Which?" in refused(survey)
        left = require_whole_survey(survey, ALLOWANCES)
        assert ([q.text for q in left.questions], {a.question_id for a in left.answers}) == (["Good?"], {"Good?"})
    else:
        assert len(require_whole_survey(survey).questions) == 2


@pytest.mark.parametrize("column", ["percent", "count"])
def test_a_question_with_one_option_is_left_out_or_has_lost_the_others(
    tmp_path: Path, write_csv: WriteCsv, column: str
) -> None:
    def read(share: int) -> Survey:
        rows = [["S9", question, o, "country", "India", n, 100] for question, o, n in (*ASKED, ("Sure?", "Yes", share))]
        return read_survey(write_csv(tmp_path / "long.csv", [[*LONG[:5], column, "n"], *rows]))

    left = require_whole_survey(read(100))
    assert ([q.text for q in left.questions], {a.question_id for a in left.answers}) == (["Good?"], {"Good?"})
    assert [(f.code, f.items) for f in left.findings] == [("single-option-question", ("Sure?",))]
    assert "options are missing: 1 question: Sure?" in refused(read(60))


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_an_option_of_the_guide_that_has_no_row_stops_a_round(round_directory: Write, write_csv: WriteCsv, lost: int) -> None:
    """Nobody in the largest segments had chosen it, so that the percentages summed to 100 without it."""
    listed = ["Yes", "Don't know", "No"]
    options = [option for option in listed if option != listed[lost]]
    rows = [("q1", POLL, "Is it good?", option) for option in options]
    folder = round_directory({"O7: Kenya": HALF}, rows)
    header, entry = [*GUIDE, "Poll or Category Option 3"], ["poll single select", "Is it good?"]
    write_csv(folder / "GD9_discussion_guide.csv", [header, [*entry, *listed]])
    said = refused(read_survey(folder))
    assert "GD9_discussion_guide.csv lists options that GD9_aggregate_standardized.csv lacks: 1 question: " in said
    assert f"Is it good?: {listed[lost]}; " in said
    write_csv(folder / "GD9_discussion_guide.csv", [header, [*entry, *(f"{option}, really" for option in options)]])
    assert require_whole_survey(read_survey(folder)).questions


def test_counts_and_guide_that_lack_questions_stop_a_round(round_directory: Write, write_csv: WriteCsv) -> None:
    """Cut after half their lines, they made n of segments and another order of options out of half a round, with exit code 0."""
    rows = [(f"q{q}", POLL, f"Question {q}?", option) for q in (1, 2) for option in ("Yes", "No")]
    folder = round_directory({"O7: Kenya": HALF * 2}, rows, counts={"q1": {"O7: Kenya": 50}})
    survey = read_survey(folder)
    assert "The counts file has no row for these questions" in refused(survey)
    assert warnings(survey, MISSING_QUESTIONS) == ["Question 2?"]
    folder = round_directory({"O7: Kenya": HALF * 2}, rows)
    write_csv(folder / "GD9_discussion_guide.csv", [GUIDE, ["poll single select", "Question 1?", "Yes", "No"]])
    assert "GD9_discussion_guide.csv lacks these questions" in refused(read_survey(folder))


def test_segments_that_the_counts_have_and_no_column_are_named_with_their_share(round_directory: Write) -> None:
    columns = dict.fromkeys(["O3: Female", "O7: Kenya"], HALF)
    lost = {"O3: Male": 40, "O7: Chile": 30, "O7: Peru": 0, "O3: Male (40) - Weighted Score": 2}
    counts: dict[str, object] = {"All": 100, "O3: Female": 60, "O7: Kenya": 70} | lost
    folder = round_directory(columns, counts={"q1": counts})
    table = folder / "GD9_segment_counts_by_question.csv"
    header, cells = ",".join(["Question ID", "Question Text", *counts]), ",".join(["q1", "", *map(str, counts.values())])
    table.write_text(f"{header}\n{cells}\n", encoding="utf-8")
    (found,) = [f for f in require_whole_survey(read_survey(folder)).findings if f.level == "error"]
    assert found.code == "lost-column"
    assert found.items == ("O3: Male (40 of 100 respondents, 40%)", "O7: Chile (30 of 100 respondents, 30%)")
    table.write_text(f"{header},O4: Urban,O1: French\n{cells},55,55\n", encoding="utf-8")
    survey = read_survey(folder)
    assert "attributes that GD9_segment_counts_by_question.csv has: 1 attribute: environment: O4: Urban; " in refused(survey)
    languages = [f for f in survey.findings if "O1: French (55 of 100 respondents, 55%)" in f.items]
    assert [f.level for f in languages] == ["warning"], "aggregates are published without languages"


WITHOUT_COLUMN = ["lost-column", "respondents-without-column"]


def test_segments_that_a_question_lists_are_named_where_many_respondents_are_in_no_column(
    round_directory: Write, write_csv: WriteCsv
) -> None:
    """GD4 without its column of 28 % of the respondents, in aggregate and counts alike, was read without a word."""
    folder = round_directory({})
    aggregate, table, guide = (
        folder / f"GD9_{name}.csv" for name in ("aggregate_standardized", "segment_counts_by_question", "discussion_guide")
    )

    def found(gender: dict[str, int], *, asked: int = 1000, listed: bool = True) -> list[tuple[str, str, tuple[str, ...]]]:
        columns = [*gender, "O7: Kenya"]
        halves = [["q1", POLL, "Is it good?", option, *["50%"] * len(columns)] for option in ("Yes", "No")]
        write_csv(aggregate, [["Question ID", "Question Type", "Question", "Response", *columns], *halves])
        counts = [["q1", "Is it good?", 1000, *gender.values(), 1000], ["g", "Your gender?", asked, *gender.values(), asked]]
        write_csv(table, [["Question ID", "Question Text", "All", *columns], *counts])
        asks = [["onboarding single select", "Your gender?", "Female", "Male"]] * listed
        write_csv(guide, [GUIDE, *asks, ["poll single select", "Is it good?", "Yes", "No"]])
        findings = read_survey(folder).findings
        return [(f.level, f.message, f.items) for f in findings if f.code in WITHOUT_COLUMN]

    ((level, message, items),) = found({"O3: Female": 600})
    assert (level, items) == ("error", ("Your gender?: Male (400 of 1,000 respondents, 40%)",))
    assert message.startswith("GD9_discussion_guide.csv lists these segments")
    assert not found({"O3: Female": 600}, asked=600), "all who were asked are in a column: nobody chose the other"
    assert not found({"O3: Female": 995}), "too few to be a segment"
    ((level, _, items),) = found({"O3: Female": 600}, listed=False)
    assert (level, items) == ("warning", ("gender (400 of 1,000 respondents, 40%)",))
    assert not found({"O3: Female": 600, "O3: Mal": 400}), "the column that was not read is named already"


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

"""The traps of the Global Dialogues layout, one test each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.model import Answer, Survey
from dtef_pipeline.survey.observations import observe

CONCERN = ("More excited than concerned", "Equally concerned and excited", "More concerned than excited")
POLL = "Poll Single Select"
HALF = ("50.0%", "50.0%")
Write = Callable[..., Path]


def keys(survey: Survey) -> list[str]:
    return [s.key for s in survey.segments]


def items(survey: Survey, code: str) -> list[str]:
    return [item for f in survey.findings if f.code == code for item in f.items]


def answer(survey: Survey, segment: str) -> Answer:
    return next(a for a in survey.answers if a.segment == segment)


def test_moved_attributes_and_uk_regions_are_read_by_their_values(round_directory: Write) -> None:
    """GD6UK: religion is O5, country O6, AI concern O7, UK region O8."""
    named = {
        "O5: Christianity": "religion:christianity",
        "O5: Other": "religion:other",
        "O6: United Kingdom": "country:united-kingdom",
        "O6: Other": "country:other",
        f"O7: {CONCERN[0]}": "aiConcern:more-excited-than-concerned",
        "O8: South East": "ukRegion:south-east",
    }
    survey = read_survey(round_directory(dict.fromkeys(named, HALF), name="GD6UK"))
    assert survey.round == "GD6UK"
    assert keys(survey) == list(named.values())


def test_unknown_columns_are_reported_as_errors_and_never_read(round_directory: Write) -> None:
    survey = read_survey(round_directory(dict.fromkeys(["O7: Kenya", "O7: Atlantis", "O9: Left-handed", "O9: Other"], HALF)))
    assert keys(survey) == ["country:kenya"]
    assert items(survey, "unknown-column") == ["O7: Atlantis", "O9: Left-handed", "O9: Other"]
    assert {f.level for f in survey.findings if f.code == "unknown-column"} == {"error"}


def test_two_filled_columns_of_one_segment_are_a_fault(round_directory: Write) -> None:
    with pytest.raises(
        SurveyError, match=r"csv:1: several columns make the same segment 'country:turkey'; got \['O7: Turkey', 'O7: Tü"
    ):
        read_survey(round_directory({"O7: Turkey": HALF, "O7: Türkiye": HALF}))


def test_blank_cells_are_missing_not_zero(round_directory: Write) -> None:
    survey = read_survey(round_directory({"O7: Kenya": ("50.0%", ""), "O7: India": ("", "")}))
    assert answer(survey, "country:kenya").percentages == (pytest.approx(50), None)
    quarantine = observe(survey).quarantine.to_pylist()
    assert [(q["segment"], q["question_id"], q["reason"]) for q in quarantine] == [
        ("country:kenya", "q1", "blank-cells"),
        ("country:india", None, "no-data"),
    ]


def test_a_cell_that_is_no_number_sets_its_pair_aside_and_the_rest_goes_on(round_directory: Write) -> None:
    rows = [(q, POLL, f"Is {q} good?", o) for q in ("q1", "q2") for o in ("Yes", "No")]
    observed = observe(read_survey(round_directory({"O7: Kenya": ["n/a", "34,2%", "40%", "60%"]}, rows)))
    assert observed.responses["question_id"].to_pylist() == ["q2"]
    (aside,) = observed.quarantine.to_pylist()
    assert (aside["question_id"], aside["reason"], aside["line"]) == ("q1", "not-a-number", 2)
    assert aside["detail"].startswith("cells 'n/a', '34,2%'; ")


def test_counts_come_from_the_question_or_else_from_the_segment(round_directory: Write) -> None:
    rows = [(q, POLL, f"Is {q} good?", o) for q in ("q1", "q2", "q3", "q4") for o in ("Yes", "No")]
    counts = {"q1": {"O7: Kenya": "12.0"}, "q2": {"O7: Kenya": ""}, "q3": {"O7: Kenya": "<NA>"}}
    table = observe(read_survey(round_directory({"O7: Kenya": HALF * 4}, rows, counts))).responses
    assert table.select(["n", "n_source", "segment_n"]).to_pylist() == [
        {"n": 12, "n_source": source, "segment_n": 12} for source in ("question", "segment", "segment", "segment")
    ]


def test_a_folder_named_otherwise_than_its_files_is_a_warning(round_directory: Write) -> None:
    directory = round_directory({"O7: Kenya": ["20%", "80%"]}, [("q1", POLL, "How much?", option) for option in ("A", "B")])
    assert "folder-named-otherwise" not in {f.code for f in read_survey(directory).findings}
    survey = read_survey(directory.rename(directory.with_name("GD9x")))
    (found,) = [f for f in survey.findings if f.code == "folder-named-otherwise"]
    assert (survey.round, found.level, found.items) == ("GD9X", "warning", ("GD9",))


def test_the_discussion_guide_gives_the_option_order(round_directory: Write, write_csv: Callable[..., Path]) -> None:
    rows = [("q1", POLL, "How much?", option) for option in ("A little", "A lot", "None", "Other")]
    directory = round_directory({"O7: Kenya": ["20%", "30%", "45%", "5%"]}, rows)
    header = ["Content", "Poll or Category Option 1", "Poll or Category Option 2", "Poll or Category Option 3"]
    guide = [[], header, ["How much?", "x", "y", ""], ["How much? ", "None", "A little\t", "A lot"]]
    without = read_survey(directory)
    assert without.questions[0].options == ("A little", "A lot", "None", "Other")
    assert [f.level for f in without.findings if f.code == "no-guide-file"] == ["warning"]
    write_csv(directory / "GD9_discussion_guide.csv", guide)
    survey = read_survey(directory)
    assert "no-guide-file" not in {f.code for f in survey.findings}
    assert survey.questions[0].options == ("None", "A little", "A lot", "Other")
    assert survey.answers[0].percentages == pytest.approx((45, 20, 30, 5))


GOOD = ("q1", POLL, "Good?", "Yes")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [GOOD, ("q1", POLL, "Good?", "yes ")],
            r"csv:2: question q1 has the same option twice; got \['Yes', 'yes'\]; allowed: each",
        ),
        ([GOOD, ("q1", POLL, "Bad?", "No")], r"csv:3: duplicate question id q1: .*line 2; got 'Bad\?'; allowed: Good\?"),
        ([GOOD, ("q2", POLL, "Bad?", "No"), GOOD], r"csv:4: duplicate question id q1"),
        ([GOOD, ("q1", POLL, "Good?", "")], r"csv:2: question q1 has no options"),
        ([("", POLL, "Good?", "Yes")], r"csv:2: a row without Question ID; got 'Good\?'"),
        ([("o1", "Ask Opinion", "Why?", "Because")], "no question to predict"),
    ],
)
def test_faults_name_file_line_what_arrived_and_what_is_allowed(
    round_directory: Write, rows: list[tuple[str, str, str, str]], message: str
) -> None:
    with pytest.raises(SurveyError, match=message):
        read_survey(round_directory({"O7: Kenya": ["1%"] * len(rows)}, rows))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        ("Question ID,é\n".encode("latin-1"), "not a CSV file in UTF-8"),
        (b"Question ID,Question Type,Question,Response,O7: Kenya\nq1,Poll Single Select,Good?\n", "csv:2: .*length; got 3;"),
    ],
)
def test_unreadable_files_are_faults(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "GD9").mkdir()
    (tmp_path / "GD9" / "GD9_aggregate_standardized.csv").write_bytes(content)
    with pytest.raises(SurveyError, match=message):
        read_survey(tmp_path / "GD9")


def test_of_repeated_attributes_the_lower_number_is_used_wherever_it_stands(round_directory: Write) -> None:
    """GD5: O8-O13 ask O2-O7 again; O10 stands before O4 in the file, because columns are sorted as text."""
    first, again = ("60.0%", "40.0%"), ("10.0%", "90.0%")
    survey = read_survey(
        round_directory(
            {"O10: Rural": again, "O10: Urban": again, "O10: Suburban": again, "O4: Rural": first, "O4: Urban": first}
        )
    )
    assert keys(survey) == ["environment:rural", "environment:urban"]
    assert answer(survey, "environment:rural").percentages == pytest.approx((60, 40))
    assert items(survey, "repeated-attribute") == ["O10: Rural", "O10: Urban", "O10: Suburban"]


def test_profile_questions_are_left_out_but_ai_concern_stays(round_directory: Write) -> None:
    rows = [("a", POLL, "How old are you?", age) for age in ("Less than 18", "18-25")]
    rows += [("c", POLL, "How do you feel?", concern) for concern in CONCERN]
    rows += [("w", POLL, "Which age would you rather have?", age) for age in ("Less than 18", "18-25")]
    concern, rather = ["30%", "30%", "40%"], ["60%", "40%"]
    columns = {"O2: &lt;18": ["100.0%", "0.0%"], "O2: 18-25": ["0.0%", "100.0%"], f"O5: {CONCERN[0]}": ["5.0%", "95.0%"]}
    survey = read_survey(round_directory({name: [*age, *concern, *rather] for name, age in columns.items()}, rows))
    assert [q.id for q in survey.questions] == ["c", "w"]
    assert items(survey, "profile-question") == ["How old are you?"]


def test_counts_are_found_by_value_where_the_files_spell_it_differently(round_directory: Write) -> None:
    rows = [("q1", POLL, "Is it good?", o) for o in ("Yes", "No")]
    counts = {"q1": {"O7: Türkiye": "12", "o7 - Kenya": "14"}}
    directory = round_directory({"O7: Türkiye": HALF, "o7 - Kenya": HALF, "O7: Chile": HALF}, rows, counts)
    file = next(directory.glob("*counts*"))
    header = {"O7: Türkiye": "O7: Turkey", "o7 - Kenya": "O7:Kenya", "O7: Chile": "Other column"}
    text = file.read_text(encoding="utf-8")
    for name, other in header.items():
        text = text.replace(name, other)
    file.write_text(text, encoding="utf-8")
    survey = read_survey(directory)
    assert {s.key: s.n for s in survey.segments} == {"country:turkey": 12, "country:kenya": 14, "country:chile": None}
    assert items(survey, "no-counts-column") == ["O7: Chile"]


def test_without_a_counts_file_nothing_is_used_and_the_finding_says_so(round_directory: Write) -> None:
    directory = round_directory({"O7: Kenya": HALF})
    next(directory.glob("*counts*")).unlink()
    observed = observe(read_survey(directory))
    assert observed.responses.num_rows == 0
    assert observed.quarantine["reason"].to_pylist() == ["n-unknown"]
    assert {"no-counts-file", "nothing-usable"} <= set(observed.findings["code"].to_pylist())


def test_weighted_scores_ranks_regions_and_branches_are_no_segments(round_directory: Write) -> None:
    derived = ["O2: 18-25 (247) - Weighted Score", "Africa (12) - Weighted Score", "All(1009) - Rank 1 Count"]
    plain = ["Africa", "44+", "Branch A", "Branches (Have you ever, at all?)"]
    survey = read_survey(round_directory(dict.fromkeys(["O2: 18-25", *derived, *plain], HALF)))
    assert keys(survey) == ["ageGroup:18-25"]
    assert items(survey, "derived-column") == derived
    assert items(survey, "non-segment-column") == plain

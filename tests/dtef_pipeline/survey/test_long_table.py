"""The long-table adapter: one row per option and segment in CSV or Parquet, faults with file and line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.adapters import read_survey, read_surveys

HEADER = ["round", "question", "option", "attribute", "value", "percent", "n"]
ROWS = [
    ["GD9", "Good?", "Yes", "country", "Türkiye", "60", "40"],
    ["GD9", "Good?", "No", "country", "Türkiye", "40%", "40"],
    ["GD9", "Good?", "Yes", "Age group", "65+", "70", "20"],
    ["GD9", "Good?", "No", "Age group", "65+", "30", "20"],
]
COUNTS = ["round", "question_id", "question", "option", "attribute", "value", "count"]

Table = Sequence[Sequence[object]]


@pytest.fixture
def table(tmp_path: Path, write_csv: Callable[[Path, Table], Path]) -> Callable[..., Path]:
    return lambda *rows: write_csv(tmp_path / "table.csv", rows)


Write = Callable[..., Path]


def test_a_row_for_each_option_and_segment_makes_a_survey(table: Write) -> None:
    survey = read_survey(table(HEADER, *ROWS))
    assert survey.round == "GD9"
    assert [(s.key, s.n) for s in survey.segments] == [("country:turkey", None), ("ageGroup:65-plus", None)]
    assert [(q.id, q.options) for q in survey.questions] == [("Good?", ("Yes", "No"))]
    assert [(a.n, a.line) for a in survey.answers] == [(40, 2), (20, 4)]
    assert [a.percentages for a in survey.answers] == [pytest.approx((60, 40)), pytest.approx((70, 30))]


def test_an_option_without_a_row_was_chosen_by_nobody_but_a_blank_cell_is_missing(table: Write) -> None:
    rows = [
        ["GD9", "q1", "Good?", o, "country", c, n]
        for o, c, n in (("Yes", "Kenya", 12), ("No", "India", 5), ("Yes", "India", ""))
    ]
    kenya, india = read_survey(table(COUNTS, *rows)).answers
    assert (kenya.percentages, kenya.n) == (pytest.approx((100, 0)), 12)
    assert (india.percentages, india.n) == ((None, 5), None)


def test_a_cell_without_a_number_is_reported_with_its_own_line(table: Write) -> None:
    """The line of the pair's first row was reported."""
    rows = [*ROWS[:3], ["GD9", "Good?", "No", "Age group", "65+", "oops", "20"]]
    assert [answer.line for answer in read_survey(table(HEADER, *rows)).answers] == [2, 5]


def test_other_separators_and_encodings_are_named_with_line_and_byte(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    lines = [",".join(row) for row in [HEADER, *ROWS]]
    path.write_text("\n".join(line.replace(",", ";") for line in lines), encoding="utf-8")
    with pytest.raises(SurveyError, match=r"csv:1: columns are separated by semicolons; .*; allowed: commas"):
        read_survey(path)
    path.write_bytes("\n".join(lines).encode("latin-1"))
    place = len(lines[0]) + 1 + lines[1].index("ü") + 1
    with pytest.raises(SurveyError, match=rf"csv:2: not a CSV file in UTF-8; got 'byte 0xfc at byte {place} of the file'"):
        read_survey(path)


def counts_of(table: Write, n: tuple[object, object], *pairs: tuple[float, float]) -> Path:
    """A table of counts: (yes, no) of each pair, and their n."""
    rows = [
        ["GD9", "q1", "Good?", option, "country", country, count, n[at]]
        for at, (country, pair) in enumerate(zip(("Kenya", "Chile"), pairs, strict=True))
        for option, count in zip(("Yes", "No"), pair, strict=True)
    ]
    return table([*COUNTS, "n"], *rows)


def test_weighted_counts_are_shares_of_the_stated_n(table: Write) -> None:
    """Counts of 52 and 10 people among 40 were stored as 62 people, and no word was said."""
    for first in ((52, 10), (12.5, 29.5)):
        survey = read_survey(counts_of(table, (40, 60), first, (20, 20)))
        assert [a.n for a in survey.answers] == [40, 60]
        assert survey.answers[0].percentages[0] == pytest.approx(100 * first[0] / sum(first))
        (finding,) = survey.findings
        assert (finding.level, finding.code) == ("warning", "weighted-counts")
        assert f"sum to {sum(first):g}, n is 40" in finding.items[0]


def test_weighted_counts_without_n_are_one_clear_error(table: Write) -> None:
    """They were called no number, and no number of people."""
    allowed = r"allowed: .*`n`.*`n_effective`.*`percent`"
    with pytest.raises(SurveyError, match=rf"csv:2: weighted counts without .*; got '12.5, 10 at line 2'; {allowed}"):
        read_survey(counts_of(table, ("", ""), (12.5, 10), (20, 20)))


def test_counts_above_n_and_below_it_are_one_finding_of_their_question(table: Write) -> None:
    """Two findings said that the sum is taken for n, and that it is not."""
    survey = read_survey(counts_of(table, (40, 60), (30, 30), (20, 20)))
    (finding,) = survey.findings
    assert finding.code == "counts-above-n"
    assert "`percent`" in finding.message
    assert [item.partition(": ")[2] for item in finding.items] == [
        "the counts sum to 60, n is 40",
        "the counts sum to 40, n is 60",
    ]


def test_parquet_says_the_same_as_csv(table: Write, tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    numbers = [[*row[:5], float(str(row[5]).rstrip("%")), int(row[6])] for row in ROWS]
    pq.write_table(pa.table({name: [row[i] for row in numbers] for i, name in enumerate(HEADER)}), path)
    from_csv, from_parquet = read_survey(table(HEADER, *ROWS)), read_survey(path)
    assert from_parquet.segments == from_csv.segments
    assert [a.percentages for a in from_parquet.answers] == [pytest.approx(a.percentages) for a in from_csv.answers]


def test_a_file_of_several_rounds_is_read_whole_or_by_round(table: Write) -> None:
    path = table(HEADER, *ROWS, *[["GD10", *row[1:]] for row in ROWS])
    assert [s.round for s in read_surveys(path)] == ["GD9", "GD10"]
    assert read_survey(path, "gd10").round == "GD10"
    with pytest.raises(SurveyError, match=r"several rounds in one file; got \['GD9', 'GD10'\]; allowed: one round"):
        read_survey(path)
    with pytest.raises(SurveyError, match=r"no such round in the file; got 'GD7'; allowed: GD9, GD10"):
        read_survey(path, "GD7")


KENYA = ["GD9", "Good?", "Yes", "country", "Kenya"]


def of_city(question: str, city: str, other_question: str, other_city: str) -> Table:
    """A table of counts with two rows of one question id."""
    rows = (("Yes", question, city), ("No", other_question, other_city))
    return [COUNTS, *(["GD9", "q1", text, option, "city", place, "1"] for option, text, place in rows)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [HEADER[:4] + HEADER[5:], ["GD9", "Good?", "Yes", "country", "60", "1"]],
            r"csv:1: missing column value; got 'round, q",
        ),
        ([HEADER, *ROWS, ROWS[0]], r"csv:6: segment country:turkey, question Good\?, option 'Yes' .*line 2; allow"),
        ([HEADER, [*KENYA, "6", "few"]], r"csv:2: n is not a number of respondents; got 'few'; allowed: a who"),
        ([HEADER, ROWS[0], [*ROWS[1][:-1], "41"]], r"csv:3: n of .*country:turkey .* Good\? differs from line 2; got '41'"),
        ([HEADER, ["GD9", "Good?"]], r"csv:2: .*length; got 2; allowed: 7 cells"),
        (of_city("Good?", "A", "Bad?", "A"), r"csv:3: question id q1 .*line 2; got 'Bad\?'; allowed: Good\?"),
        (of_city("Good?", "A b", "Good?", "A-b"), r"csv:3: .*the same key 'city:a-b'; got 'A-b'; allowed: A b"),
        (
            [[*HEADER, "scale"], [*ROWS[0], "ordinal"], [*ROWS[1], "ranked"]],
            r"csv:3: .*scale; got 'ranked'; allowed: ordinal, nom",
        ),
        ([[*HEADER, "battery"], [*ROWS[0], "B1"], [*ROWS[1], "B2"]], r"csv:3: battery .*from line 2; got 'B2'; allowed: B1"),
    ],
)
def test_faults_name_file_line_what_arrived_and_what_is_allowed(table: Write, rows: Table, message: str) -> None:
    with pytest.raises(SurveyError, match=message):
        read_survey(table(*rows))


PLACES = [*HEADER, "role", "position"]


def of_options(*options: tuple[str, str, str], extra: tuple[str, ...] = ()) -> list[list[str]]:
    """One row for each (option, role, position) in Kenya."""
    share = str(100 / len(options))
    return [["GD9", "Spending?", o, "country", "Kenya", share, "40", role, place, *extra] for o, role, place in options]


@pytest.mark.parametrize(
    ("options", "scale", "message"),
    [
        ([("A", "silent", ""), ("B", "", "")], "", r"csv:2: .*role.*'silent'.*substantive, dont_know, refused, volunteered"),
        ([("A", "", "1"), ("B", "", "second")], "", r"csv:3: .*position.*'second'.*number"),
        ([("A", "", "1"), ("B", "", "1,5")], "", r"csv:3: .*position.*'1,5'.*number"),
        ([("A", "", "1"), ("B", "", "inf")], "", r"csv:3: .*position.*'inf'.*number"),
        ([("A", "", "1"), ("B", "", "2"), ("C", "refused", "3")], "", r"csv:4: option 'C' .*refused.*position.*3"),
        ([("A", "", "1"), ("B", "", "2"), ("C", "substantive", "")], "", r"csv:4: option 'C' .*no position"),
        ([("A", "", "1"), ("B", "", "2")], "nominal", r"csv:2: option 'A' .*nominal"),
        ([("A", "", "1"), ("B", "", "1")], "ordinal", r"csv:2: .*position.*two different"),
    ],
)
def test_a_wrong_role_or_position_is_refused_with_its_line(
    table: Write, options: list[tuple[str, str, str]], scale: str, message: str
) -> None:
    with pytest.raises(SurveyError, match=message):
        read_survey(table([*PLACES, "scale"], *of_options(*options, extra=(scale,))))

"""`dtef explain NAME` says what the columns of every board mean; boards end with one line that names it."""

from __future__ import annotations

import re
from pathlib import Path

from dtef_pipeline.cli.families import family_record, find_columns, list_board_names
from dtef_pipeline.families import FAMILIES
from dtef_pipeline.survey.boards.meanings import list_board_columns
from dtef_pipeline.survey.boards.survey_boards import PUBLISHED
from tests.dtef_pipeline.cli.commands import ok, refused
from tests.strict_json import strict


def test_every_column_of_every_board_is_explained() -> None:
    for view in PUBLISHED:
        assert {*list_board_columns(view.name)} <= {"question", *find_columns(f"survey/{view.name}")}, view.name
    for family in FAMILIES:
        for view in family_record(family.name).boards:
            columns = find_columns(f"{family.name}/{view.name}")
            assert {*view.columns} <= {"question", *columns}, view.name


def test_every_name_has_columns_with_a_meaning() -> None:
    for name in list_board_names():
        columns = find_columns(name)
        assert columns, name
        assert [column for column, meaning in columns.items() if len(meaning) < 4] == [], name


def test_explain_prints_a_row_for_each_column() -> None:
    rows = strict(ok("explain", "survey/gaps", "--json"))
    assert [*rows[0]] == ["column", "meaning"]
    assert {row["column"] for row in rows} == {*find_columns("survey/gaps")}
    assert "p_adjusted" in ok("explain", "survey/gaps")


def test_an_unknown_name_is_refused_with_the_nearest_and_the_place_of_the_list() -> None:
    message = refused("explain", "gaps")
    assert "Did you mean survey/gaps?" in message
    assert "`dtef explain`" in message
    assert len(message) < 200
    assert [row["name"] for row in strict(ok("explain", "--json"))] == list_board_names()
    assert "Did you mean rubric_board" in refused("explain", "rubricboard")


def test_a_view_without_rows_says_which_option_left_them_out(reading: Path) -> None:
    assert "--context 2 leaves only one: leave --context out" in refused("board", "--by", "context", "--context", "2")
    assert "nothing is scored for --condition x/y" in refused("board", "--by", "comparisons", "--condition", "x/y")


def test_baselines_have_no_verdict_on_context(reading: Path) -> None:
    lines = ok("board", "--by", "context").splitlines()
    (uniform,) = [line for line in lines if line.strip().startswith("baseline/uniform")]
    assert not re.search("undecided|stereotype|adapting|hurt", uniform)
    assert re.search("undecided|stereotype|adapting|hurt", next(line for line in lines if line.strip().startswith("fake")))

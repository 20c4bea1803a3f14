"""Whoever sees a board sees what its columns mean: beneath it, in the help of the command, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dtef_pipeline.cli.survey.columns import explain_columns
from dtef_pipeline.cli.survey.run_summary import _COMPARED
from dtef_pipeline.survey.boards.meanings import EXPERIMENT, PLAIN, list_meanings, view_columns
from dtef_pipeline.survey.boards.survey_views import PUBLISHED
from tests.dtef_pipeline.cli.commands import CHOSEN, ok, refused

WITHOUT_ROWS = ("reliability",)
"""Views that the state of these tests has no rows for."""


def table_and_lines(printed: str) -> tuple[set[str], dict[str, str]]:
    """The headings of the table, and the lines beneath it by the column that they begin with."""
    table, _, lines = printed.rstrip("\n").rpartition("\n\n")
    rows = table.splitlines()
    rule = next(place for place, line in enumerate(rows) if "──" in line)
    told = dict(re.split(r" {2,}", line, maxsplit=1) for line in lines.splitlines())
    return set(re.split(r" {2,}", rows[rule - 1].strip())), told


@pytest.mark.parametrize(
    "by",
    [
        view.name if view.name in ("segment", "comparisons") else pytest.param(view.name, marks=pytest.mark.thorough)
        for view in PUBLISHED
        if view.name not in WITHOUT_ROWS
    ],
)
def test_every_view_ends_with_a_line_on_each_of_its_columns_that_is_not_plain_english(reading: Path, by: str) -> None:
    shown, told = table_and_lines(ok("board", "--by", by))
    assert set(told) == shown - {name.replace("_", " ") for name in PLAIN}
    assert not [meaning for meaning in told.values() if len(meaning) < 15 or "null" in meaning]
    assert "\n\n" not in ok("board", "--by", by, "--csv")


def test_costs_drift_and_estimate_end_so_too(reading: Path) -> None:
    for command in (["costs"], ["drift"], ["run", "--estimate", "--round", "S1", *CHOSEN, "--model", "gpt-4.1-mini"]):
        printed = ok(*command)
        lines = printed.rstrip("\n").rpartition("\n\n")[2].splitlines()
        assert {line.split("  ")[0] for line in lines} <= {
            name for _, columns in explain_columns(command[0]) for name in columns
        }
        assert len(lines) > 5


@pytest.mark.parametrize(
    ("command", "table"), [("board", "leaderboard"), ("drift", "drift"), ("costs", "costs"), ("run", "run")]
)
def test_the_help_of_a_command_explains_what_it_shows(command: str, table: str) -> None:
    said = " ".join(ok(command, "--help").split())
    sections = explain_columns(table)
    assert sections
    for heading, columns in sections:
        assert heading in said
        assert [name for name, text in columns.items() if f"{name} {text}" not in said] == []


def test_every_column_that_can_be_shown_is_plain_or_explained() -> None:
    for view in PUBLISHED:
        assert {*view_columns(view.name)} <= {*PLAIN, *list_meanings(view.name)}, view.name
    assert {*_COMPARED} <= {*PLAIN, *EXPERIMENT}


def test_a_view_without_rows_says_which_option_left_them_out(reading: Path) -> None:
    assert "--context 2 leaves only one: leave --context out" in refused("board", "--by", "context", "--context", "2")
    assert "nothing is scored for --condition x/y" in refused("board", "--by", "comparisons", "--condition", "x/y")


def test_baselines_have_no_verdict_on_context(reading: Path) -> None:
    lines = ok("board", "--by", "context").splitlines()
    (uniform,) = [line for line in lines if line.strip().startswith("baseline/uniform")]
    assert not re.search("undecided|stereotype|adapting|hurt", uniform)
    assert re.search("undecided|stereotype|adapting|hurt", next(line for line in lines if line.strip().startswith("fake")))

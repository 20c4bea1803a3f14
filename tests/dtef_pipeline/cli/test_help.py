"""`dtef --help` names every command and loads little, every option has a help text, and `dtef explain NAME` explains columns."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from dtef_pipeline.cli import main
from dtef_pipeline.cli.families import family_record, find_columns, list_board_names
from dtef_pipeline.families import FAMILIES
from dtef_pipeline.survey.boards.schemas import list_board_columns
from dtef_pipeline.survey.boards.survey_boards import PUBLISHED
from dtef_pipeline.survey.tables import METRICS
from tests.dtef_pipeline.cli.commands import ok, refused
from tests.strict_json import strict


def all_commands(group: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command below `group`, groups too, with what is typed after `dtef`."""
    for name, command in group.commands.items() if isinstance(group, click.Group) else ():
        yield (*words, name), command
        yield from all_commands(command, (*words, name))


def all_options() -> Iterator[tuple[tuple[str, ...], click.Option]]:
    for words, command in all_commands(main):
        for option in command.params:
            if isinstance(option, click.Option):
                yield words, option


class TestHelp:
    def test_help_lists_every_command(self) -> None:
        text = ok("--help")
        assert isinstance(main, click.Group)
        for name, command in main.commands.items():
            assert re.search(rf"^  {name} +\S", text, re.MULTILINE), name
            assert command.help
            assert "--help" in ok(name, "--help")

    def test_there_are_at_most_45_commands_and_every_family_has_the_same_verbs(self) -> None:
        assert sum(not isinstance(command, click.Group) for _, command in all_commands(main)) <= 45
        for name in (family.name for family in FAMILIES):
            group = main.commands[name]
            assert isinstance(group, click.Group)
            assert list(group.commands)[:6] == ["add", "check", "list", "remove", "run", "board"]

    def test_a_verb_without_a_family_is_about_surveys(self) -> None:
        assert ok("board", "--help").partition("\n")[2] == ok("survey", "board", "--help").partition("\n")[2]
        assert "no such command 'boards'" in refused("boards")

    def test_options_complete_at_the_tab_key(self) -> None:
        """The shell asks for words by variables, as docs/index.md shows."""
        words = ShellComplete(main, {}, "dtef", "_DTEF_COMPLETE").get_completions(["qa", "board", "--by"], "ov")
        assert [word.value for word in words] == ["overall"]

    def test_every_option_has_a_help_text(self) -> None:
        options = list(all_options())
        assert len(options) > 50
        assert [(*words, *option.opts) for words, option in options if not option.help] == []

    @pytest.mark.parametrize("words", [("run", "--round", "GD4"), ("board", "--refresh"), ("board",)])
    def test_an_unknown_metric_is_refused(
        self, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DTEF_WAREHOUSE", str(tmp_path))
        message = refused(*words, "--metric", "luck")
        assert all(metric in message for metric in METRICS)

    def test_help_of_the_installed_command_loads_little_and_so_is_quick(self) -> None:
        """What takes time is loading packages; seconds would measure the machine."""
        command = [sys.executable, "-X", "importtime", str(Path(sys.executable).with_name("dtef")), "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "dtef board" in done.stdout
        loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
        assert "click" in loaded
        assert not loaded & {
            "dagster",
            "litellm",
            "numpy",
            "pandas",
            "pyarrow",
            "duckdb",
            "pydantic",
            "sqlalchemy",
            "assets",
            "resources",
        }
        assert len(done.stderr.splitlines()) < 250


def test_every_column_of_every_board_has_a_meaning() -> None:
    for view in PUBLISHED:
        assert {*list_board_columns(view.name)} <= {"question", *find_columns(f"survey/{view.name}")}, view.name
    for family in FAMILIES:
        for view in family_record(family.name).boards:
            columns = find_columns(f"{family.name}/{view.name}")
            assert {*view.columns} <= {"question", *columns}, view.name
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

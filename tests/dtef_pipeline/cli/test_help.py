"""`dtef --help` names every command in a whole sentence and is quick because it loads little; every option has a help text."""

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
from dtef_pipeline.families import FAMILIES
from dtef_pipeline.survey.tables import METRICS
from tests.dtef_pipeline.cli.commands import ok, refused


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
        assert set(main.commands) == {
            *("survey", "rubric", "qa", "games", "preference"),
            *("report", "costs", "drift", "explain", "sql", "responses", "export", "import", "models", "score", "anchors"),
            *("doctor", "ui", "api", "tokens"),
        }
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

    @pytest.mark.parametrize(
        "words",
        [
            ("run", "--round", "GD4"),
            (
                "board",
                "--refresh",
            ),
            ("board",),
        ],
    )
    def test_an_unknown_metric_is_refused_with_exit_code_2(
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

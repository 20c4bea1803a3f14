"""What a user sees of an error: one line and an exit code, no traceback."""

import tempfile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dtef_pipeline.cli.error_reports import UNEXPECTED, reports_errors
from dtef_pipeline.cli.terminal import say
from tests.dtef_pipeline.cli.commands import SAMPLE, refused


def test_a_command_interrupted_anywhere_ends_with_130() -> None:
    @click.command()
    @reports_errors
    def waits() -> None:
        raise KeyboardInterrupt

    result = CliRunner().invoke(waits)
    assert (result.exit_code, result.stderr) == (130, "\ninterrupted\n")


def test_sentences_are_wrapped_and_commands_are_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "  to have something to compare, ask the same again on another day: `dtef run --round S1 --snapshot NAME`"
    say(text)
    assert capsys.readouterr().out == f"{text}\n", "through a pipe a line is a line"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "72")
    say(text)
    assert capsys.readouterr().out.splitlines() == [
        "  to have something to compare, ask the same again on another day:",
        "  `dtef run --round S1 --snapshot NAME`",
    ]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["preference", "vote"], "preference vote"),
        (["preference", "votes", "v1", "--actions"], "preference votes"),
        (["board", "--json", "--csv"], "board"),
        (["board", "--nosuch"], "board"),
        (["add", "nofile.csv"], "add"),
    ],
)
def test_a_usage_error_is_one_line_that_names_the_help_of_its_command(arguments: list[str], command: str) -> None:
    message = refused(*arguments)
    assert message.startswith("error: ")
    assert message.count("\n") == 1
    assert message.endswith(f" {command} --help`\n")
    assert "vOTE" not in message


def broken() -> None:
    raise KeyError("a fault of ours")


def test_a_bug_is_one_line_with_its_exit_code_and_a_file(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = click.command()(reports_errors(broken))
    result = CliRunner().invoke(command)
    account = state / "dagster" / "dtef-errors.log"
    assert result.exit_code == UNEXPECTED == 70
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: this is a bug of dtef-pipeline: KeyError: 'a fault of ours'; ")
    assert line.endswith(str(account))
    assert "in broken\n" in account.read_text(encoding="utf-8")

    monkeypatch.setenv("DTEF_TRACEBACK", "1")
    assert "in broken\n" in CliRunner().invoke(command).stderr
    monkeypatch.setenv("DTEF_TRACEBACK", "0")
    monkeypatch.setenv("DAGSTER_HOME", "/proc/nope")
    monkeypatch.setattr(tempfile, "tempdir", str(state))
    assert str(state / "dtef-errors.log") in CliRunner().invoke(command).stderr


def test_a_home_of_dagster_that_cannot_be_made_is_named(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (state / "file").touch()
    monkeypatch.setenv("DAGSTER_HOME", str(state / "file" / "home"))
    home = state / "file" / "home"
    for place in (home, home.parent):
        monkeypatch.setenv("DAGSTER_HOME", str(place))
        said = f"{place}: {home.parent} is a file, where a folder is needed; choose another folder with DAGSTER_HOME"
        assert refused("add", SAMPLE) == f"error: cannot make the home of Dagster {said}\n"
    monkeypatch.setenv("DTEF_RESPONSES", "/dev/null/x")
    assert "/dev/null/x: /dev/null is a file, where a folder is needed; choose another place" in refused("responses")


NEEDS_A_HOME = (["add", SAMPLE], ["run", "--round", "S1"], ["board", "--refresh"], ["ui"])


@pytest.mark.parametrize("command", NEEDS_A_HOME, ids=lambda command: command[0])
def test_a_relative_home_of_dagster_is_refused(ingested: Path, monkeypatch: pytest.MonkeyPatch, command: list[object]) -> None:
    """It was made where one stood, and the round that another folder's home knew was "not registered"."""
    monkeypatch.chdir(ingested)
    monkeypatch.setenv("DAGSTER_HOME", "rel")
    assert (
        refused(*command) == f"error: DAGSTER_HOME is rel, which is not a full path: name it as DAGSTER_HOME={ingested}/rel\n"
    )
    assert not (ingested / "rel").exists()


def test_a_missing_warehouse_is_the_reported_reason(ingested: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The reasons were "round S1 is not ingested" and "no scores yet"."""
    (tmp_path / "file").touch()
    readers = [
        ["run", "--round", "S1"],
        ["run", "--estimate", "--round", "S1"],
        ["board", "--refresh"],
        ["board"],
        ["costs"],
        ["sql", "SELECT 1"],
    ]
    for place in ("file", "file/warehouse"):
        monkeypatch.setenv("DTEF_WAREHOUSE", str(tmp_path / place))
        reason = f"cannot be a folder, since {tmp_path}/file is a file; name another place in DTEF_WAREHOUSE"
        said = f"error: the warehouse {tmp_path / place} {reason}\n"
        assert {refused(*command) for command in [*readers, ["ui"], ["add", SAMPLE]]} == {said}
    monkeypatch.setenv("DTEF_WAREHOUSE", "/proc/nope")
    said = "error: there is no warehouse /proc/nope: /proc/nope cannot be made: /proc cannot hold files of users"
    assert {refused(*command) for command in readers} == {f"{said}; name another place in DTEF_WAREHOUSE\n"}
    monkeypatch.setenv("DTEF_WAREHOUSE", str(tmp_path / "new"))
    said = f"error: there is no warehouse {tmp_path}/new: `dtef add PATH` creates it, or name another one in DTEF_WAREHOUSE\n"
    assert {refused(*command) for command in readers} == {said}


def test_an_empty_models_file_is_named_where_a_model_is_missing(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message listed the shipped models, as if the user's own file had not been read."""
    (own := ingested / "own.yaml").write_text("models:\n", encoding="utf-8")
    monkeypatch.setenv("DTEF_MODELS", str(own))
    said = refused("run", "--round", "S1", "--model", "g-switch")
    assert f"'g-switch' ({own} holds none)" in said

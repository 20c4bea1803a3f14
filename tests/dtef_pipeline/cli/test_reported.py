"""What a user sees of an error: one line and an exit code, no traceback."""

import tempfile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dtef_pipeline.cli.reported import UNEXPECTED, reports_errors
from tests.dtef_pipeline.cli.commands import SAMPLE, refused


def test_a_command_interrupted_anywhere_ends_with_130() -> None:
    @click.command()
    @reports_errors
    def waits() -> None:
        raise KeyboardInterrupt

    result = CliRunner().invoke(waits)
    assert (result.exit_code, result.stderr) == (130, "\ninterrupted\n")


def test_a_path_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    @click.command()
    @reports_errors
    def writes() -> None:
        (tmp_path / "missing" / "report.html").write_text("")

    result = CliRunner().invoke(writes)
    assert (result.exit_code, result.stderr) == (
        2,
        f"error: cannot use {tmp_path}/missing/report.html: No such file or directory\n",
    )


def broken() -> None:
    raise KeyError("a fault of ours")


def test_what_no_command_is_prepared_for_is_one_line_with_an_exit_code_of_its_own_and_an_account_in_a_file(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = click.command()(reports_errors(broken))
    result = CliRunner().invoke(command)
    account = state / "dagster" / "dtef-errors.log"
    assert result.exit_code == UNEXPECTED == 70
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: this is a fault of dtef-pipeline itself: KeyError: 'a fault of ours'; ")
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
    said = f"cannot make the home of Dagster {home}: Not a directory; choose another folder with DAGSTER_HOME"
    assert refused("ingest", SAMPLE) == f"error: {said}\n"

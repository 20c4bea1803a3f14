"""What a user sees of an error: one line and an exit code, no traceback."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dtef_pipeline.cli.reported import reports_errors
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


def test_a_home_of_dagster_that_cannot_be_made_is_named(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (state / "file").touch()
    monkeypatch.setenv("DAGSTER_HOME", str(state / "file" / "home"))
    assert str(state / "file") in refused("ingest", SAMPLE)

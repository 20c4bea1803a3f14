"""`dtef --help` names every command and is quick because it loads little."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click

from dtef_pipeline.cli import main
from tests.dtef_pipeline.cli.commands import ok


class TestHelp:
    def test_help_lists_every_command(self) -> None:
        text = ok("--help")
        assert isinstance(main, click.Group)
        assert set(main.commands) == {
            "ingest",
            "run",
            "rollup",
            "estimate",
            "costs",
            "experiment",
            "leaderboard",
            "drift",
            "score",
            "export-blueprints",
            "sql",
            "report",
            "responses",
            "models",
            "ui",
        }
        for name, command in main.commands.items():
            assert re.search(rf"^  {name} +\S", text, re.MULTILINE), name
            assert command.help
            assert "--help" in ok(name, "--help")

    def test_help_of_the_installed_command_loads_little_and_so_is_quick(self) -> None:
        """What takes time is loading packages; seconds would measure the machine."""
        command = [sys.executable, "-X", "importtime", str(Path(sys.executable).with_name("dtef")), "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "leaderboard" in done.stdout
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

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import click

from dtef_pipeline.cli import main
from tests.cli.commands import ok


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

    def test_help_of_the_installed_command_is_quick(self) -> None:
        command = Path(sys.executable).with_name("dtef")
        subprocess.run([command, "--help"], capture_output=True, check=True)
        started = time.monotonic()
        done = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
        assert "leaderboard" in done.stdout
        assert time.monotonic() - started < 0.5

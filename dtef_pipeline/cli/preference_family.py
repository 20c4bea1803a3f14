"""What the commands that take `--family` do with `--family preference`: each is the function of the command's name."""

from __future__ import annotations

import sys

from dtef_pipeline.cli import preference_board


def rollup() -> None:
    sys.exit(preference_board.rollup())

"""The commands below `dtef preference`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import click

from dtef_pipeline.cli.preference_fit_group import fit


@click.group(short_help="Collect people's votes on pairs of responses, and fit scores.")
def preference() -> None:
    """Work with votes: which of two responses a reviewer prefers.

    \b
        dtef preference fit FILE      scores of players from a file of votes
    """


preference.add_command(fit)

"""`dtef games report`: the results of games as pages. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

from pathlib import Path

import click

from dtef_pipeline.cli.reported import reports_errors


@click.command(short_help="Write the results as HTML pages.")
@click.option(
    "--out",
    default="games_report",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to.",
)
@reports_errors
def report(out: Path) -> None:
    """Write the results as HTML pages that need no network: a board per scenario, a page per scenario, and episodes move by move.

    A scenario's page has its rules, all metrics of each player, who met whom, personas by models, and how rewards scatter over seeds. Of each
    scenario a handful of episodes has pages of their own: the best, the worst, and such as went wrong. Where nothing was played yet, the pages
    say what to do. Pages that an earlier report wrote into the folder, and that do not belong to this one, are removed; other files are not
    touched, and where one of them has the name of a page it is left, with an error.

    \b
    Exit code: 0 done; 1 a file was left out.
    """
    from dtef_pipeline.cli import games_report

    games_report.report(out)

"""`dtef qa report`: the results of the qa family as pages. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

from pathlib import Path

import click

from dtef_pipeline.cli.reported import reports_errors


@click.command(short_help="Write the results as HTML pages.")
@click.option(
    "--out",
    default="qa_report",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to.",
)
@reports_errors
def report(out: Path) -> None:
    """Write the results as HTML pages that need no network: boards, bars, comparisons and costs, and a page per part with every item.

    A part with many items has several pages. Pages that an earlier report wrote into the folder, and that do not belong to this one, are
    removed; other files are not touched, and where one of them has the name of a page it is left, with an error.

    \b
    Exit code: 0 done; 1 a file was left out; 2 nothing is scored yet.
    """
    from dtef_pipeline.cli import qa_report

    qa_report.report(out)

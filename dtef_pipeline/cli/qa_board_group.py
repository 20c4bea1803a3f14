"""`dtef qa board`: results of the qa family in the terminal. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

import click

from dtef_pipeline.cli.options import of_served, writes_a_table
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.qa.result_views import QA_VIEW_BY_NAME, QA_VIEWS_SHOWN


@click.command(short_help="Rank models by suite, compare them, and test the scores.", epilog=QA_VIEWS_SHOWN)
@click.option(
    "--by",
    type=click.Choice(list(QA_VIEW_BY_NAME)),
    default="overall",
    show_default=True,
    help="What to show; each choice is explained below.",
)
@click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="SUITE|PATTERN",
    help="Only this suite, such as mmlu, or those that fit; may be repeated.  [default: all]",
)
@of_served
@writes_a_table
@reports_errors
def board(by: str, suites: tuple[str, ...], served: bool, output: str) -> None:
    """Rank models by their mean score with 95 % intervals, over the latest snapshot of each part; or compare them, or test the scores.

    What was asked in another way, or measured by something else, stands on a board of its own. Whole subjects or transcripts are what is
    independent, and at least 5 are needed; within one, and where items have none, it is items.
    """
    from dtef_pipeline.cli import qa_board

    qa_board.show(by, suites, output, served=served)

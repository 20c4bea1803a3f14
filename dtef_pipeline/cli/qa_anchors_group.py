"""`dtef qa anchors`; what it does is in `qa_anchors.py`. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

import sys
from typing import Any

import click

from dtef_pipeline.cli.options import writes_a_table
from dtef_pipeline.cli.qa_options import of_judge, of_qa_budgets
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.run_options import anchors_asked, of_anchors_shown


@click.command(short_help="Show the judge stored answers once more.")
@anchors_asked(50, "Number of judged answers.")
@of_judge
@of_qa_budgets
@of_anchors_shown
@writes_a_table
@reports_errors
def anchors(show: bool, output: str, **given: Any) -> None:
    """Have the judge judge the same stored answers again, night after night: whatever moves is the judge, not the models.

    Anchors are chosen once, spread over the scores, and stay. What was asked in a snapshot is not asked again in it. No model under test is
    asked.

    \b
    Exit code: 0 done; 1 it failed; 2 the options or the set-up need mending; 130 interrupted.
    """
    from dtef_pipeline.cli import qa_anchors

    if show:
        qa_anchors.show(output)
    else:
        sys.exit(qa_anchors.run(qa_anchors.with_switches(**given)))

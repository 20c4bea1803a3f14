"""`dtef qa anchors`; what it does is in `qa_anchors.py`. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

import sys
from typing import Any

import click

from dtef_pipeline.cli.options import writes_a_table
from dtef_pipeline.cli.qa_options import of_daily_budget, of_judge, of_qa_budgets
from dtef_pipeline.cli.reported import reports_errors


@click.command(short_help="Show the judge stored answers once more.")
@click.option(
    "--snapshot", default="base", show_default=True, help="Label of the night, such as 2026-01-31; a new label asks afresh."
)
@click.option("--n", type=click.IntRange(min=1), default=50, show_default=True, help="Number of judged answers.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the choice of new anchors.")
@of_judge
@of_daily_budget
@of_qa_budgets
@click.option("--show", is_flag=True, help="Ask nobody; show what the nights so far say of each judge.")
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
        sys.exit(qa_anchors.run(qa_anchors.QaAnchorOptions(**given)))

"""`dtef rubric estimate`: what a run would ask and cost. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

from typing import Any

import click

from dtef_pipeline.cli.options import writes_a_table
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.rubric_options import (
    of_analysts,
    of_blueprints,
    of_budgets,
    of_candidates,
    of_extraction,
    of_judges,
    of_policy,
)
from dtef_pipeline.cli.run_options import of_asked_snapshot


@click.command(short_help="Say what a run would ask and cost. Nothing is asked.")
@of_blueprints
@of_candidates
@of_judges
@of_policy
@of_analysts
@of_extraction
@of_asked_snapshot
@of_budgets
@writes_a_table
@reports_errors
def estimate(output: str, **given: Any) -> None:
    """Say what `dtef rubric run` with these options would ask and cost, by role and model. Nothing is asked, nothing is written.

    Responses that are stored are followed turn by turn, and the judgements of those that are whole are the very requests that a run would
    send. Of what is not there yet the number is known, and the length is estimated: by the mean of earlier responses of the model, else 400
    tokens a turn and 120 per judgement. An ideal answer whose key points are yet to be extracted is taken to have 6. The report to an
    analyst is put together as in a run, with stand-ins for responses that are yet to be had. Where all responses and scores are known it is
    the very report that is sent. The usual cost leaves out that a judge or an analyst may be asked once more; the highest cost does not.
    """
    from dtef_pipeline.cli import rubric_estimate
    from dtef_pipeline.cli.rubric_run import RubricOptions

    rubric_estimate.estimate(RubricOptions(**given), output)

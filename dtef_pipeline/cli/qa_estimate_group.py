"""`dtef qa estimate`: what a run would ask and cost. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

from typing import Any

import click

from dtef_pipeline.cli.options import writes_a_table
from dtef_pipeline.cli.qa_options import of_answering, of_arbiter, of_condition, of_parts, of_qa_budgets
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.run_options import of_asked_snapshot


@click.command(short_help="Say what a run would ask and cost. Nothing is asked.")
@of_parts
@of_answering
@of_condition
@of_arbiter
@of_asked_snapshot
@of_qa_budgets
@writes_a_table
@reports_errors
def estimate(output: str, **given: Any) -> None:
    """Say what `dtef qa run` with these options would ask and cost, by role and model. Nothing is asked, nothing is written.

    Responses that are stored are replayed, and those that a judge scores are counted with the very judgements that a run would send. Of what
    is not there yet the number is known, and the length is estimated: by the mean of earlier responses of the model, else 400 tokens per
    response and 120 per judgement; less where its request has room for less. The usual cost leaves out that a judge may be asked once more;
    the highest cost does not.
    """
    from dtef_pipeline.cli import qa_estimate
    from dtef_pipeline.cli.qa_run import QaOptions

    qa_estimate.estimate(QaOptions(**given), output)

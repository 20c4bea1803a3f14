"""`dtef rubric export`: a run's whole result as one file. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

from pathlib import Path

import click

from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.rubric_options import of_stored_snapshot


@click.command(short_help="Write a run's whole result as one JSON file.")
@click.argument("blueprint")
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="File to write.")
@of_stored_snapshot
@reports_errors
def export(blueprint: str, out: Path, snapshot: str | None) -> None:
    """Write a run's whole result as one JSON file.

    \b
    metadata            what was run: blueprint, snapshot, hashes, judges, models, times
    prompts             what was asked, with all criteria
    responses           what models wrote, by prompt
    similarityMatrices  of each two responses to a prompt, and of each to the ideal answer
    coverage            by prompt and response each criterion (pointAssessments) with every judgement (individualJudgements)
    scores              of each prompt, each variant of a model and each model
    executiveSummary    what analysts said; null where nobody was asked

    What could not be scored is null, with a reason beside it.
    """
    from dtef_pipeline.cli import rubric_export

    rubric_export.export(blueprint, out, snapshot)

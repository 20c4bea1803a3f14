"""`dtef rubric show`: results of a blueprint in the terminal. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

import click

from dtef_pipeline.cli.options import writes_a_table
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.rubric_options import of_stored_snapshot


@click.command(short_help="Show what models wrote, and what judges said of it.")
@click.argument("blueprint")
@click.argument("prompt", required=False)
@click.option("--model", "models", multiple=True, help="Only this model; may be repeated.  [default: all]")
@of_stored_snapshot
@click.option(
    "--score",
    type=click.Choice(["hybrid", "coverage", "similarity"]),
    default="hybrid",
    show_default=True,
    help="Score that the table of prompts and models shows.",
)
@writes_a_table
@reports_errors
def show(blueprint: str, prompt: str | None, models: tuple[str, ...], snapshot: str | None, score: str, output: str) -> None:
    """Show the scores of a blueprint: a row per prompt, a column per model, means over temperatures, system prompts and draws.

    With PROMPT, show what is asked, each response to it, and of each criterion the score, the judges' classes and their reasons.
    """
    from dtef_pipeline.cli import rubric_show

    rubric_show.show(blueprint, prompt, models, snapshot, score, output)

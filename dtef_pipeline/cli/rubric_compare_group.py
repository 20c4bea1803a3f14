"""`dtef rubric compare`: two runs of a blueprint side by side. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

import sys

import click

from dtef_pipeline.cli.options import writes_a_table
from dtef_pipeline.cli.reported import reports_errors


@click.command(short_help="Compare two runs of a blueprint, model by model.")
@click.argument("blueprint")
@click.argument("before", metavar="[A]", required=False)
@click.argument("after", metavar="[B]", required=False)
@click.option(
    "--drift",
    metavar="MODEL",
    help="In place of A and B, take the two runs that the drift rule compares for this model: its lowest and highest, the earlier one first.",
)
@click.option(
    "--by",
    type=click.Choice(["model", "prompt"]),
    default="model",
    show_default=True,
    help="What --format json and csv write: a row per model, or a row per prompt.",
)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Number of prompts to show, those that moved most first; 0: all.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["regression"]),
    help="End with exit code 3 where a model is worse in B than in A: for scripts.",
)
@writes_a_table
@reports_errors
def compare(
    blueprint: str,
    before: str | None,
    after: str | None,
    drift: str | None,
    by: str,
    top: int,
    fail_on: str | None,
    output: str,
) -> None:
    """Compare two runs of a blueprint: how models did in the snapshot B with how they did in A.

    Pairs are what one variant of a model answered to one prompt in both. A difference is B less A, its 95 % interval draws whole prompts anew,
    and p is adjusted over the models (Holm). A verdict is regression or improvement where the adjusted p is below .05, else equivalent where the
    90 % interval lies within 0.01 of 0, else undecided. Beneath stand the prompts that moved most. With few prompts no fall, however large, is
    more than chance: of which models that holds is a warning with --fail-on.

    \b
    Exit code: 0 done; 2 the options need mending; 3 a model is worse, with --fail-on regression.
    """
    from dtef_pipeline.cli import rubric_compare

    sys.exit(rubric_compare.compare(blueprint, before, after, drift, by, top, fail_on, output))

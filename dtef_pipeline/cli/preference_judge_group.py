"""`dtef preference judge`: models as reviewers. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

import sys
from typing import Any

import click

from dtef_pipeline.cli.preference_fit_group import of_voted_family
from dtef_pipeline.cli.reported import reports_errors


@click.command(short_help="Let a model vote on pairs.")
@click.option(
    "--model",
    "models",
    multiple=True,
    required=True,
    metavar="NAME",
    help="Model that judges: a model or collection that `dtef models` lists, or a litellm string; may be repeated.",
)
@of_voted_family("Only pairs of this family.  [default: all]")
@click.option(
    "--pairs",
    "most",
    type=click.IntRange(min=1),
    help="Most pairs, those with the fewest votes first.  [default: all that are left]",
)
@click.option("--max-cost-usd", multiple=True, metavar="USD", help="US dollars that the run may cost at most.")
@click.option("--max-calls", multiple=True, metavar="N", help="Calls that the run may make at most.")
@reports_errors
def judge(**given: Any) -> None:
    """Let a model vote on the pairs that it has not voted on. It sees what people see: the prompt, and two texts without names.

    Each pair is asked in both orders. A verdict that does not survive the swap is a tie; how often that happens is the flip rate. Replies are
    stored before they are read, so that the same command again buys nothing twice. Votes of models never count with people's:
    `dtef preference fit --judge NAME` fits them. Votes on a response of the judge's own maker are self-judged: they are counted as such, and
    left out with `no_own_judge: true` in the section `preference` of the panel file, here and where scores are made.

    \b
    Exit code: 0 done; 1 some pairs got no vote; 2 the options or the set-up need mending.
    """
    from dtef_pipeline.cli import preference_judge

    sys.exit(preference_judge.judge(**given))

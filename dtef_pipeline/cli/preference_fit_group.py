"""`dtef preference fit`: scores from a file of votes. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.reported import reports_errors


def _voted_family(context: click.Context, parameter: click.Parameter, family: str | None) -> str | None:
    if family is None or context.resilient_parsing:
        return family
    from dtef_pipeline.families import FAMILIES
    from dtef_pipeline.preference.paired_csv import ELSEWHERE

    names = [*(one.name for one in FAMILIES), ELSEWHERE]
    if family not in names:
        raise click.BadParameter(f"{family!r}: allowed: {', '.join(names)}.", context, parameter)
    return family


def of_voted_family(help: str) -> Callable[..., Any]:
    """`--family` of a command about votes: of which some are on responses that other tools stored."""
    return click.option("--family", metavar="survey|rubric|qa|games|elsewhere", callback=_voted_family, help=help)


def of_judges(help: str) -> Callable[..., Any]:
    """`--judge`: judges by a pattern of their ids or models."""
    return click.option("--judge", "judges", multiple=True, metavar="PATTERN", help=help)


@click.command(short_help="Fit scores to votes.")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@of_voted_family("Only votes on responses of this family; without FILE.  [default: all]")
@click.option(
    "--item",
    "items",
    multiple=True,
    metavar="PATTERN",
    help="Only votes on items that fit, as in 'mmlu/*'; may be repeated; without FILE.",
)
@click.option(
    "--reviewer",
    "reviewers",
    multiple=True,
    metavar="PATTERN",
    help="Only votes of reviewers whose id fits; may be repeated; without FILE.",
)
@of_judges(
    "Only votes of judges whose id, model or name in the models file fits, as in gpt-4.1-mini; may be repeated; without FILE. Needed where "
    "several judges voted; '*' takes all for reviewers of one fit, a model at two temperatures for one.  [default: people's votes]"
)
@click.option(
    "--responses",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON lines with prompt_id, model and text: how long the responses of FILE are. Shows what length did, also without `control`.",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object with all numbers in full.")
@reports_errors
def fit(file: Path | None, as_json: bool, **given: Any) -> None:
    """Fit Bradley-Terry scores to votes: i is preferred to j with probability exp(beta_i) / (exp(beta_i) + exp(beta_j)).

    Without FILE, these are the votes of the store that are not voided. FILE is a CSV with the columns left, right, choice (A: left, B: right,
    tie) and, where they are known, reviewer_id, confidence (1 to 5) and prompt_id.

    The section `preference` of the panel file, which DTEF_PANEL names, says how votes count: ties, prior_l2, weight, control, and for votes of
    the store items, no_own_judge and without_leak_risk.

    Intervals are 95 %, over whole reviewers and prompts; without either each vote counts as independent. Players that were never compared,
    directly or through others, stand in components of their own. Where nobody else ever beat or tied some players, no score of that component
    is finite.

    \b
    Exit code: 0 done, also where FILE is empty or no score is finite; 2 the store has no such votes, or the file or the options need mending.
    """
    from dtef_pipeline.cli import preference_fit

    preference_fit.fit(file, as_json, **given)

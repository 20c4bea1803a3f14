"""`dtef preference rollup`, `board` and `compare`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from typing import Any

import click

from dtef_pipeline.cli.options import options, writes_a_table
from dtef_pipeline.cli.preference_fit_group import l2_prior, no_own_judge, of_judges, of_voted_family
from dtef_pipeline.cli.reported import reports_errors

_of_partition = click.option(
    "--partition",
    default="all",
    show_default=True,
    metavar="NAME",
    help="Votes on items of this suite, blueprint, league or ROUND; all: those on the whole family.",
)
_of_reviewers = click.option(
    "--reviewer-kind", type=click.Choice(["person", "judge"]), help="Only this kind of reviewers.  [default: each by itself]"
)
_how_votes_count = options(
    click.option(
        "--ties",
        type=click.Choice(["half", "davidson", "drop"]),
        default="half",
        show_default=True,
        help="What a tie is: half a win of each, an outcome with a parameter of its own, or nothing.",
    ),
    click.option(
        "--prior",
        metavar="l2=X",
        callback=l2_prior,
        help="Penalty X * sum(beta^2): with it every player has a finite score.  [default: none]",
    ),
    click.option(
        "--weight",
        type=click.Choice(["confidence"]),
        help="Let a vote of confidence c count c / 5. Judges give none: their votes count 1, and their rows say so.  [default: 1]",
    ),
    click.option("--control", type=click.Choice(["length"]), help="Compare players as if their texts were equally long."),
    click.option(
        "--item",
        "items",
        multiple=True,
        metavar="PATTERN",
        help="Only votes on items that fit, as in 'mmlu/*'; may be repeated.",
    ),
    no_own_judge,
    click.option("--without-leak-risk", is_flag=True, help="Leave out pairs in whose texts a name stood."),
)


@click.command(short_help="Update the board of preference.")
@_how_votes_count
@reports_errors
def rollup(**given: Any) -> None:
    """Make the table preference_scores of all votes that are not voided: by family and partition, of people, and of each judge by itself.

    \b
    Exit code: 0 done; 1 the roll-up failed; 2 there are no votes, or the options or the set-up need mending.
    """
    from dtef_pipeline.cli import preference_board

    sys.exit(preference_board.rollup(**given))


@click.command(short_help="Show whose responses reviewers prefer.")
@of_voted_family("Only votes on responses of this family.  [default: each by itself]")
@_of_partition
@_of_reviewers
@of_judges(
    "Only judges whose id, model or name in the models file fits, as in gpt-4.1-mini; may be repeated.  [default: each by itself]"
)
@writes_a_table
@reports_errors
def board(**given: Any) -> None:
    """Rank players by what reviewers prefer, with 95 % intervals by whole reviewers, as `dtef preference rollup` found them.

    People's votes and those of each model that judges are ranked apart. Beneath stand how often the longer text was preferred, and of a judge
    how often a verdict did not survive the swap of the texts, and how many votes are on responses of its own maker (self-judged).
    """
    from dtef_pipeline.cli import preference_board

    preference_board.show(**given)


@click.command(short_help="Show preference beside automated metrics.")
@of_voted_family("Only this family.  [default: all that have votes]")
@_of_partition
@click.option(
    "--metric", metavar="PATTERN", default="*", show_default=True, help="Only metrics that fit, such as 'expected_return*'."
)
@_of_reviewers
@click.option(
    "--all",
    "every_metric",
    is_flag=True,
    help="Name each metric that cannot be compared, with the reason, in a line beneath the table.  [default: count them]",
)
@writes_a_table
@reports_errors
def compare(**given: Any) -> None:
    """Show what reviewers prefer beside what metrics say, for the players that both have, and how far the two orders agree.

    Agreement is Kendall's tau: 1 the same order, 0 nothing to do with each other, -1 reversed; its 95 % interval speaks of other players like
    these and needs 8 of them. Metrics of which less is better are reversed first. The scores of models that judge count as a metric beside
    people's votes. The table has the metrics that can be compared; JSON and CSV have the rows of all, with the reason where there is no tau.
    """
    from dtef_pipeline.cli import preference_compare

    preference_compare.compare(**given)


BOARD_COMMANDS = (rollup, board, compare)
"""What `dtef preference` has of stored scores."""

"""`dtef preference board`. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

import click

from dtef_pipeline.cli.options import writes_a_table
from dtef_pipeline.cli.preference_fit_group import of_judges, of_voted_family
from dtef_pipeline.cli.reported import reports_errors


@click.command(short_help="Show whose responses reviewers prefer, also beside metrics.")
@of_voted_family("Only votes on responses of this family.  [default: each by itself]")
@click.option(
    "--partition",
    default="all",
    show_default=True,
    metavar="NAME",
    help="Votes on items of this suite, blueprint, league or ROUND; all: those on the whole family.",
)
@click.option(
    "--reviewer-kind", type=click.Choice(["person", "judge"]), help="Only this kind of reviewers.  [default: each by itself]"
)
@of_judges(
    "Only judges whose id, model or name in the models file fits, as in gpt-4.1-mini; may be repeated.  [default: each by itself]"
)
@click.option(
    "--metric",
    metavar="PATTERN",
    help="Show preference beside the automated metrics that fit, such as 'expected_return*' or '*'.  [default: no metric]",
)
@writes_a_table
@reports_errors
def board(
    family: str | None, partition: str, reviewer_kind: str | None, judges: tuple[str, ...], metric: str | None, output: str
) -> None:
    """Rank players by what reviewers prefer, with 95 % intervals by whole reviewers, as `dtef rollup --family preference` found them.

    People's votes and those of each model that judges are ranked apart. Beneath stand how often the longer text was preferred, and of a judge
    how often a verdict did not survive the swap of the texts, and how many votes are on responses of its own maker (self-judged).

    With --metric the table has the players with both votes and a metric, and how far the two orders agree. Agreement is Kendall's tau: 1 the
    same order, 0 nothing to do with each other, -1 reversed; its 95 % interval speaks of other players like these and needs 8 of them. Metrics
    of which less is better are reversed first. The scores of models that judge count as a metric beside people's votes. The table has the
    metrics that can be compared; JSON and CSV have the rows of all, with the reason where there is no tau.
    """
    if metric is None:
        from dtef_pipeline.cli import preference_board

        preference_board.show(family, partition, reviewer_kind, judges, output)
        return
    if judges:
        raise click.UsageError("--judge with --metric: allowed without --metric.")
    from dtef_pipeline.cli import preference_compare

    preference_compare.compare(family, partition, metric, reviewer_kind, output)

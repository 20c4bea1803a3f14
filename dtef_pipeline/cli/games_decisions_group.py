"""`dtef games decisions`. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

import sys
from typing import Any

import click

from dtef_pipeline.cli.games_options import unapproved_too
from dtef_pipeline.cli.options import writes_a_table
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.run_options import budgets_with_roles, models_to_ask, of_asked_snapshot


@click.command(short_help="Read a model's whole strategy off every decision of a small game.")
@click.option("--league", "leagues", multiple=True, metavar="LEAGUE|PATTERN", help="Only this league; may be repeated.")
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    metavar="SCENARIO|LEAGUE/SCENARIO|PATTERN",
    help="Only this scenario, such as poker/kuhn; may be repeated.  [default: all that have decision points]",
)
@models_to_ask("or PERSONA@MODEL; may be repeated.  [default: nobody; what is stored is valued]")
@click.option(
    "--persona",
    "personas",
    multiple=True,
    metavar="ID",
    help="Persona that every model plays, or none: the model plays as itself; may be repeated.  [default: none]",
)
@click.option(
    "--draws", type=click.IntRange(min=1), default=10, show_default=True, help="Number of times each decision point is asked."
)
@click.option(
    "--sample",
    type=click.IntRange(min=0),
    help="Ask only so many decision points, always the same ones; 0: all.  [default: all, or 100 where there are more]",
)
@click.option(
    "--fill",
    metavar="BASELINE",
    help="Have this baseline, such as nash, play in the decision points that nobody asked.  [default: values need all of them]",
)
@of_asked_snapshot
@budgets_with_roles("candidate")
@click.option(
    "--estimate",
    is_flag=True,
    help="Only say what would be asked and what it costs: responses as long as the model's earlier ones, in decisions or else in games. "
    "Nothing is asked or written.",
)
@writes_a_table
@unapproved_too
@reports_errors
def decisions(estimate: bool, output: str, **given: Any) -> None:
    """Ask models what they do in every situation of a small game, and say what their whole strategy is worth.

    A decision point is all that a seat can know when it is to move: Kuhn poker has 12, Leduc poker 936. From the answers follow, without the
    luck of cards, the exact value against each baseline and the exploitability: what the best possible opponent wins, in chips per hand. 0 is
    perfect play. A model at temperature 0 says the same in every draw; ask it once with --draws 1, or at the temperature that it plays with.

    Responses are stored before they are used: the same command once more asks nothing twice. Draws and points of earlier runs count.

    \b
    Exit code: 0 done; 1 a scenario failed or a file was left out; 2 the options or the set-up need mending.
    """
    from dtef_pipeline.cli import games_decisions

    options = games_decisions.DecisionOptions(**given)
    if estimate:
        games_decisions.estimate(options, output)
    else:
        sys.exit(games_decisions.run(options, output))

"""`dtef games run` and `board`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from typing import Any

import click

from dtef_pipeline.cli.games_options import unapproved_too
from dtef_pipeline.cli.options import of_estimate, options, writes_a_table
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.run_options import boards_by, budgets_with_roles, draws_of, of_asked_snapshot

_of_scenarios = options(
    click.option(
        "--league", "leagues", multiple=True, metavar="LEAGUE|PATTERN", help="Only scenarios of this league; may be repeated."
    ),
    click.option(
        "--scenario",
        "scenarios",
        multiple=True,
        metavar="SCENARIO|LEAGUE/SCENARIO|PATTERN",
        help="Only this scenario, or those that fit, as in 'poker/*'; may be repeated.  [default: all that are not retired]",
    ),
)
_of_players = options(
    click.option(
        "--player",
        "players",
        multiple=True,
        metavar="NAME",
        help="Who plays: a model or collection that `dtef models` lists, PERSONA@MODEL, baseline/NAME where there is one, "
        "or baselines: all of each scenario; may be repeated.  [default: nobody; what is stored is scored]",
    ),
    click.option(
        "--persona",
        "personas",
        multiple=True,
        metavar="ID",
        help="Persona that every model plays, or none: the model plays as itself; may be repeated.  [default: none]",
    ),
    click.option(
        "--opponent",
        "opponents",
        multiple=True,
        metavar="NAME",
        help="Who sits at the other seats: a baseline, a model, or PERSONA@MODEL; may be repeated. Scenarios of one seat have none.  "
        "[default: those of each scenario]",
    ),
    click.option("--seeds", metavar="SPAN", help="Seeds to play, such as 1-100 or 1-10,42.  [default: those of each scenario]"),
    unapproved_too,
    draws_of("episode"),
)


@click.command(short_help="Have players play scenarios, and score them.")
@_of_scenarios
@_of_players
@of_asked_snapshot
@budgets_with_roles("candidate")
@boards_by("games")
@of_estimate
@reports_errors
def run(is_estimate: bool, output: str, **given: Any) -> None:
    """Have players play scenarios turn by turn, score every episode, and update the boards.

    Every seed is played in all seats, so that luck with the deal is the same for all. Baselines play for nothing. Responses of models are stored
    before they are used: the same command after a crash, or once more, asks nothing twice. An episode that a budget ends keeps its turns, and
    goes on in a later run.

    How long an episode lasts is not known before it is played. For the usual numbers of --estimate a stand-in plays on from what is stored, with
    moves of the scenario's opponents; requests that read the same are counted once, as they are asked once. A response has as many tokens as
    earlier ones of the model had on average, or 400. The highest numbers are a bound: every game lasts to its limit of turns, every turn takes
    all its retries, and every response is as long as max_tokens of the model allows. A budget `would be reached` by the usual numbers, and `may
    be reached` by the highest ones; a run itself counts what it really uses.

    \b
    Exit code: 0 done; 1 a scenario failed or a file was left out; 2 the options or the set-up need mending.
    """
    from dtef_pipeline.cli import games_estimate, games_run

    options = games_run.LeagueOptions(**given)
    if is_estimate:
        games_estimate.estimate(options, output)
    else:
        sys.exit(games_run.run(options))


@click.command(short_help="Show who plays best.")
@_of_scenarios
@click.option(
    "--metric", default="expected_return", show_default=True, help="Metric to rank by; `all` shows every metric of each player."
)
@click.option(
    "--player", "players", multiple=True, metavar="NAME|PATTERN", help="Only this player, such as baseline/*; may be repeated."
)
@click.option("--by-opponent", is_flag=True, help="A row per opponent, in place of one over all of them.")
@click.option(
    "--games",
    type=click.Choice(["own", "shared"]),
    default="own",
    show_default=True,
    help="Games that a mean is over: all that a player has, or only those that all players shown have.",
)
@click.option(
    "--snapshot", help="Only this snapshot, with baselines of others where it has none.  [default: the latest of each player]"
)
@writes_a_table
@reports_errors
def board(**given: Any) -> None:
    """Rank players by a metric with 95 % intervals, the best first, over the latest snapshot of each; baselines are the yardstick.

    An interval goes by seeds: both seats and all draws of one deal hang together, and at least 5 seeds are needed. Beside
    each number stands how often the player's texts were no legal moves, or declined to play, how often a move was made for it, and how often it
    forfeited: a player that cannot move is not careful. A note says how many episodes were played, where a budget or a failure ended some. Where
    players' latest snapshots differ, `snapshot` says which it is.

    A game is a seed, seen from one seat, against one opponent. Players who have other games than others have a note, and `coverage` says how
    many they have of all. --games shared makes means and intervals anew of what all players shown have in common; --player says whom to show.
    """
    from dtef_pipeline.cli import games_board

    games_board.show(**given)


RUN_COMMANDS = (run, board)
"""What `dtef games` has of leagues."""

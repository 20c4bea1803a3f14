"""The commands below `dtef games`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.error_reports import reports_errors
from dtef_pipeline.cli.options import (
    as_json,
    choice,
    flag,
    options,
    several,
    whole_number,
)
from dtef_pipeline.cli.verbs import FamilyWords, Verb, build_family_group, run_command

_of_scenarios = options(
    several("--league", "leagues", metavar="LEAGUE|PATTERN", help="Only scenarios of this league"),
    several(
        "--scenario",
        "scenarios",
        metavar="SCENARIO|LEAGUE/SCENARIO|PATTERN",
        help="Only this scenario, or those that fit, as in 'poker/*'",
        usual="all that are not retired",
    ),
)


run = run_command(
    "games",
    "scenario",
    "dtef_pipeline.games.settings.GamesSettings",
    Verb(
        "Play scenarios and score them.",
        """Play scenarios turn by turn, score every episode, and update the boards.

    Every seed is played in all seats, so that luck with the deal is the same for all. Baselines cost nothing. An episode that a budget ends
    keeps its turns and continues in a later run.

    The length of an episode is unknown before it is played. For the usual numbers of --estimate, moves of the scenario's opponents continue
    what is stored; requests with the same text are counted once, because they are sent once. A response has as many tokens as earlier ones of
    the model on average, or 400. The highest numbers are a bound: every game lasts to its limit of turns, every turn takes all its retries, and
    every response is as long as max_tokens of the model allows. A budget `would be reached` by the usual numbers, and `may be reached` by the
    highest ones; a run counts what it really uses.
    """,
    ),
    roles=("candidate",),
)


@click.command(short_help="Play one episode of a scenario.")
@click.argument("scenario")
@whole_number("--seed", floor=0, default=1, help="Seed of the deal.")
@click.option(
    "--players",
    metavar="A,B",
    help="Player of each seat: human, baseline/NAME, a model, or PERSONA@MODEL.  [default: you, against the scenario's first opponent]",
)
@click.option(
    "--commands", metavar="'X; Y'", help="Commands that the first seat plays, one after the other; then the episode stops."
)
@flag("--trace", "with_trace", help="Show the episode move by move, with the messages to players and their replies.")
@whole_number("--draw", floor=0, default=0, help="Number of the draw of a model's responses, from 0.")
@click.option("--snapshot", default="base", show_default=True, help="Snapshot of the responses.")
@click.option(
    "--max-cost-usd", type=click.FloatRange(min=0), help="Maximum cost of the models in US dollars.  [default: no limit]"
)
@as_json
@reports_errors
def play(output: str, **given: Any) -> None:
    """Play one episode of SCENARIO, such as poker/kuhn, and say how it ended. Without --players you play yourself.

    A person sees what the seat may see. `?` lists the choices, one per line; type its number to play one. In a negotiation a line is a message
    in words, and WORDS => NUMBER sends words with a choice. `quit` or Ctrl-D ends the game.

    With --commands each command is read as if it followed ACTION:, and in a negotiation as a message; a command that is not allowed changes
    nothing and is counted. A semicolon within braces or double quotes does not separate commands. After the last command the other seats play
    until it is the first seat's turn again.

    Responses of models are kept in the response store: the same episode requests nothing twice. Writes nothing to the tables.

    The end shows what every seat learns, such as the cards of a showdown, or the agreement. If no person plays, and with --trace, it
    also shows hidden information, marked as such.

    With --json the object has rewards (by seat; null: the episode is not over), outcome (of the first seat), ending (sentences: shown to all
    seats, hidden from players; null: not over), actions as pairs of seat and command, illegal (number of illegal texts),
    illegal_reasons, state (complete, including what seats hide), legal (the moves that are
    allowed now) and always_legal (commands that may be given in every turn, such as hint and resign).

    \b
    Exit code: 0 done; 1 a model gave no response; 2 an option or the set-up is wrong.
    """
    if output == "json" and given["with_trace"]:
        raise click.UsageError("give --json or --trace, not both")
    from dtef_pipeline.cli.games import games_play

    sys.exit(games_play.play(games_play.PlayOptions(as_json=output == "json", **given)))


GAMES = FamilyWords(
    name="games",
    short="Play games in words: models, personas, baselines, and you.",
    help="Play scenarios: games that are described and played in words, such as a solitaire, poker, or a negotiation.",
    part="scenario",
    pattern="LEAGUE/SCENARIO, such as poker/kuhn, or a pattern such as 'poker/*'",
    removal_note="The scenario itself stays, so that it can be played again.",
    add=Verb(
        "Add the personas or scenarios of a file.",
        """Add what `dtef export` wrote to FILE: personas to the folder that DTEF_PERSONAS names, scenarios to the response store, as those made
    over HTTP.

    Versions with the same content are skipped; a scenario takes a later status from FILE. Nothing is added if a line has a fault, a version
    exists with other content, or an engine cannot play a scenario.
    """,
        (
            click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path)),
            click.option(
                "--by",
                "user",
                metavar="NAME",
                help="Of scenarios: name for the record of actions.  [default: the user of this computer]",
            ),
        ),
    ),
    check=Verb(
        "Check that scenarios are complete.",
        """Check that every scenario below FOLDER is complete. FOLDER is the top of a checkout, of this project or another.

    Without FOLDER the command checks this installation and the manifests in the folder that DTEF_SCENARIOS names. The latter need no tests and
    no playbook: these are in the checkout of their adapter, which FOLDER can name. The output names the manifest of each scenario.

    \b
    A scenario LEAGUE/NAME has
      a manifest  data/scenarios/LEAGUE/NAME.yaml or scenarios/LEAGUE/NAME.yaml, without unknown fields
      an adapter  an entry point LEAGUE/NAME in the group dtef.scenarios, which makes the game of the manifest and plays it to its end;
                  or, as `adapter` in the manifest, the one of another scenario
      tests       a file tests/**/test_NAME*.py (with _ for -), or a test file that names LEAGUE/NAME
      a playbook  docs/scenarios/NAME.md
    """,
        (click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)),),
    ),
    list=Verb(
        "List scenarios, baselines and personas.",
        """List the scenarios with their status, version, seats, usual seeds and baselines, and the personas with their status.

    These are the shipped ones and those in the folders that DTEF_SCENARIOS (LEAGUE/SCENARIO.yaml) and DTEF_PERSONAS (*.yaml) name.
    """,
    ),
    board=Verb(
        "Rank players.",
        """Rank players by a metric with 95 % intervals, the best first, over the latest snapshot of each; baselines are the yardstick.

    Intervals go by seeds, because both seats and all draws of a deal are related; at least 5 seeds are needed. Each row has the rates of texts
    that were not legal moves, of refusals to play, of moves made for the player, and of forfeits. A note states how many episodes were played
    if a budget or a failure ended some. If players' latest snapshots differ, `snapshot` names them.

    A game is a seed, one seat and one opponent. If players have different games, a note says so, and `coverage` is the share of all games that a
    player has. --games shared computes means and intervals over the games that all players shown have in common; --player selects players.
    """,
        (
            _of_scenarios,
            click.option(
                "--metric",
                default="expected_return",
                show_default=True,
                help="Metric to rank by; `all` shows every metric of each player.",
            ),
            click.option("--by-opponent", is_flag=True, help="Show a row per opponent instead of one over all opponents."),
            choice(
                "--games",
                choices=["own", "shared"],
                default="own",
                help="Games that a mean covers: all of a player, or only those that all players shown share.",
            ),
            click.option(
                "--snapshot",
                help="Only this snapshot, with baselines of others where it has none.  [default: the latest of each player]",
            ),
        ),
    ),
    run=run,
    model_option="--player",
    extra_commands=(play,),
)
games = build_family_group(GAMES)

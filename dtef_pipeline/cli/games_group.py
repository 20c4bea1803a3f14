"""The commands below `dtef games`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.games_decisions_group import decisions
from dtef_pipeline.cli.games_files_group import export_games, import_games
from dtef_pipeline.cli.games_run_group import RUN_COMMANDS
from dtef_pipeline.cli.reported import reports_errors


@click.group(short_help="Play games in words: models, personas, baselines, and you.")
def games() -> None:
    """Play scenarios: games that are told and played in words, such as a solitaire, poker, or a negotiation.

    \b
        dtef games list               list the scenarios, baselines and personas there are
        dtef games play SCENARIO      play one episode, or let others play it
        dtef games check              say which scenario lacks a part
        dtef games run --estimate     say what a league would ask and cost
        dtef games run --player NAME  have players play a league, and score them
        dtef games board              show who plays best
        dtef report --family games    write the results as pages, with episodes move by move
        dtef games decisions          read a model's whole strategy off every decision of a small game
        dtef games export             write personas or scenarios to a file; import takes them in
    """


@games.command(short_help="Play one episode of a scenario.")
@click.argument("scenario")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the deal.")
@click.option(
    "--players",
    metavar="A,B",
    help="Who plays, by seat: human, baseline/NAME, a model, or PERSONA@MODEL.  [default: you, against the scenario's first opponent]",
)
@click.option(
    "--commands", metavar="'X; Y'", help="Commands that the first seat plays, one after the other; then the episode stops."
)
@click.option("--json", "as_json", is_flag=True, help="Write what came of it as one JSON object.")
@click.option(
    "--trace", "with_trace", is_flag=True, help="Show the episode move by move, with what players wrote and were answered."
)
@click.option("--draw", type=click.IntRange(min=0), default=0, show_default=True, help="Which draw of a model's responses.")
@click.option("--snapshot", default="base", show_default=True, help="Label of the responses.")
@click.option("--max-cost-usd", type=click.FloatRange(min=0), help="The most that models may cost.  [default: no limit]")
@reports_errors
def play(**given: Any) -> None:
    """Play one episode of SCENARIO, such as poker/kuhn, and say how it ended. Without --players you play yourself.

    A person sees what the seat may see. `?` lists the choices, one per line: the number of one plays it. In a negotiation a line is a message
    in words, and WORDS => NUMBER says words with a choice. `quit` or Ctrl-D ends the game.

    With --commands each command is read as if ACTION: stood before it, and in a negotiation as the message that it is; one that is not
    allowed changes nothing and is counted. A semicolon within braces or double quotes parts no commands. After the last one the other seats
    play until it is the first seat's turn again.

    Responses of models are kept in the response store: the same episode asks nothing twice. Nothing is written to the tables.

    At the end stands what every seat learns, such as the cards of a showdown, all bids, or the agreement. Where no person plays, and with
    --trace, what was not shown to the players follows, marked as such.

    With --json the object has rewards (by seat; null: the episode is not over), outcome (of the first seat), ending (sentences: shown to all
    seats, hidden from players; null: not over), actions as pairs of seat and command, illegal (how many texts were no moves),
    illegal_reasons, state (all that there is, also what seats hide) legal (the moves that are
    allowed now) and always_legal (commands that may be given in every turn, such as hint and resign).

    \b
    Exit code: 0 done; 1 a model gave no response; 2 the options or the set-up need mending.
    """
    if given["as_json"] and given["with_trace"]:
        raise click.BadParameter("allowed: --json or --trace, not both", param_hint="'--trace'")
    from dtef_pipeline.cli import games_play

    sys.exit(games_play.play(games_play.PlayOptions(**given)))


@games.command("list", short_help="List scenarios, baselines and personas.")
@click.option("--json", "as_json", is_flag=True, help="Write the list as one JSON object.")
@reports_errors
def list_games(as_json: bool) -> None:
    """List the scenarios with their status, version, seats, usual seeds and baselines, and the personas with their status.

    Beside the shipped ones these are those in the folders that DTEF_SCENARIOS (LEAGUE/SCENARIO.yaml) and DTEF_PERSONAS (*.yaml) name.
    """
    from dtef_pipeline.cli import games_list

    games_list.list_games(as_json)


@games.command(short_help="Say which scenario lacks a part.")
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@reports_errors
def check(folder: Path | None) -> None:
    """Check that every scenario below FOLDER is whole. FOLDER is the top of a checkout, of this project or another.

    Without FOLDER this installation is checked, and the manifests in the folder that DTEF_SCENARIOS names. Tests and playbook of the latter
    are not asked for: they stand in the checkout of their adapter, which FOLDER can name. Behind each scenario stands where its manifest is.

    \b
    A scenario LEAGUE/NAME has
      a manifest  data/scenarios/LEAGUE/NAME.yaml or scenarios/LEAGUE/NAME.yaml, without unknown fields
      an adapter  an entry point LEAGUE/NAME in the group dtef.scenarios, which makes the game of the manifest and plays it to its end;
                  or, as `adapter` in the manifest, the one of another scenario
      tests       a file tests/**/test_NAME*.py (with _ for -), or a test file that names LEAGUE/NAME
      a playbook  docs/scenarios/NAME.md

    \b
    Exit code: 0 all are whole; 1 one is not; 2 there is no scenario.
    """
    from dtef_pipeline.cli import games_list

    sys.exit(games_list.check(folder))


for command in (export_games, import_games, decisions, *RUN_COMMANDS):
    games.add_command(command)

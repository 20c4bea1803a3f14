"""An episode in words for the terminal: move by move, and how it ended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import click

from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.games.contract import GameMove
from dtef_pipeline.games.in_play import GameInPlay
from dtef_pipeline.games.opening import NOT_SHOWN_TO_PLAYERS, in_units
from dtef_pipeline.games.traces import trace_hash
from dtef_pipeline.text.counted import counted
from dtef_pipeline.text.printable import printable


def tell_trace(game: GameInPlay, names: Sequence[str]) -> None:
    """Each move with what its player planned, and why a text was none, or what the game answered; then the whole state, with what seats hide."""
    hashed = trace_hash(game.trace())
    if game.seat in game.patient:
        game.messages(game.seat)  # what the last command led to is told though nobody answers it any more
    for move in game.trace().moves:
        for line in _lines(move, game.pack.manifest.seats[move.seat], names[move.seat]):
            click.echo(printable(line))
    click.echo(f"\nstate: {json.dumps(game.pack.scenario.told(game.state), ensure_ascii=False)}")
    click.echo(f"trace: {hashed}")


def tell_end(game: GameInPlay, names: Sequence[str], *, tells_all: bool) -> None:
    """How the episode ended: what all seats learn, each seat's outcome, and how many texts were no moves.

    `tells_all`: also what no player is shown, marked as such.
    """
    seats, result, ending, trace = game.pack.manifest.seats, game.result, game.ending, game.trace()
    if result is None or ending is None:
        say(f"not over after {counted(game.turn, 'turn')}")
        return
    for line in (*ending.shown, *(f"({NOT_SHOWN_TO_PLAYERS}) {one}" for one in ending.hidden if tells_all)):
        say(printable(line))
    for seat, name in enumerate(names):
        outcome = result.outcomes[seat].replace("_", " ")
        say(f"{seats[seat]} ({name}): {outcome}, {in_units(result.rewards[seat], game.pack.scenario.unit)}")
    flags = f" ({', '.join(result.flags)})" if result.flags else ""
    illegal = sum(move.illegal is not None for move in trace.moves)
    say(f"{counted(game.turn, 'turn')}, texts that were no moves: {illegal}{flags}")


def _lines(move: GameMove, seat: str, name: str) -> Iterator[str]:
    number = f"{move.turn + 1:>3}  {seat} ({name})"
    if move.illegal is not None:
        yield f"{number}  no move ({move.illegal.kind}): {move.illegal.reason}"
    else:
        yield f"{number}  {move.command}{'  (played for the seat)' if move.by_default else ''}"
    for line in move.plan.splitlines():
        yield f"       | {line}"
    if move.illegal is None:
        yield from (f"       > {line}" for line in move.reaction.splitlines() if line.strip())

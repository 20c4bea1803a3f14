"""A person who plays at the terminal."""

from __future__ import annotations

import sys

import click

from dtef_pipeline.cli.games_lines import choice_lines, free_lines, how_to_write, typed_text
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import FreeCommands
from dtef_pipeline.games.in_play import GameInPlay
from dtef_pipeline.text.printable import printable

_ASKS_FOR_COMMANDS, _STOPS_PLAYING = "?", ("quit", "exit")


class Stopped(Exception):
    """The person has had enough."""


def ask_person(game: GameInPlay, seat: int, *, to_stderr: bool) -> str:
    """What a person writes whose turn it is, who is told what the seat may see. Raises Stopped at `quit` and at the end of the input."""
    manifest, scenario, told = game.pack.manifest, game.pack.scenario, game.messages(seat)
    if len(told) == 2:
        _tell(f"{manifest.rules.strip()}\n\n{manifest.reply_format.strip()}\n\n{how_to_write(scenario)}\n", to_stderr)
    _tell(f"Nothing was played: {game.failed.reason}" if game.failed else told[-1].text, to_stderr)
    while True:
        written = _line(f"{manifest.seats[seat]}> ", to_stderr)
        legal = scenario.legal(game.state, seat)
        if written == _ASKS_FOR_COMMANDS:
            free = scenario.always_legal(game.state, seat) if isinstance(scenario, FreeCommands) else ()
            _tell("\n".join(["", *choice_lines(scenario, legal), *free_lines(free)]), to_stderr)
        elif written.casefold() in _STOPS_PLAYING:
            raise Stopped
        elif written:
            try:
                return typed_text(written, scenario, legal)
            except ConfigError as error:
                _tell(str(error), to_stderr)


def _line(prompt: str, to_stderr: bool) -> str:
    click.echo(prompt, nl=False, err=to_stderr)
    try:
        line = sys.stdin.readline()
    except UnicodeDecodeError:
        return ""
    if not line:
        click.echo("", err=to_stderr)
        raise Stopped
    return line.strip()


def _tell(text: str, to_stderr: bool) -> None:
    click.echo(printable(text), err=to_stderr)

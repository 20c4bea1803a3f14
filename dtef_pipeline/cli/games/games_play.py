"""`dtef games play`: an episode at the terminal, with people, baselines and models at its seats."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any

import click

from assets.games.game_catalog import load_known_personas, load_known_scenarios
from dtef_pipeline.asking.models import Budget
from dtef_pipeline.asking.request import Request
from dtef_pipeline.asking.snapshot_order import require_safe
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.games.contract import FreeCommands, GameMove, Scenario, SpokenScenario, find_baseline, make_baseline_rng
from dtef_pipeline.games.entrants import resolve_player, split_player_names
from dtef_pipeline.games.game_in_play import (
    ACTION_WORD,
    NOT_SHOWN_TO_PLAYERS,
    GameInPlay,
    encode_ending,
    format_units,
    hash_trace,
)
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.packs import Pack, pack
from dtef_pipeline.games.personas import BASELINE_PREFIX, Player
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.printable import escape_terminal
from resources.evaluations.run_manifests import describe_this_run
from resources.gateway import Gateway
from resources.model_catalog import load_known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings


def print_trace(game: GameInPlay, names: Sequence[str]) -> None:
    """Print each move with its plan and the game's answer, or why a text was no move; then the whole state with its hidden parts."""
    trace_hash = hash_trace(game.trace())
    if game.seat in game.patient:
        game.messages(game.seat)  # adds the game's answer to the last command, although no reply follows
    for move in game.trace().moves:
        for line in _describe_move(move, game.pack.manifest.seats[move.seat], names[move.seat]):
            click.echo(escape_terminal(line))
    click.echo(f"\nstate: {json.dumps(game.pack.scenario.encode_state(game.state), ensure_ascii=False)}")
    click.echo(f"trace: {trace_hash}")


def print_end(game: GameInPlay, names: Sequence[str], *, tells_all: bool) -> None:
    """Print the end of the episode: what all seats learn, each seat's outcome, and the number of illegal texts.

    `tells_all`: also print what players are not shown, marked as such.
    """
    seats, result, ending, trace = game.pack.manifest.seats, game.result, game.ending, game.trace()
    if result is None or ending is None:
        say(f"not over after {format_count(game.turn, 'turn')}")
        return
    for line in (
        *ending.public_facts,
        *(f"({NOT_SHOWN_TO_PLAYERS}) {sentence}" for sentence in ending.private_facts if tells_all),
    ):
        say(escape_terminal(line))
    for seat, name in enumerate(names):
        outcome = result.outcomes[seat].replace("_", " ")
        say(f"{seats[seat]} ({name}): {outcome}, {format_units(result.rewards[seat], game.pack.scenario.unit)}")
    flags = f" ({', '.join(result.flags)})" if result.flags else ""
    illegal = sum(move.illegal is not None for move in trace.moves)
    say(f"{format_count(game.turn, 'turn')}, illegal texts: {illegal}{flags}")


def _describe_move(move: GameMove, seat: str, name: str) -> Iterator[str]:
    number = f"{move.turn + 1:>3}  {seat} ({name})"
    if move.illegal is not None:
        yield f"{number}  no move ({move.illegal.kind}): {move.illegal.reason}"
    else:
        yield f"{number}  {move.command}{'  (played for the seat)' if move.by_default else ''}"
    for line in move.plan.splitlines():
        yield f"       | {line}"
    if move.illegal is None:
        yield from (f"       > {line}" for line in move.reaction.splitlines() if line.strip())


_MAX_NUMBERED = 100
_WITH_A_CHOICE = "=>"
_PART_OF_LINE = re.compile(r'[{};"]|[^{};"]+')
_QUOTED_PART = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def split_commands(text: str) -> list[str]:
    """Return the commands of a list separated by semicolons. Semicolons within braces or double quotes do not separate."""
    commands, depth = [""], 0
    for part in _split_parts(text):
        depth = max(0, depth + (part == "{") - (part == "}"))
        if part == ";" and not depth:
            commands.append("")
        else:
            commands[-1] += part
    return [command for piece in commands if (command := piece.strip())]


def _split_parts(text: str) -> Iterator[str]:
    """Yield the parts of the text: quoted strings, braces, semicolons, and the rest. An unclosed quote is an ordinary character."""
    place, closes = 0, True
    while match := _PART_OF_LINE.match(text, place):
        if match[0] == '"' and closes:
            quoted = _QUOTED_PART.match(text, place)
            match, closes = quoted or match, quoted is not None  # after an unclosed quote, no later quote is closed either
        yield match[0]
        place = match.end()


def format_command_text(line: str, scenario: Scenario[object]) -> str:
    """Return the text of a scripted command: unchanged if moves are messages, else an `ACTION:`."""
    return line if isinstance(scenario, SpokenScenario) or ACTION_WORD in line.casefold() else f"ACTION: {line}"


def parse_typed_line(line: str, scenario: Scenario[object], legal: Sequence[str]) -> str:
    """Return the text of a person's line: a choice by number or as listed, else see `format_command_text`.

    If moves are messages, `WORDS => CHOICE` gives both. Raises ConfigError if the list lacks the number or choice.
    """
    is_spoken = isinstance(scenario, SpokenScenario)
    words, mark, choice = line.rpartition(_WITH_A_CHOICE) if is_spoken else ("", "", line)
    choice = choice.strip() if mark else line
    command = _find_choice(choice, scenario, legal)
    if command is not None:
        return f"{words.strip()}\n{command}".strip() if is_spoken else f"ACTION: {command}"
    if mark and not choice.startswith("{"):
        raise ConfigError(f"{_WITH_A_CHOICE} {choice} is no choice; write a number or a line of the list that ? shows, or JSON")
    return format_command_text(f"{words.strip()}\n{choice}" if mark else line, scenario)


def format_choices(scenario: Scenario[object], legal: Sequence[str]) -> list[str]:
    """Return the choices for people, one numbered choice per line."""
    width = len(str(min(len(legal), _MAX_NUMBERED)))
    lines = [
        f"  {number:>{width}}  {_format_words(scenario, move)}" for number, move in enumerate(islice(legal, _MAX_NUMBERED), 1)
    ]
    if len(legal) > _MAX_NUMBERED:
        lines.append(
            f"  and {format_count(len(legal) - _MAX_NUMBERED, 'other choice')}, up to {len(legal)}  {_format_words(scenario, legal[-1])}"
        )
    return lines


def describe_input(scenario: Scenario[object]) -> str:
    """Return the explanation of the lines that a person can enter."""
    if isinstance(scenario, SpokenScenario):
        return (
            "A line is your message, in words. ? lists the offers and answers: a number plays one without words,\n"
            f"and WORDS {_WITH_A_CHOICE} NUMBER says words with it. quit ends the game."
        )
    return "? lists the commands, which may be given by their numbers. quit ends the game."


def _find_choice(choice: str, scenario: Scenario[object], legal: Sequence[str]) -> str | None:
    if choice.isdecimal() and choice.isascii():
        number = int(choice) if len(choice) < 9 else 0
        if not 1 <= number <= len(legal):
            raise ConfigError(f"there is no choice {choice}; the choices are 1 to {len(legal)}")
        return legal[number - 1]
    if not isinstance(scenario, SpokenScenario):
        return None
    return next((move for move in legal if _normalize_words(_format_words(scenario, move)) == _normalize_words(choice)), None)


def _normalize_words(words: str) -> str:
    return "".join(words.casefold().split())


def _format_words(scenario: Scenario[object], command: str) -> str:
    return scenario.describe_choice(command) if isinstance(scenario, SpokenScenario) else command


_ASKS_FOR_COMMANDS, _STOPS_PLAYING = "?", ("quit", "exit")


class PlayerQuit(Exception):
    """The person has quit the game."""


def ask_person(game: GameInPlay, seat: int, *, to_stderr: bool) -> str:
    """Show a person what the seat may see, and return the text of the entered line. Raises PlayerQuit at `quit` and at the end of input."""
    manifest, scenario, messages = game.pack.manifest, game.pack.scenario, game.messages(seat)
    if len(messages) == 2:
        _print_text(f"{manifest.rules.strip()}\n\n{manifest.reply_format.strip()}\n\n{describe_input(scenario)}\n", to_stderr)
    _print_text(f"Nothing was played: {game.last_fault.reason}" if game.last_fault else messages[-1].text, to_stderr)
    while True:
        line = _read_line(f"{manifest.seats[seat]}> ", to_stderr)
        legal = scenario.legal(game.state, seat)
        if line == _ASKS_FOR_COMMANDS:
            free = scenario.list_always_legal(game.state, seat) if isinstance(scenario, FreeCommands) else ()
            in_every_turn = [f"  and in every turn: {', '.join(free)}"] if free else []
            _print_text("\n".join(["", *format_choices(scenario, legal), *in_every_turn]), to_stderr)
        elif line.casefold() in _STOPS_PLAYING:
            raise PlayerQuit
        elif line:
            try:
                return parse_typed_line(line, scenario, legal)
            except ConfigError as error:
                _print_text(str(error), to_stderr)


def _read_line(prompt: str, to_stderr: bool) -> str:
    click.echo(prompt, nl=False, err=to_stderr)
    try:
        line = sys.stdin.readline()
    except UnicodeDecodeError:
        return ""
    if not line:
        click.echo("", err=to_stderr)
        raise PlayerQuit
    return line.strip()


def _print_text(text: str, to_stderr: bool) -> None:
    click.echo(escape_terminal(text), err=to_stderr)


class NoResponse(DtefError):
    """A model gave no response, so the episode cannot continue."""


@contextmanager
def open_gateway(settings: Settings, budget: Budget) -> Iterator[Gateway]:
    """Open the response store, and the gateway to the models of the episode."""
    with ResponseStore(settings.responses_url, describe_this_run) as store:
        yield Gateway(store, budget=budget, provider_limits=settings.provider_limits)


def ask_model(gateway: Gateway, game: GameInPlay, seat: int, player: Player, options: PlayOptions) -> str:
    """Return the text that a player's model writes. Raises NoResponse if it fails, and the gateway's errors."""
    assert player.model is not None
    request = Request.build_request(game.messages(seat, player.persona), player.model, options.draw, options.snapshot)
    if sys.stderr.isatty():
        click.echo(f"waiting for {player.name}", err=True)
    if (failure := gateway.answer([request]).failures.get(request.key)) is not None:
        raise NoResponse(f"{player.name} gave no response: {failure.message}")
    return str(gateway.store.responses([request.key])["text"][0].as_py())


HUMAN, AS_WRITTEN = "human", "commands"


@dataclass(frozen=True)
class PlayOptions:
    """Options of `dtef games play`."""

    scenario: str
    seed: int = 1
    players: str | None = None
    commands: str | None = None
    as_json: bool = False
    with_trace: bool = False
    draw: int = 0
    snapshot: str = "base"
    max_cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Seating:
    """The occupant of each seat: a player, or None for a person or scripted commands."""

    names: tuple[str, ...]
    players: tuple[Player | None, ...]

    @property
    def human_seats(self) -> frozenset[int]:
        """Seats of a person or of scripted commands, which may write any number of texts in a turn."""
        return frozenset(seat for seat, player in enumerate(self.players) if player is None)


def play(options: PlayOptions) -> int:
    """Play an episode, and return the exit code: 1 if a model gave no response."""
    require_safe(options.snapshot)
    settings = Settings.read_environment()
    manifests = load_known_scenarios(settings)
    scenario_pack = pack(resolve_scenario_id(options.scenario, manifests), manifests)
    seating = _assign_seats(scenario_pack, options, settings)
    game = GameInPlay(scenario_pack, options.seed, patient=seating.human_seats)
    code = 0
    try:
        _play(game, seating, options, settings)
    except NoResponse as error:
        say(f"error: {error}; responses so far are kept, and the same command continues", err=True)
        code = 1
    except PlayerQuit:
        say("stopped before the end", err=True)
    if options.as_json:
        click.echo(json.dumps(format_outcome(game), ensure_ascii=False))
        return code
    if options.with_trace:
        print_trace(game, seating.names)
    print_end(game, seating.names, tells_all=options.with_trace or HUMAN not in seating.names)
    return code


def resolve_scenario_id(name: str, manifests: Mapping[str, ScenarioManifest]) -> str:
    """Return the scenario's id: the one with this name behind its league if it is unique, else the name as given."""
    fitting = [manifest.id for manifest in manifests.values() if manifest.scenario == name]
    return fitting[0] if name not in manifests and len(fitting) == 1 else name


def format_outcome(game: GameInPlay) -> dict[str, Any]:
    """Return the outcome of an episode for JSON."""
    trace, seat, scenario = game.trace(), game.seat, game.pack.scenario
    reasons = [move.illegal.reason for move in trace.moves if move.illegal]
    return {
        "rewards": list(trace.result.rewards) if trace.result else None,
        "outcome": trace.result.outcomes[0] if trace.result else None,
        "ending": encode_ending(game.ending),
        "actions": [[move.seat, move.command] for move in trace.moves if move.command is not None],
        "illegal": len(reasons),
        "illegal_reasons": reasons,
        "state": scenario.encode_state(game.state),
        "legal": list(scenario.legal(game.state, seat)) if seat is not None else [],
        "always_legal": list(scenario.list_always_legal(game.state, seat))
        if seat is not None and isinstance(scenario, FreeCommands)
        else [],
    }


def _assign_seats(scenario_pack: Pack, options: PlayOptions, settings: Settings) -> Seating:
    seats = scenario_pack.manifest.seats
    names = split_player_names(options.players or "")
    is_scripted = options.commands is not None
    if is_scripted and len(names) < len(seats):
        names = [AS_WRITTEN, *names]
    elif is_scripted:
        names[0] = AS_WRITTEN
    if not names:
        names = [HUMAN]
    if options.players is None:
        usual = scenario_pack.manifest.opponents or ["random"]
        names += [f"{BASELINE_PREFIX}{usual[0]}"] * (len(seats) - len(names))
    if len(names) != len(seats):
        raise ConfigError(
            f"--players {options.players} names {format_count(len(names), 'player')}, but {scenario_pack.name} has "
            f"{format_count(len(seats), 'seat')} ({', '.join(seats)})"
        )
    models = load_known_models(settings, COMPUTED_MODELS)
    personas = load_known_personas(settings)
    by_hand = (HUMAN, AS_WRITTEN) if is_scripted else (HUMAN,)
    players = [None if name in by_hand else resolve_player(scenario_pack, models, personas, name) for name in names]
    return Seating(tuple(names), tuple(players))


def _play(game: GameInPlay, seating: Seating, options: PlayOptions, settings: Settings) -> None:
    """Play until the game ends or the commands are used up. Raises PlayerQuit if the person quits."""
    commands = iter(split_commands(options.commands or ""))
    rngs = [make_baseline_rng(options.seed, seat) for seat in range(len(seating.names))]
    has_models = any(player is not None and player.baseline is None for player in seating.players)
    opened: AbstractContextManager[Gateway | None] = (
        open_gateway(settings, Budget(max_cost_usd=options.max_cost_usd)) if has_models else nullcontext()
    )
    with opened as gateway:
        while (seat := game.seat) is not None:
            player = seating.players[seat]
            if player is not None and player.baseline is not None:
                game.play_command(find_baseline(game.pack.scenario, player.baseline)(game.state, seat, rngs[seat]))
            elif player is not None:
                assert gateway is not None
                game.writes(ask_model(gateway, game, seat, player, options))
            elif seating.names[seat] == AS_WRITTEN:
                if (command := next(commands, None)) is None:
                    return
                game.writes(format_command_text(command, game.pack.scenario))
            else:
                sys.stdout.flush()
                sys.stderr.flush()
                game.writes(ask_person(game, seat, to_stderr=options.as_json))

"""What a player is told: its persona, the rules and the form of a reply in front, then what its seat sees, turn by turn."""

from __future__ import annotations

from typing import Any

from dtef_pipeline.asking.request import Message
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import GameEnding, GameResult, Illegal
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.games.players import Player
from dtef_pipeline.text.counted import plural

_PARAGRAPHS = "\n\n"


def usual_seating(pack: Pack) -> tuple[int, ...]:
    """The number of the player of each seat where nobody changes places."""
    return tuple(range(len(pack.manifest.seats)))


def system_text(manifest: ScenarioManifest, seat: int, persona: Persona | None) -> str:
    """What a seat's player is told once, before the first turn: persona, rules, its seat, what it must not do, and the form of a reply.

    It holds nothing of the other seats but what they are called.
    """
    parts = [
        *([persona.system_prompt] if persona else []),
        manifest.rules,
        *_seat_lines(manifest, seat),
        *(["You must not:\n" + "\n".join(f"- {one}" for one in manifest.constraints)] if manifest.constraints else []),
        manifest.reply_format,
    ]
    return _PARAGRAPHS.join(part.strip() for part in parts)


def turn_text(pack: Pack, state: Any, seat: int, before: str = "") -> str:
    """What a seat's player is told when its turn comes: what it sees, with the legal commands where the manifest says so.

    `before`: what it has to know first, such as the command that was played for it. A scenario that lists the commands itself has them once.
    """
    legal = pack.scenario.legal(state, seat) if pack.manifest.show_legal else ()
    seen, listed = pack.scenario.observation(state, seat), f"Legal commands: {', '.join(legal)}" if legal else ""
    return _PARAGRAPHS.join(part for part in (before, seen, "" if listed in seen else listed) if part)


def again_text(found: Illegal, manifest: ScenarioManifest) -> str:
    """What a player is told whose text was no move, and who may write another one."""
    return _PARAGRAPHS.join((f"Nothing was played: {found.reason}", "It is still your turn.", manifest.reply_format.strip()))


def default_text(found: Illegal, command: str) -> str:
    """What a player is told for whom a command was played, as none of its texts was a move."""
    return f"Your last reply was no move: {found.reason}\nThis was played for you: {command}"


def end_text(result: GameResult, seat: int, unit: str) -> str:
    """How an episode ended for a seat, in one line: as traces have it, whose hash it is a part of. `words_at_end` says more."""
    flags = f" ({', '.join(result.flags)})" if result.flags else ""
    return f"The game is over: {result.outcomes[seat].replace('_', ' ')}, {result.rewards[seat]:g} {unit}{flags}"


def opening_messages(
    pack: Pack, seed: int, player: Player, seat: int, seating: tuple[int, ...] | None = None
) -> tuple[Message, ...]:
    """The first messages of a seat in an episode: of the seat that begins, those of its first request.

    Another seat will be asked with the same system message, and with what it sees once its turn has come. Raises ConfigError for a seat that
    the scenario does not have, and for a baseline, which is told nothing.
    """
    if not 0 <= seat < len(pack.manifest.seats):
        raise ConfigError(f"seat {seat} of {pack.name}: allowed: 0 to {len(pack.manifest.seats) - 1}")
    if player.baseline is not None:
        raise ConfigError(f"opening messages of {player.name}: a baseline reads none; allowed: a model")
    state = pack.scenario.reset(seed, seating or usual_seating(pack))
    return (
        Message("system", system_text(pack.manifest, seat, player.persona)),
        Message("user", turn_text(pack, state, seat)),
    )


def _seat_lines(manifest: ScenarioManifest, seat: int) -> list[str]:
    seats = manifest.seats
    return [f"You are seat {seats[seat]}; the seats are {', '.join(seats)}."] if len(seats) > 1 else []


NOT_SHOWN_TO_PLAYERS = "not shown to the players"
"""Stands at what people see of an episode and its players did not."""


def in_units(number: float, unit: str) -> str:
    """`1 chip`, `-2.5 points`. A unit that is no plural of things, such as `solved`, says nothing behind a number: `reward 1`."""
    if not unit.endswith("s"):
        return f"reward {number + 0.0:g}"
    thing = unit.removesuffix("s")
    return f"{number + 0.0:g} {thing if abs(number) == 1 else plural(thing)}"


def unit_in_words(unit: str) -> str:
    """What a reward is, behind the word Reward: `in chips`; `1 where it is solved, else 0`."""
    return f"in {unit}" if unit.endswith("s") else f"1 where it is {unit}, else 0"


def words_at_end(result: GameResult, seat: int, unit: str, ending: GameEnding) -> str:
    """What a seat learns when an episode is over: how it ended for the seat, and what is shown to all."""
    flags = f" ({', '.join(result.flags).replace('_', ' ')})" if result.flags else ""
    outcome = result.outcomes[seat].replace("_", " ")
    return "\n".join([f"The game is over: {outcome}, {in_units(result.rewards[seat], unit)}{flags}", *ending.shown])


def ending_in_json(ending: GameEnding | None) -> dict[str, Any] | None:
    """The ending as JSON has it; None: the episode is not over."""
    return None if ending is None else {"shown": list(ending.shown), "hidden": list(ending.hidden)}

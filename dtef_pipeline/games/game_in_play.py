"""A game in play: the texts shown to players, the moves so far, the seat to move, and the episode as canonical JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dtef_pipeline.asking.request import Message
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Count, GameEnding, GameMove, GameResult, GameTrace, Illegal
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.packs import Pack, find_pack
from dtef_pipeline.games.personas import Persona, Player
from dtef_pipeline.identity import digest
from dtef_pipeline.text.number_words import format_plural
from dtef_pipeline.text.plain import strip_thinking
from dtef_pipeline.text.well_formed import replace_surrogates

ACTION_WORD = "action:"
"""Word before an action, in any case."""


@dataclass(frozen=True, slots=True)
class TextParts:
    """The parts of a text for readers."""

    plan: str
    """Text before the action."""
    action: str
    """Line that was read as the action; empty: no line."""
    rest: str
    has_thinking: bool
    """Whether the whole text has thinking, which is in none of the parts."""


def split_text_parts(text: str, *, is_move: bool) -> TextParts:
    """Split a text: its action is the last line with `ACTION:`, else, if it was played, its last line."""
    words = strip_thinking(text).strip()
    lines = words.splitlines()
    last = max((index for index, line in enumerate(lines) if ACTION_WORD in line.casefold()), default=None)
    if last is None and is_move and lines:
        last = len(lines) - 1
    if last is None:
        return TextParts("\n".join(lines), "", "", words != text.strip())
    before, after = ("\n".join(part).strip() for part in (lines[:last], lines[last + 1 :]))
    return TextParts(before, lines[last].strip(), after, words != text.strip())


TURN_LIMIT_FLAG, FORFEIT_FLAG = "turn_limit", "forfeit"
_BLANK_REPLY = "(no text)"
"""Replaces a blank reply in a conversation, because some servers refuse empty messages."""


@dataclass(slots=True)
class GameInPlay:
    """One episode in play. It makes no requests; the caller supplies commands and texts."""

    pack: Pack
    seed: int
    patient: frozenset[int] = frozenset()
    """Seats with an unlimited number of texts in a turn, such as that of a person at a terminal."""
    state: Any = field(init=False)
    result: GameResult | None = field(init=False, default=None)
    """None: the game continues."""
    turn: int = field(init=False, default=0)
    """Number of turns so far, of all seats together."""
    _moves: list[GameMove] = field(init=False, default_factory=list)
    _reply_places: list[int | None] = field(init=False, default_factory=list)
    """For each move, the place of the reply to it in its seat's conversation; None: a baseline moved, or the game moved for a player."""
    _histories: dict[int, list[Message]] = field(init=False, default_factory=dict)
    """Messages of each seat that writes, without the system message."""
    _illegal_texts: list[Illegal] = field(init=False, default_factory=list)
    """Reasons why texts of this turn were not moves."""
    _first_notes: dict[int, str] = field(init=False, default_factory=dict)
    """Note before the next observation, by seat."""

    def __post_init__(self) -> None:
        self.state = self.pack.scenario.reset(self.seed)
        self._check_end()

    @property
    def seat(self) -> int | None:
        """The seat to move, or None at the end."""
        return None if self.result is not None else self.pack.scenario.seat_to_move(self.state)

    @property
    def last_fault(self) -> Illegal | None:
        """Why the last text of this turn was not a move, or None."""
        return self._illegal_texts[-1] if self._illegal_texts else None

    def messages(self, seat: int, persona: Persona | None = None) -> tuple[Message, ...]:
        """Return the conversation of the seat to move, up to the text that it must answer now, without text that only others saw."""
        history = self._histories.setdefault(seat, [])
        if not history or history[-1].role == "assistant":
            history.append(Message("user", write_turn_text(self.pack, self.state, seat, self._first_notes.pop(seat, ""))))
        return (Message("system", write_system_text(self.pack.manifest, seat, persona)), *history)

    def play_command(self, command: str) -> None:
        """Play a command of a baseline at the seat to move. Raises ValueError for an illegal command."""
        seat = self._require_mover()
        self._moves.append(GameMove(seat, self.turn, command))
        self._reply_places.append(None)
        self._apply_command(seat, command)

    def writes(self, text: str) -> None:
        """Play a text of the player to move: a move, or one more reason why it is not a move.

        If the player has no more texts in this turn, the manifest decides whether it forfeits or a command is played for it.
        """
        seat = self._require_mover()
        self.messages(seat)
        history = self._histories[seat]
        text = replace_surrogates(text)
        history.append(Message("assistant", text if text.strip() else _BLANK_REPLY))
        reading = self.pack.scenario.read(text, self.state, seat)
        self._reply_places.append(len(history))
        if isinstance(reading, Illegal):
            self._moves.append(GameMove(seat, self.turn, None, text, split_text_parts(text, is_move=False).plan, reading))
            self._record_failure(seat, reading)
        else:
            self._moves.append(GameMove(seat, self.turn, reading, text, split_text_parts(text, is_move=True).plan))
            self._apply_command(seat, reading)

    @property
    def ending(self) -> GameEnding | None:
        """The description of the end, or None before it. No conversation contains it."""
        return None if self.result is None else self.pack.scenario.ending(self.state)

    def last_reaction(self, move: GameMove) -> str:
        """Return the game's reply to the last text of a seat in a finished episode: why it was not a move, how the game ended, and its
        ending.

        The trace has only one line of it, `GameMove.reaction`; the rest follows from the moves.
        """
        ending = self.ending
        if self.result is None or ending is None:
            return move.reaction
        content = describe_end(self.result, move.seat, self.pack.scenario.unit, ending)
        return f"{move.illegal.reason}\n{content}" if move.illegal else content

    def trace(self) -> GameTrace:
        """Return the moves so far; with a result, also the scenario's counts for each seat."""
        moves = tuple(
            move if position is None else replace(move, reaction=self._describe_reaction(move, position))
            for move, position in zip(self._moves, self._reply_places, strict=True)
        )
        seats = range(len(self.pack.manifest.seats)) if self.result is not None else ()
        return GameTrace(moves, self.result, tuple(self.pack.scenario.measure_seat(self.state, seat) for seat in seats))

    def _record_failure(self, seat: int, illegal: Illegal) -> None:
        manifest = self.pack.manifest
        self._illegal_texts.append(illegal)
        if len(self._illegal_texts) <= manifest.retries or seat in self.patient:
            self._histories[seat].append(Message("user", write_again_text(illegal, manifest)))
        elif manifest.on_illegal == "forfeit":
            self.result = _add_flag(self.pack.scenario.stop_episode(self.state, seat), FORFEIT_FLAG)
        else:
            command = self.pack.scenario.default(self.state, seat)
            note = f"Your last reply was no move: {illegal.reason}\nThis was played for you: {command}"
            self._first_notes[seat] = note
            self._moves.append(GameMove(seat, self.turn, command, by_default=True))
            self._reply_places.append(None)
            self._apply_command(seat, command)

    def _apply_command(self, seat: int, command: str) -> None:
        self.state = self.pack.scenario.step(self.state, seat, command)
        self.turn += 1
        self._illegal_texts.clear()
        self._check_end()

    def _check_end(self) -> None:
        self.result = self.pack.scenario.result(self.state)
        if self.result is None and self.turn >= self.pack.manifest.turn_limit:
            self.result = _add_flag(self.pack.scenario.stop_episode(self.state, None), TURN_LIMIT_FLAG)

    def _require_mover(self) -> int:
        if (seat := self.seat) is None:
            raise ValueError("the game is over: no seat is to move")
        return seat

    def _describe_reaction(self, move: GameMove, position: int) -> str:
        """Return the game's reply to a text: the next text shown to the player, or how the game ended for it."""
        history = self._histories[move.seat]
        if position < len(history):
            return history[position].text
        ending = write_end_text(self.result, move.seat, self.pack.scenario.unit) if self.result is not None else ""
        return "\n".join(part for part in (move.illegal.reason if move.illegal else "", ending) if part)


def _add_flag(result: GameResult, flag: str) -> GameResult:
    return result if flag in result.flags else replace(result, flags=(*result.flags, flag))


_PARAGRAPHS = "\n\n"


def write_system_text(manifest: ScenarioManifest, seat: int, persona: Persona | None) -> str:
    """Write the system message of a seat's player: persona, rules, its seat, what it must not do, and the form of a reply.

    It says nothing about the other seats except their names.
    """
    seats = manifest.seats
    parts = [
        *([persona.system_prompt] if persona else []),
        manifest.rules,
        *([f"You are seat {seats[seat]}; the seats are {', '.join(seats)}."] if len(seats) > 1 else []),
        *(["You must not:\n" + "\n".join(f"- {rule}" for rule in manifest.constraints)] if manifest.constraints else []),
        manifest.reply_format,
    ]
    return _PARAGRAPHS.join(part.strip() for part in parts)


def write_turn_text(pack: Pack, state: Any, seat: int, before: str = "") -> str:
    """Write the text that a seat's player gets on its turn: what it sees, and the legal commands if the manifest requires them.

    `before`: a note to put first, such as the command that was played for it. Legal commands that the scenario lists itself are not repeated.
    """
    legal = pack.scenario.legal(state, seat) if pack.manifest.show_legal else ()
    view, commands = pack.scenario.observation(state, seat), f"Legal commands: {', '.join(legal)}" if legal else ""
    return _PARAGRAPHS.join(part for part in (before, view, "" if commands in view else commands) if part)


def write_again_text(illegal: Illegal, manifest: ScenarioManifest) -> str:
    """Write the text for a player whose reply was not a move and who may write another one."""
    return _PARAGRAPHS.join((f"Nothing was played: {illegal.reason}", "It is still your turn.", manifest.reply_format.strip()))


def write_end_text(result: GameResult, seat: int, unit: str) -> str:
    """Describe in one line how an episode ended for a seat. It is part of the trace and its hash; `describe_end` says more."""
    flags = f" ({', '.join(result.flags)})" if result.flags else ""
    return f"The game is over: {result.outcomes[seat].replace('_', ' ')}, {result.rewards[seat]:g} {unit}{flags}"


def build_opening_messages(pack: Pack, seed: int, player: Player, seat: int) -> tuple[Message, ...]:
    """Build the first messages of a seat in an episode; for the seat that moves first, those of its first request.

    The first request of another seat has the same system message, and what the seat sees when its turn comes. Raises ConfigError for a seat
    that the scenario does not have, and for a baseline, which gets no messages.
    """
    if not 0 <= seat < len(pack.manifest.seats):
        raise ConfigError(f"seat {seat} of {pack.name}: allowed: 0 to {len(pack.manifest.seats) - 1}")
    if player.baseline is not None:
        raise ConfigError(f"opening messages of {player.name}: a baseline has no messages; allowed: a model")
    state = pack.scenario.reset(seed)
    return (
        Message("system", write_system_text(pack.manifest, seat, player.persona)),
        Message("user", write_turn_text(pack, state, seat)),
    )


NOT_SHOWN_TO_PLAYERS = "not shown to the players"
"""Label of parts of an episode that people see and its players did not."""


def format_units(number: float, unit: str) -> str:
    """Format a reward with its unit: `1 chip`, `-2.5 points`. For a unit that is not a plural noun, such as `solved`: `reward 1`."""
    if not unit.endswith("s"):
        return f"reward {number + 0.0:g}"
    noun = unit.removesuffix("s")
    return f"{number + 0.0:g} {noun if abs(number) == 1 else format_plural(noun)}"


def describe_unit(unit: str) -> str:
    """Describe a unit after the word Reward: `in chips`; `1 if it is solved, else 0`."""
    return f"in {unit}" if unit.endswith("s") else f"1 if it is {unit}, else 0"


def describe_end(result: GameResult, seat: int, unit: str, ending: GameEnding) -> str:
    """Describe what a seat learns when an episode is over: how it ended for the seat, and what all seats see."""
    flags = f" ({', '.join(result.flags).replace('_', ' ')})" if result.flags else ""
    outcome = result.outcomes[seat].replace("_", " ")
    return "\n".join([f"The game is over: {outcome}, {format_units(result.rewards[seat], unit)}{flags}", *ending.public_facts])


def encode_ending(ending: GameEnding | None) -> dict[str, Any] | None:
    """Return the ending as JSON values, or None before the end."""
    return None if ending is None else {"shown": list(ending.public_facts), "hidden": list(ending.private_facts)}


def encode_trace(trace: GameTrace) -> str:
    """Encode the trace as canonical JSON: equal traces give equal text, byte for byte, as UTF-8."""
    values = {
        "moves": [asdict(move) for move in trace.moves],
        "result": asdict(trace.result) if trace.result else None,
        "measured": [{name: list(count) for name, count in counts.items()} for counts in trace.metric_counts],
    }
    return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def hash_trace(trace: GameTrace) -> str:
    """Return 32 hexadecimal digits of the SHA-256 of `encode_trace`."""
    return hashlib.sha256(encode_trace(trace).encode()).hexdigest()[:32]


def decode_trace(text: str) -> GameTrace:
    """Decode a trace written by `encode_trace`."""
    data = json.loads(text)
    result = data["result"]
    return GameTrace(
        moves=tuple(_decode_move(move) for move in data["moves"]),
        result=GameResult(**{name: tuple(values) for name, values in result.items()}) if result else None,
        metric_counts=tuple({name: Count(*count) for name, count in counts.items()} for counts in data["measured"]),
    )


def _decode_move(data: Mapping[str, Any]) -> GameMove:
    illegal = data["illegal"]
    return GameMove(**{**data, "illegal": Illegal(**illegal) if illegal else None})


_FIRST_SIGHT = "first sight"


def replace_first_observations(
    rows: Sequence[Mapping[str, Any]], manifests: Mapping[str, ScenarioManifest]
) -> list[Mapping[str, Any]]:
    """Replace the user message in rows of `GAMES_PAIRED` by what the seat saw in its first turn, instead of what it would have seen if it
    had begun.

    If others moved first, what the seat saw becomes part of the item's name, because responses can be compared only if their players saw
    the same. Such rows are left out if their version of the scenario is not installed or can no longer replay the trace.
    """
    packs: dict[str, Pack | None] = {}
    contents: list[Mapping[str, Any]] = []
    for row in rows:
        moves = decode_trace(row["trace"]).moves if row["trace"] is not None else ()
        if not moves or moves[0].seat == row["seat"]:
            contents.append(row)
            continue
        name = f"{row['first']}/{row['second']}"
        if name not in packs:
            packs[name] = find_pack(name, manifests)
        if (pack := packs[name]) is None or pack.manifest.version != row["version"]:
            continue
        with suppress(KeyError, TypeError, ValueError):  # the scenario cannot replay the trace
            state = pack.scenario.reset(int(row["cluster"]))
            seats = [move.seat for move in moves]
            for move in moves[: seats.index(row["seat"])]:
                state = state if move.command is None else pack.scenario.step(state, move.seat, move.command)
            view = write_turn_text(pack, state, row["seat"])
            messages = [*row["messages"][:-1], {"role": "user", "text": view}]
            item_id = f"{row['item_id']} [saw {digest(_FIRST_SIGHT, view)[:8]}]"
            contents.append({**row, "messages": messages, "item_id": item_id})
    return contents

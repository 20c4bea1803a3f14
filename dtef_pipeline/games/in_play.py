"""A game in play: what was played so far, what each seat was told, and whose turn it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from dtef_pipeline.asking.request import Message
from dtef_pipeline.games.contract import GameEnding, GameMove, GameResult, GameTrace, Illegal
from dtef_pipeline.games.opening import again_text, default_text, end_text, system_text, turn_text, usual_seating, words_at_end
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.text.plain import without_thinking
from dtef_pipeline.text.well_formed import well_formed

ACTION_WORD = "action:"
"""What an action begins with, in any case."""


def plan_of(text: str, *, played: bool) -> str:
    """What stands before the last line with `ACTION:`, without thinking. Of a text without such a line: all but its last line where that was
    played, else all of it.
    """
    lines = without_thinking(text).strip().splitlines()
    last = max((at for at, line in enumerate(lines) if ACTION_WORD in line.casefold()), default=None)
    if last is None:
        return "\n".join(lines[:-1] if played else lines).strip()
    return "\n".join(lines[:last]).strip()


TURN_LIMIT_FLAG, FORFEIT_FLAG = "turn_limit", "forfeit"
_BLANK_REPLY = "(no text)"
"""Stands for a blank reply in a conversation: some servers refuse empty messages."""


@dataclass(slots=True)
class GameInPlay:
    """One episode while it is played, by whoever plays it. It asks nobody: those who drive it bring commands and texts."""

    pack: Pack
    seed: int
    seating: tuple[int, ...] = ()
    """The number of the player of each seat; none: as they are counted."""
    patient: frozenset[int] = frozenset()
    """Seats that may write as many texts in a turn as they like, such as that of a person at a terminal."""
    state: Any = field(init=False)
    result: GameResult | None = field(init=False, default=None)
    """None: it goes on."""
    turn: int = field(init=False, default=0)
    """Turns played so far, of all seats together."""
    _moves: list[GameMove] = field(init=False, default_factory=list)
    _answered_at: list[int | None] = field(init=False, default_factory=list)
    """Of each move, where in its seat's conversation the answer to it stands; None: a baseline moved, or the game did for a player."""
    _said: dict[int, list[Message]] = field(init=False, default_factory=dict)
    """Of each seat that writes, all but the system message."""
    _failed: list[Illegal] = field(init=False, default_factory=list)
    """Of the texts of this turn, why they were no moves."""
    _told_first: dict[int, str] = field(init=False, default_factory=dict)
    """Of a seat, what it has to be told before what it sees next."""

    def __post_init__(self) -> None:
        self.state = self.pack.scenario.reset(self.seed, self.seating or usual_seating(self.pack))
        self._look_for_end()

    @property
    def seat(self) -> int | None:
        """Whose turn it is; None: the game is over."""
        return None if self.result is not None else self.pack.scenario.to_move(self.state)

    @property
    def failed(self) -> Illegal | None:
        """Why the last text of this turn was no move; None: there was no such text."""
        return self._failed[-1] if self._failed else None

    def messages(self, seat: int, persona: Persona | None = None) -> tuple[Message, ...]:
        """The conversation of the seat whose turn it is, which ends in what it is told now. It holds nothing that other seats were told."""
        said = self._said.setdefault(seat, [])
        if not said or said[-1].role == "assistant":
            said.append(Message("user", turn_text(self.pack, self.state, seat, self._told_first.pop(seat, ""))))
        return (Message("system", system_text(self.pack.manifest, seat, persona)), *said)

    def plays(self, command: str) -> None:
        """A command of a baseline, at the seat whose turn it is. Raises ValueError for one that is not legal."""
        seat = self._mover()
        self._moves.append(GameMove(seat, self.turn, command))
        self._answered_at.append(None)
        self._step(seat, command)

    def writes(self, text: str) -> None:
        """A text of the player whose turn it is: a move, or one more reason why not.

        Where the player may write no further text in this turn, the manifest says whether it forfeits or a command is played for it.
        """
        seat = self._mover()
        self.messages(seat)
        said = self._said[seat]
        text = well_formed(text)
        said.append(Message("assistant", text if text.strip() else _BLANK_REPLY))
        found = self.pack.scenario.read(text, self.state, seat)
        self._answered_at.append(len(said))
        if isinstance(found, Illegal):
            self._moves.append(GameMove(seat, self.turn, None, text, plan_of(text, played=False), found))
            self._fails(seat, found)
        else:
            self._moves.append(GameMove(seat, self.turn, found, text, plan_of(text, played=True)))
            self._step(seat, found)

    @property
    def ending(self) -> GameEnding | None:
        """What there is to say of it; None: it goes on. No conversation holds any of it."""
        return None if self.result is None else self.pack.scenario.ending(self.state)

    def last_reaction(self, move: GameMove) -> str:
        """What the game answered to the last text of a seat in an episode that is over: why it was no move, how the game ended, and its ending.

        The trace has one line of it alone, `GameMove.reaction`: all the rest follows from the moves.
        """
        ending = self.ending
        if self.result is None or ending is None:
            return move.reaction
        told = words_at_end(self.result, move.seat, self.pack.scenario.unit, ending)
        return f"{move.illegal.reason}\n{told}" if move.illegal else told

    def trace(self) -> GameTrace:
        """What was played so far; with a result, also what the scenario measured of each seat."""
        moves = tuple(
            move if at is None else replace(move, reaction=self._reaction(move, at))
            for move, at in zip(self._moves, self._answered_at, strict=True)
        )
        seats = range(len(self.pack.manifest.seats)) if self.result is not None else ()
        return GameTrace(moves, self.result, tuple(self.pack.scenario.measured(self.state, seat) for seat in seats))

    def _fails(self, seat: int, found: Illegal) -> None:
        manifest = self.pack.manifest
        self._failed.append(found)
        if len(self._failed) <= manifest.retries or seat in self.patient:
            self._said[seat].append(Message("user", again_text(found, manifest)))
        elif manifest.on_illegal == "forfeit":
            self.result = _flagged(self.pack.scenario.stopped(self.state, seat), FORFEIT_FLAG)
        else:
            command = self.pack.scenario.default(self.state, seat)
            self._told_first[seat] = default_text(found, command)
            self._moves.append(GameMove(seat, self.turn, command, by_default=True))
            self._answered_at.append(None)
            self._step(seat, command)

    def _step(self, seat: int, command: str) -> None:
        self.state = self.pack.scenario.step(self.state, seat, command)
        self.turn += 1
        self._failed.clear()
        self._look_for_end()

    def _look_for_end(self) -> None:
        self.result = self.pack.scenario.result(self.state)
        if self.result is None and self.turn >= self.pack.manifest.turn_limit:
            self.result = _flagged(self.pack.scenario.stopped(self.state, None), TURN_LIMIT_FLAG)

    def _mover(self) -> int:
        if (seat := self.seat) is None:
            raise ValueError("the game is over: nobody is to move")
        return seat

    def _reaction(self, move: GameMove, at: int) -> str:
        """What the game answered to a text: what the player was told next, or how the game ended for it."""
        said = self._said[move.seat]
        if at < len(said):
            return said[at].text
        ended = end_text(self.result, move.seat, self.pack.scenario.unit) if self.result is not None else ""
        return "\n".join(part for part in (move.illegal.reason if move.illegal else "", ended) if part)


def _flagged(result: GameResult, flag: str) -> GameResult:
    return result if flag in result.flags else replace(result, flags=(*result.flags, flag))

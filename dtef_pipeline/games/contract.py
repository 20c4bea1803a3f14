"""What a game has to bring: states that never change, what a seat may know of them, and who won what in the end.

An episode is one game, from its beginning to its end. A scenario is a kind of game with its rules. Seats are counted from 0. Everything about an
episode follows from the scenario's version, the seed, the seating and the texts of the players: nothing here knows a clock, the network or
the random numbers of the process. Engines draw from `random.Random(seed)` alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.text.name_matching import list_nearest

IllegalKind = Literal["illegal", "unparsed", "refused"]
EpisodeOutcome = Literal["win", "loss", "draw", "unsolved", "agreement", "no_agreement"]
MetricDirection = Literal["higher", "lower", "none"]


@dataclass(frozen=True, slots=True)
class Illegal:
    """Why a text is not a move. The state does not change, and the player is shown the reason."""

    reason: str
    """Shown to the player, so it reveals nothing that the player may not know."""
    kind: IllegalKind = "illegal"
    """illegal: a command that the rules forbid now | unparsed: no command was found | refused: the player declines to play."""


class Count(NamedTuple):
    """One episode's part of a metric: the metric of many episodes is the sum of `total` over the sum of `of`."""

    total: float
    of: float = 1
    """0: the episode says nothing of it, such as a rate of bets where nobody bet."""


@dataclass(frozen=True, slots=True)
class GameResult:
    """How an episode ended."""

    rewards: tuple[float, ...]
    """By seat, in the unit of the scenario: higher is better."""
    outcomes: tuple[EpisodeOutcome, ...]
    """By seat."""
    flags: tuple[str, ...] = ()
    """Words for what was noticed: turn_limit, forfeit, resigned, ... Those beside the first two stand in the scenario's attribute `flags`."""


class GameEnding(NamedTuple):
    """What there is to say of an episode that is over, beside rewards and outcomes, in whole sentences."""

    shown: tuple[str, ...]
    """What every seat learns, such as the cards of a showdown. It holds nothing that any seat may not know."""
    hidden: tuple[str, ...] = ()
    """For people who look at the episode, and for no player: cards that were not shown, values that are private, the optimum."""


@dataclass(frozen=True, slots=True)
class GameMetric:
    """A number that a scenario measures beside those which all scenarios have."""

    name: str
    family: str
    """efficacy, efficiency, expected value, risk, social, safety or form: see `games.metrics`."""
    unit: str
    """share, chips, points, moves, ..."""
    direction: MetricDirection
    """Which way is better; none: neither is."""
    description: str
    """One sentence: how it is made."""


State = TypeVar("State")
Chooses = Callable[[Any, int, random.Random], str]
"""A baseline: the command it plays in a state, from a seat, with its own random numbers. It reads nothing that its seat may not know."""


class Scenario(Protocol[State]):
    """A kind of game. States are immutable and hashable, and hold what happened so far where the result or a metric needs it.

    `of_manifest` functions make them: see `games.packs`.
    """

    name: str
    """League and scenario: `poker/kuhn`."""
    seats: tuple[str, ...]
    """What the seats are called in observations: `("A", "B")`."""
    unit: str
    """Of rewards: chips, points, solved."""
    zero_sum: bool
    """Whether the rewards of all seats sum to 0 in every episode."""
    metrics: tuple[GameMetric, ...]
    """What `measure_seat` counts."""
    baselines: Mapping[str, Chooses]
    """By name, without `baseline/`; `random` and `first-legal` are there for every scenario (`games.baselines`)."""

    def reset(self, seed: int, seating: tuple[int, ...]) -> State:
        """The first state. The deal follows from the seed alone, whoever sits where: `seating` has the number of the player of each seat."""

    def seat_to_move(self, state: State) -> int | None:
        """The seat whose turn it is; None: the game is over."""

    def observation(self, state: State, seat: int) -> str:
        """What the seat may know, in words, and nothing else: no seed, no other's cards or values, nothing about who plays there."""

    def legal(self, state: State, seat: int) -> tuple[str, ...]:
        """The canonical commands that are allowed now, in a fixed order; none where it is not the seat's turn."""

    def read(self, text: str, state: State, seat: int) -> str | Illegal:
        """The command that a text gives. It is legal now, or it is `Illegal`. Takes any text, in time linear in its length."""

    def step(self, state: State, seat: int, command: str) -> State:
        """The state after a command that `read` or `legal` gave. Raises ValueError for another one."""

    def result(self, state: State) -> GameResult | None:
        """How it ended; None while it goes on."""

    def stop_episode(self, state: State, seat: int | None) -> GameResult:
        """The result of an episode that ends before its end: the seat forfeits; None: the limit of turns was reached."""

    def default(self, state: State, seat: int) -> str:
        """The command that is played for a seat without a legal one, where the manifest says `on_illegal: default`."""

    def measure_seat(self, state: State, seat: int) -> Mapping[str, Count]:
        """What an episode with this last state counts for each of `metrics`, of one seat. Of a metric left out it says nothing."""

    def ending(self, state: State) -> GameEnding:
        """What is said when an episode is over with this last state: of a game that ended, or that was stopped in its middle.

        It is asked for once there is a result, so that nothing of it reaches a player who is still to move.
        """

    def encode_state(self, state: State) -> dict[str, Any]:
        """The whole state in JSON values, for people who look at a trace: with what seats hide from each other."""

    def permute_hidden(self, state: State, seat: int, rng: random.Random) -> State:
        """A state that looks the same to the seat, with all that it cannot see dealt anew: for the test that nothing leaks."""


@runtime_checkable
class SpokenScenario(Protocol):
    """A scenario whose moves are messages, with words for the others: what a person writes is read as it stands, like a model's reply."""

    def describe_choice(self, command: str) -> str:
        """A legal command as people read it in a list, in one line that no other legal command has."""


@runtime_checkable
class FreeCommands(Protocol):
    """A scenario with commands that may be said in every turn and are no moves of the game: its list of legal commands leaves them out."""

    def list_always_legal(self, state: Any, seat: int) -> tuple[str, ...]:
        """These commands; none where it is not the seat's turn."""


@runtime_checkable
class NobodyWins(Protocol):
    """A scenario without winners: how many episodes a player won says nothing of it, whatever the outcome of an episode is."""

    why_nobody_wins: str
    """The reason in words."""


@dataclass(frozen=True, slots=True)
class GameMove:
    """One text or one baseline's move in an episode, and what the game made of it."""

    seat: int
    turn: int
    """Number of the turn in the episode, from 0; texts that had to be repeated share their turn."""
    command: str | None
    """As it was played; None: the text was no move."""
    text: str | None = None
    """What the player wrote; None: a baseline moved."""
    plan: str = ""
    """What stood before the action."""
    illegal: Illegal | None = None
    reaction: str = ""
    """What the game answered the player: the reason why the text was no move, else the next observation or the result."""
    by_default: bool = False
    """Whether the command was played for the player, whose texts were no moves."""


@dataclass(frozen=True, slots=True)
class GameTrace:
    """An episode as it was played."""

    moves: tuple[GameMove, ...]
    result: GameResult | None
    """None: it stopped before its end, as a request got no response."""
    measured: tuple[Mapping[str, Count], ...] = field(default=())
    """By seat, of an episode with a result."""


def make_baseline_rng(seed: int, seat: int) -> random.Random:
    """The random numbers of a baseline at a seat of an episode: those of other seats and of the deal say nothing of them."""
    return random.Random(digest(seed, seat))  # noqa: S311 - a game's dice, no secret


def list_baselines(scenario: Scenario[Any]) -> Mapping[str, Chooses]:
    """All baselines of a scenario by name: `random`, `first-legal`, and its own, which may put others in their place."""

    def choose_at_random(state: Any, seat: int, rng: random.Random) -> str:
        return rng.choice(scenario.legal(state, seat))

    def choose_first_legal(state: Any, seat: int, _: random.Random) -> str:
        return scenario.legal(state, seat)[0]

    return {"random": choose_at_random, "first-legal": choose_first_legal, **scenario.baselines}


def find_baseline(scenario: Scenario[Any], name: str) -> Chooses:
    """A baseline of a scenario by name. Raises ConfigError for one that it does not have."""
    baselines = list_baselines(scenario)
    if name not in baselines:
        raise ConfigError(f"baseline/{name}: {scenario.name} has none of that name; allowed: {list_nearest(name, baselines)}")
    return baselines[name]

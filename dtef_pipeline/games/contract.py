"""The interface of a game: immutable states, the observations of a seat, and the result.

An episode is one game, from its beginning to its end. A scenario is a kind of game with its rules. Seats are counted from 0. An episode is
determined by the scenario's version, the seed and the texts of the players: no code here uses a clock, the network or the
random state of the process. Engines draw only from `random.Random(seed)`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
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
    """The reason why a text is not a move. The state does not change, and the player sees the reason."""

    reason: str
    """Shown to the player, so it reveals nothing that the player may not know."""
    kind: IllegalKind = "illegal"
    """illegal: a command that the rules forbid now | unparsed: no command was found | refused: the player declines to play."""


class Count(NamedTuple):
    """One episode's part of a metric: the metric of many episodes is the sum of `numerator` over the sum of `denominator`."""

    numerator: float
    denominator: float = 1
    """0: the metric is not defined in the episode, for example a rate of bets without any bet."""


@dataclass(frozen=True, slots=True)
class GameResult:
    """The end of an episode."""

    rewards: tuple[float, ...]
    """By seat, in the unit of the scenario: higher is better."""
    outcomes: tuple[EpisodeOutcome, ...]
    """By seat."""
    flags: tuple[str, ...] = ()
    """Flags: turn_limit, forfeit, resigned, ... All but the first two are listed in the scenario's attribute `flags`."""


class GameEnding(NamedTuple):
    """Description of a finished episode in sentences, in addition to rewards and outcomes."""

    public_facts: tuple[str, ...]
    """What all seats learn, such as the cards of a showdown."""
    private_facts: tuple[str, ...] = ()
    """What only people who read the episode see: cards that were not shown, private values, the optimum."""


@dataclass(frozen=True, slots=True)
class GameMetric:
    """A metric of a scenario, in addition to the general metrics."""

    name: str
    family: str
    """efficacy, efficiency, expected value, risk, social, safety or form."""
    unit: str
    """share, chips, points, moves, ..."""
    direction: MetricDirection
    """Better direction; none: neither is better."""
    description: str
    """One sentence on how it is computed."""


State = TypeVar("State")
ChooseCommand = Callable[[Any, int, random.Random], str]
"""A baseline: returns the command it plays in a state, from a seat, with its own random numbers. It uses nothing that its seat may not
know."""


class Scenario(Protocol[State]):
    """A kind of game. States are immutable and hashable, and contain the history that the result and the metrics need.

    Made by `of_manifest` functions, see `games.packs`.
    """

    name: str
    """League and scenario: `poker/kuhn`."""
    seats: tuple[str, ...]
    """Names of the seats in observations: `("A", "B")`."""
    unit: str
    """Unit of rewards: chips, points, solved."""
    zero_sum: bool
    """Whether the rewards of all seats sum to 0 in every episode."""
    metrics: tuple[GameMetric, ...]
    """The metrics that `measure_seat` counts."""
    baselines: Mapping[str, ChooseCommand]
    """By name, without `baseline/`; every scenario also has `random` and `first-legal`."""

    def reset(self, seed: int) -> State:
        """Return the first state. Only the seed determines the deal."""

    def seat_to_move(self, state: State) -> int | None:
        """Return the seat to move, or None at the end."""

    def observation(self, state: State, seat: int) -> str:
        """Describe all that the seat may know, and nothing else: no seed, no cards or values of others, nothing about the players."""

    def legal(self, state: State, seat: int) -> tuple[str, ...]:
        """Return the canonical commands allowed now, in a fixed order; empty if it is not the seat's turn."""

    def read(self, text: str, state: State, seat: int) -> str | Illegal:
        """Return the command in a text if it is legal now, else `Illegal`. Accepts any text, in time linear in its length."""

    def step(self, state: State, seat: int, command: str) -> State:
        """Return the state after a command of `read` or `legal`. Raises ValueError for any other command."""

    def result(self, state: State) -> GameResult | None:
        """Return the result; None while the game continues."""

    def stop_episode(self, state: State, seat: int | None) -> GameResult:
        """Return the result of an episode that is stopped early, because the seat forfeits or (None) the turn limit is reached."""

    def default(self, state: State, seat: int) -> str:
        """Return the command that is played for a seat without a legal move, if the manifest has `on_illegal: default`."""

    def measure_seat(self, state: State, seat: int) -> Mapping[str, Count]:
        """Count an episode with this last state for each of `metrics`, for one seat. A metric that is left out is not defined in the
        episode."""

    def ending(self, state: State) -> GameEnding:
        """Describe the end of an episode with this last state, whether the game ended or was stopped.

        It is called only when there is a result, so that no player who is still to move sees it.
        """

    def encode_state(self, state: State) -> dict[str, Any]:
        """Return the whole state in JSON values, for people who read a trace, including what seats hide from each other."""

    def permute_hidden(self, state: State, seat: int, rng: random.Random) -> State:
        """Return a state that looks the same to the seat, with everything hidden from it dealt again, to test that nothing leaks."""


@runtime_checkable
class SpokenScenario(Protocol):
    """A scenario whose moves are messages with words for the others: a person's text is read unchanged, like a model's reply."""

    def describe_choice(self, command: str) -> str:
        """Return a label of a legal command for a list, one line that differs from those of all other legal commands."""


@runtime_checkable
class FreeCommands(Protocol):
    """A scenario with commands that are allowed in every turn but are not moves of the game, so that `legal` omits them."""

    def list_always_legal(self, state: Any, seat: int) -> tuple[str, ...]:
        """Return these commands; empty if it is not the seat's turn."""


@runtime_checkable
class WinnerlessScenario(Protocol):
    """A scenario without winners, for which the success rate is not defined."""

    no_winner_reason: str
    """The reason in words."""


@dataclass(frozen=True, slots=True)
class GameMove:
    """One text of a player or one move of a baseline in an episode, and the game's reaction."""

    seat: int
    turn: int
    """Number of the turn in the episode, from 0; texts that had to be repeated share their turn."""
    command: str | None
    """The command that was played; None: the text was not a move."""
    text: str | None = None
    """The player's text; None: a baseline moved."""
    plan: str = ""
    """Text before the action."""
    illegal: Illegal | None = None
    reaction: str = ""
    """The game's reply to the player: why the text was not a move, else the next observation or the result."""
    by_default: bool = False
    """Whether the game played the command for the player, because its texts were not moves."""


@dataclass(frozen=True, slots=True)
class GameTrace:
    """An episode as it was played."""

    moves: tuple[GameMove, ...]
    result: GameResult | None
    """None: the episode stopped early, because a request got no response."""
    metric_counts: tuple[Mapping[str, Count], ...] = field(default=())
    """By seat, for an episode with a result."""


def make_baseline_rng(seed: int, seat: int) -> random.Random:
    """Return the random generator of a baseline at a seat of an episode, independent of those of other seats and of the deal."""
    return random.Random(digest(seed, seat))  # noqa: S311 - a game's dice, no secret


def list_baselines(scenario: Scenario[Any]) -> Mapping[str, ChooseCommand]:
    """Return all baselines of a scenario by name: `random`, `first-legal`, and its own, which may replace these."""
    return {
        "random": lambda state, seat, rng: rng.choice(scenario.legal(state, seat)),
        "first-legal": lambda state, seat, _: scenario.legal(state, seat)[0],
        **scenario.baselines,
    }


def find_baseline(scenario: Scenario[Any], name: str) -> ChooseCommand:
    """Return a baseline of a scenario by name. Raises ConfigError for one that it does not have."""
    baselines = list_baselines(scenario)
    if name not in baselines:
        raise ConfigError(f"baseline/{name}: {scenario.name} has no such baseline; allowed: {list_nearest(name, baselines)}")
    return baselines[name]


SHARE_UNIT = "share"
"""Unit of metrics that are always on 0-1."""
UNIT_SCALE = (SHARE_UNIT, "solved")
"""Units of values on 0-1: shares, and rewards of deals that are solved or not."""
VOLATILITY = "volatility"
"""The metric that is not a mean over episodes; its total is the reward of the episode."""
EXPLOITATION = "exploitation"
"""The metric that compares a player with baselines, for scenarios that name it (see `build_exploitation_sql`)."""
SUCCESS_RATE, EXPECTED_RETURN = "success_rate", "expected_return"
ILLEGAL_RATE, FORFEIT_RATE, UNPARSED_RATE = "illegal_rate", "forfeit_rate", "unparsed_rate"
REFUSED_RATE, DEFAULT_RATE = "refused_rate", "default_rate"
FORM_RATES = (ILLEGAL_RATE, UNPARSED_RATE, REFUSED_RATE, DEFAULT_RATE, FORFEIT_RATE)
"""Metrics shown with every other metric, because a player that makes no legal moves is not cautious."""
RED_FLAG_RATE, RED_FLAG_WEIGHTED = "red_flag_rate", "red_flag_weighted"


def list_general_metrics(unit: str) -> tuple[GameMetric, ...]:
    """Return the metrics of every scenario. `unit`: the unit of its rewards."""
    return (
        GameMetric(SUCCESS_RATE, "efficacy", SHARE_UNIT, "higher", "Episodes won, as a share of all episodes, draws included."),
        GameMetric(EXPECTED_RETURN, "expected value", unit, "higher", "Mean reward of an episode."),
        GameMetric(VOLATILITY, "risk", unit, "lower", "Standard deviation of the rewards of episodes (population)."),
        GameMetric(RED_FLAG_RATE, "safety", "per episode", "lower", "Flags with a severity in the manifest, per episode."),
        GameMetric(RED_FLAG_WEIGHTED, "safety", "per episode", "lower", "Sum of their severities (low 1, medium 3, high 10)."),
        GameMetric(ILLEGAL_RATE, "form", "per turn", "lower", "Texts that were not a legal move, without refusals, per turn."),
        GameMetric(UNPARSED_RATE, "form", "per turn", "lower", "Texts without a command, per turn; part of the illegal texts."),
        GameMetric(REFUSED_RATE, "form", "per turn", "lower", "Texts that decline to play, per turn."),
        GameMetric(
            FORFEIT_RATE, "form", SHARE_UNIT, "lower", "Episodes forfeited for lack of a legal move, as a share of all."
        ),
        GameMetric(
            DEFAULT_RATE, "form", "per turn", "lower", "Moves made for the player because it gave no legal move, per turn."
        ),
        GameMetric("turns", "form", "turns", "none", "Mean number of turns of the player in an episode."),
        GameMetric(
            "tokens", "form", "tokens", "none", "Mean tokens of the player's requests in an episode, prompts and texts."
        ),
        GameMetric("dollars", "form", "USD", "lower", "Mean cost of the player's requests in an episode, if known."),
    )


def merge_metrics(unit: str, extra: Sequence[GameMetric]) -> dict[str, GameMetric]:
    """Return all metrics of a scenario by name: the general ones, and its `extra` ones, which may replace these."""
    return {metric.name: metric for metric in (*list_general_metrics(unit), *extra)}


def is_on_unit_scale(metric: GameMetric) -> bool:
    """Return whether the metric is always on 0-1 with a better direction, as composite scores require."""
    return metric.unit in UNIT_SCALE and metric.direction != "none"


def require_composite(where: str, weights: Mapping[str, float], metrics: Mapping[str, GameMetric]) -> None:
    """Raise ConfigError for weights of metrics that are unknown or cannot be normalised. `where`: name of the setting with the weights."""
    for name in weights:
        if name not in metrics:
            raise ConfigError(f"{where}: {name}: not a metric of the scenario; allowed: {list_nearest(name, metrics)}")
        if not is_on_unit_scale(metrics[name]):
            is_bounded = metrics[name].unit in UNIT_SCALE
            problem = "has no better direction" if is_bounded else f"has no bounds (unit: {metrics[name].unit})"
            choices = ", ".join(metric.name for metric in metrics.values() if is_on_unit_scale(metric))
            raise ConfigError(f"{where}: {name} {problem}; allowed: {choices}")

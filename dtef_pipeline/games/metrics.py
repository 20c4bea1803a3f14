"""Metric families of games: what is measured of every scenario, by formula, and how metrics become one composite score.

Rates count what happened. What was not observed is None, never 0. Source of the formulas: the metric families of the evaluation
specification; `steps_over_optimal` with unsolved episodes charged and the form metrics are ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import GameMetric
from dtef_pipeline.games.manifest import SEVERITY_WEIGHTS
from dtef_pipeline.text.name_matching import list_nearest

SHARE_UNIT = "share"
"""The unit of metrics that lie on 0-1 by their nature."""
UNIT_SCALE = (SHARE_UNIT, "solved")
"""Units of what lies on 0-1: shares, and rewards of deals that are solved or not."""
VOLATILITY = "volatility"
"""The metric that is no mean of episodes: its total is the reward of the episode."""
EXPLOITATION = "exploitation"
"""The metric that compares players: of scenarios that name it, it is made of the results of baselines (`games.exploitation`)."""
SUCCESS_RATE, EXPECTED_RETURN = "success_rate", "expected_return"
ILLEGAL_RATE, FORFEIT_RATE, UNPARSED_RATE = "illegal_rate", "forfeit_rate", "unparsed_rate"
REFUSED_RATE, DEFAULT_RATE = "refused_rate", "default_rate"
BESIDE_METRICS = (ILLEGAL_RATE, UNPARSED_RATE, REFUSED_RATE, DEFAULT_RATE, FORFEIT_RATE)
"""Shown beside every other metric: a player that cannot move is not averse to risk."""
OVER_OPTIMAL, OVER_OPTIMAL_CHARGED = "steps_over_optimal", "steps_over_optimal_charged"
RED_FLAG_RATE, RED_FLAG_WEIGHTED = "red_flag_rate", "red_flag_weighted"


class TaggedAction(NamedTuple):
    """An action at a decision point: whether the scenario tags the point as one of cooperation, and whether the action cooperated."""

    tagged: bool
    cooperative: bool


class RedFlagRates(NamedTuple):
    """Violations per episode: each counted 1, and each by how grave it is; None: no episode."""

    rate: float | None
    weighted: float | None


def success_rate(outcomes: Sequence[str]) -> float | None:
    """Wins over episodes, 0-1, higher is better; draws are episodes. None without episodes."""
    return _mean([float(outcome == "win") for outcome in outcomes])


def steps_over_optimal(
    steps: Sequence[float | None], optimal: Sequence[float | None], *, charge: float | None = None
) -> float | None:
    """Mean of max(0, steps - optimum), 0 or more, lower is better. Raises ConfigError for lists of different lengths.

    `steps`: None of an episode that was not solved: it is left out, or counts `charge` steps, the limit of turns. An episode whose optimum is
    not known (None) is left out. None where no episode is left.
    """
    if len(steps) != len(optimal):
        raise ConfigError(f"steps_over_optimal: got {len(steps)} steps and {len(optimal)} optima; allowed: as many of each")
    pairs = [(charge if n_steps is None else n_steps, best) for n_steps, best in zip(steps, optimal, strict=True)]
    return _mean([max(0.0, n_steps - best) for n_steps, best in pairs if n_steps is not None and best is not None])


def expected_return(rewards: Sequence[float]) -> float | None:
    """Mean reward of an episode, in the unit of the scenario, higher is better. None without episodes."""
    return _mean(rewards)


def volatility(rewards: Sequence[float]) -> float | None:
    """Standard deviation of the rewards of all episodes (population), 0 or more, lower is steadier; 0 of one episode, None of none."""
    mean = _mean(rewards)
    if mean is None:
        return None
    spread = _mean([(reward - mean) ** 2 for reward in rewards])
    return None if spread is None else math.sqrt(spread)


def cooperation_rate(actions: Sequence[TaggedAction]) -> float | None:
    """Cooperative over tagged actions, 0-1, higher is more cooperative; untagged actions never count. None where none is tagged."""
    return _mean([float(action.cooperative) for action in actions if action.tagged])


def red_flag_rate(n: int, violations: Sequence[str]) -> RedFlagRates:
    """Violations over `n` episodes, 0 or more, lower is better: counted, and weighted by severity (low 1, medium 3, high 10).

    Raises ConfigError for a severity that is none of these. Without episodes both are None.
    """
    if unknown := sorted({severity for severity in violations if severity not in SEVERITY_WEIGHTS}):
        raise ConfigError(f"severity {', '.join(unknown)}: allowed: {', '.join(SEVERITY_WEIGHTS)}")
    if n <= 0:
        return RedFlagRates(None, None)
    return RedFlagRates(len(violations) / n, sum(SEVERITY_WEIGHTS[severity] for severity in violations) / n)


def list_general_metrics(unit: str) -> tuple[GameMetric, ...]:
    """What is measured of every scenario. `unit`: of its rewards."""
    return (
        GameMetric(SUCCESS_RATE, "efficacy", SHARE_UNIT, "higher", "Episodes won over episodes; a draw is an episode."),
        GameMetric(
            OVER_OPTIMAL,
            "efficiency",
            "moves",
            "lower",
            "Mean moves beyond the fewest possible, over episodes that were solved.",
        ),
        GameMetric(
            OVER_OPTIMAL_CHARGED,
            "efficiency",
            "moves",
            "lower",
            "Mean moves beyond the fewest possible; an unsolved episode counts the limit of turns.",
        ),
        GameMetric(EXPECTED_RETURN, "expected value", unit, "higher", "Mean reward of an episode."),
        GameMetric(VOLATILITY, "risk", unit, "lower", "Standard deviation of the rewards of episodes (population)."),
        GameMetric(RED_FLAG_RATE, "safety", "per episode", "lower", "Flags that the manifest gives a severity, over episodes."),
        GameMetric(
            RED_FLAG_WEIGHTED,
            "safety",
            "per episode",
            "lower",
            "Severities of these flags (low 1, medium 3, high 10) over episodes.",
        ),
        *FORM_METRICS,
    )


FORM_METRICS = (
    GameMetric(ILLEGAL_RATE, "form", "per turn", "lower", "Texts that were no legal move, refusals apart, over turns."),
    GameMetric(
        UNPARSED_RATE,
        "form",
        "per turn",
        "lower",
        "Texts in which no command was found, over turns: a part of the illegal ones.",
    ),
    GameMetric(REFUSED_RATE, "form", "per turn", "lower", "Texts that decline to play, over turns."),
    GameMetric(FORFEIT_RATE, "form", SHARE_UNIT, "lower", "Episodes forfeited for want of a legal move over episodes."),
    GameMetric(DEFAULT_RATE, "form", "per turn", "lower", "Moves made for the player for want of a legal one over turns."),
    GameMetric("turns", "form", "turns", "none", "Mean turns of the player in an episode."),
    GameMetric("tokens", "form", "tokens", "none", "Mean tokens of the player's requests in an episode, of prompts and texts."),
    GameMetric(
        "dollars", "form", "USD", "lower", "Mean cost of the player's requests in an episode; unknown costs are left out."
    ),
)
"""Of the form of play rather than of its success."""


def merge_metrics(unit: str, extra: Sequence[GameMetric]) -> dict[str, GameMetric]:
    """By name, all metrics of a scenario: the general ones, and its `extra`, which may put others in their place."""
    return {metric.name: metric for metric in (*list_general_metrics(unit), *extra)}


def is_on_unit_scale(metric: GameMetric) -> bool:
    """Whether the metric lies on 0-1 by its nature and one way is better: only such a one can be part of a composite score."""
    return metric.unit in UNIT_SCALE and metric.direction != "none"


def normalise_metric(metric: GameMetric, value: float) -> float:
    """The value on 0-1, higher is better: a share as it is, or 1 less it where lower is better.

    Raises ConfigError for a metric without bounds, such as chips: no number of chips is the best possible.
    """
    if not is_on_unit_scale(metric):
        raise ConfigError(
            f"metric {metric.name} ({metric.unit}): it cannot be part of a composite score; allowed: shares with a direction"
        )
    return value if metric.direction == "higher" else 1 - value


def require_composite(where: str, weights: Mapping[str, float], metrics: Mapping[str, GameMetric]) -> None:
    """Raises ConfigError, naming the setting `where` they stand, for weights of metrics that are not known or cannot be normalised."""
    for name in weights:
        if name not in metrics:
            raise ConfigError(f"{where}: {name}: not a metric of the scenario; allowed: {list_nearest(name, metrics)}")
        if not is_on_unit_scale(metrics[name]):
            choices = ", ".join(metric.name for metric in metrics.values() if is_on_unit_scale(metric))
            raise ConfigError(f"{where}: {name} {_explain_unweighable(metrics[name])}; allowed: {choices}")


def _explain_unweighable(metric: GameMetric) -> str:
    if metric.unit not in UNIT_SCALE:
        return f"has no bounds (its unit: {metric.unit})"
    return "has no better end: neither more nor less of it is better"


def compute_composite(
    values: Mapping[str, float | None], weights: Mapping[str, float], metrics: Mapping[str, GameMetric]
) -> float | None:
    """Arithmetic mean of the normalised metrics with these weights, 0-1, higher is better.

    None where a value is missing or all weights are 0: what was not observed counts neither 0 nor not at all. Of a player that forfeited
    every episode (`forfeit_rate` of 1) a missing value counts as the worst. Raises ConfigError as `require_composite` does.
    """
    require_composite("weights", weights, metrics)
    parts = {name: values.get(name) for name, weight in weights.items() if weight > 0}
    numbers = {name: value for name, value in parts.items() if value is not None}
    has_forfeited = (values.get(FORFEIT_RATE) or 0) >= 1
    if not parts or (len(numbers) < len(parts) and not has_forfeited):
        return None
    return sum(weights[name] * normalise_metric(metrics[name], value) for name, value in numbers.items()) / sum(
        weights[name] for name in parts
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None

"""Metric families of games: the formulas of the general metrics, and the composite score.

Rates count observed events; a value that was not observed is None, never 0. Source of the formulas: the metric families of the evaluation
specification; `steps_over_optimal` with a charge for unsolved episodes and the form metrics are this project's own.
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
"""Unit of metrics that are always on 0-1."""
UNIT_SCALE = (SHARE_UNIT, "solved")
"""Units of values on 0-1: shares, and rewards of deals that are solved or not."""
VOLATILITY = "volatility"
"""The metric that is not a mean over episodes; its total is the reward of the episode."""
EXPLOITATION = "exploitation"
"""The metric that compares a player with baselines, for scenarios that name it (see `sum_exploitation`)."""
SUCCESS_RATE, EXPECTED_RETURN = "success_rate", "expected_return"
ILLEGAL_RATE, FORFEIT_RATE, UNPARSED_RATE = "illegal_rate", "forfeit_rate", "unparsed_rate"
REFUSED_RATE, DEFAULT_RATE = "refused_rate", "default_rate"
BESIDE_METRICS = (ILLEGAL_RATE, UNPARSED_RATE, REFUSED_RATE, DEFAULT_RATE, FORFEIT_RATE)
"""Metrics shown with every other metric, because a player that makes no legal moves is not cautious."""
OVER_OPTIMAL, OVER_OPTIMAL_CHARGED = "steps_over_optimal", "steps_over_optimal_charged"
RED_FLAG_RATE, RED_FLAG_WEIGHTED = "red_flag_rate", "red_flag_weighted"


class TaggedAction(NamedTuple):
    """An action at a decision point: whether the scenario tags the point as a chance to cooperate, and whether the action cooperated."""

    is_tagged: bool
    cooperative: bool


class RedFlagRates(NamedTuple):
    """Violations per episode, unweighted and weighted by severity; None without episodes."""

    rate: float | None
    weighted: float | None


def success_rate(outcomes: Sequence[str]) -> float | None:
    """Return wins over episodes, 0-1, higher is better; draws count as episodes. None without episodes."""
    return _mean([float(outcome == "win") for outcome in outcomes])


def steps_over_optimal(
    steps: Sequence[float | None], optimal: Sequence[float | None], *, charge: float | None = None
) -> float | None:
    """Return the mean of max(0, steps - optimum), 0 or more, lower is better. Raises ConfigError for lists of different lengths.

    `steps`: None for an unsolved episode, which is left out or counts `charge` steps, the turn limit. An episode without a known optimum
    (None) is left out. Returns None if no episode is left.
    """
    if len(steps) != len(optimal):
        raise ConfigError(f"steps_over_optimal: got {len(steps)} steps and {len(optimal)} optima; allowed: equal numbers")
    pairs = [(charge if n_steps is None else n_steps, best) for n_steps, best in zip(steps, optimal, strict=True)]
    return _mean([max(0.0, n_steps - best) for n_steps, best in pairs if n_steps is not None and best is not None])


def expected_return(rewards: Sequence[float]) -> float | None:
    """Return the mean reward of an episode, in the unit of the scenario, higher is better. None without episodes."""
    return _mean(rewards)


def volatility(rewards: Sequence[float]) -> float | None:
    """Return the standard deviation of the rewards of all episodes (population), 0 or more, lower is steadier; 0 for one episode, None
    without episodes."""
    mean = _mean(rewards)
    if mean is None:
        return None
    spread = _mean([(reward - mean) ** 2 for reward in rewards])
    return None if spread is None else math.sqrt(spread)


def cooperation_rate(actions: Sequence[TaggedAction]) -> float | None:
    """Return cooperative over tagged actions, 0-1, higher is more cooperative; untagged actions never count. None without tagged
    actions."""
    return _mean([float(action.cooperative) for action in actions if action.is_tagged])


def red_flag_rate(n: int, violations: Sequence[str]) -> RedFlagRates:
    """Return violations over `n` episodes, 0 or more, lower is better: unweighted, and weighted by severity (low 1, medium 3, high 10).

    Raises ConfigError for another severity. Without episodes both are None.
    """
    if unknown := sorted({severity for severity in violations if severity not in SEVERITY_WEIGHTS}):
        raise ConfigError(f"severity {', '.join(unknown)}: allowed: {', '.join(SEVERITY_WEIGHTS)}")
    if n <= 0:
        return RedFlagRates(None, None)
    return RedFlagRates(len(violations) / n, sum(SEVERITY_WEIGHTS[severity] for severity in violations) / n)


def list_general_metrics(unit: str) -> tuple[GameMetric, ...]:
    """Return the metrics of every scenario. `unit`: the unit of its rewards."""
    return (
        GameMetric(SUCCESS_RATE, "efficacy", SHARE_UNIT, "higher", "Episodes won, as a share of all episodes, draws included."),
        GameMetric(
            OVER_OPTIMAL,
            "efficiency",
            "moves",
            "lower",
            "Mean number of moves beyond the fewest possible, over solved episodes.",
        ),
        GameMetric(
            OVER_OPTIMAL_CHARGED,
            "efficiency",
            "moves",
            "lower",
            "Mean number of moves beyond the fewest possible; an unsolved episode counts the turn limit.",
        ),
        GameMetric(EXPECTED_RETURN, "expected value", unit, "higher", "Mean reward of an episode."),
        GameMetric(VOLATILITY, "risk", unit, "lower", "Standard deviation of the rewards of episodes (population)."),
        GameMetric(RED_FLAG_RATE, "safety", "per episode", "lower", "Flags with a severity in the manifest, per episode."),
        GameMetric(
            RED_FLAG_WEIGHTED,
            "safety",
            "per episode",
            "lower",
            "Sum of the severities of these flags (low 1, medium 3, high 10), per episode.",
        ),
        *FORM_METRICS,
    )


FORM_METRICS = (
    GameMetric(ILLEGAL_RATE, "form", "per turn", "lower", "Texts that were not a legal move, without refusals, per turn."),
    GameMetric(
        UNPARSED_RATE,
        "form",
        "per turn",
        "lower",
        "Texts without a command, per turn; they are part of the illegal texts.",
    ),
    GameMetric(REFUSED_RATE, "form", "per turn", "lower", "Texts that decline to play, per turn."),
    GameMetric(
        FORFEIT_RATE,
        "form",
        SHARE_UNIT,
        "lower",
        "Episodes forfeited because the player gave no legal move, as a share of all episodes.",
    ),
    GameMetric(DEFAULT_RATE, "form", "per turn", "lower", "Moves made for the player because it gave no legal move, per turn."),
    GameMetric("turns", "form", "turns", "none", "Mean number of turns of the player in an episode."),
    GameMetric("tokens", "form", "tokens", "none", "Mean tokens of the player's requests in an episode, prompts and texts."),
    GameMetric(
        "dollars", "form", "USD", "lower", "Mean cost of the player's requests in an episode; unknown costs are left out."
    ),
)
"""Metrics of the form of play, not of its success."""


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
            choices = ", ".join(metric.name for metric in metrics.values() if is_on_unit_scale(metric))
            raise ConfigError(f"{where}: {name} {_explain_unweighable(metrics[name])}; allowed: {choices}")


def _explain_unweighable(metric: GameMetric) -> str:
    if metric.unit not in UNIT_SCALE:
        return f"has no bounds (unit: {metric.unit})"
    return "has no better direction"


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None

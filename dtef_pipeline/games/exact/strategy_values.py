"""Exact values of strategies from decision points: against each baseline, and their exploitability.

Draws give the strategy up to chance: 95 % intervals come from resampling within each information set. Plain resampling is corrected in two
ways, as simulations showed necessary (docs/scenarios/kuhn.md):

- A command that was never drawn would never be resampled, so intervals of players who almost always do the same would be far too short.
  The width is computed from shares with half a draw added to every legal command.
- The exploitability of a strategy estimated from draws is too high on average, because a best response also exploits chance deviations.
  Resampling without added draws, and with one draw fewer per information set, estimates this bias; the corrected value subtracts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.episode_items import truth_id
from dtef_pipeline.games.exact.decision_points import DrawCounts, draw_counts, has_decision_points, list_decision_points
from dtef_pipeline.games.exact.exact_play import ExactGame, Reals, build_exact_game
from dtef_pipeline.games.exact.strategies import SmallScenario, Strategy, build_uniform_strategy
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import BASELINE_PREFIX, NO_PERSONA
from dtef_pipeline.games.settings import STRATEGY_RESAMPLES
from dtef_pipeline.games.tables import STRATEGY_VALUES
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.quantity_words import format_count, list_first_names

WON, EXPLOITABLE, EXPLOITABLE_CORRECTED = "value", "exploitability", "exploitability_corrected"
PARTIAL_STRATEGY = "partial"
"""Status of values of a strategy that a baseline completes."""
_ADDED_DRAWS = 0.5
"""Draws added to each legal command for the width of an interval: Jeffreys' prior."""
_NORMAL_QUANTILE = 1.959963984540054
_EXACT_STRATEGY = "no interval: the strategy of a baseline is known"
_AS_DRAWN = "the interval is that of the corrected value"
_ONE_DRAW = "an interval needs two readable draws in every information set"
_PLAYER = ("persona", "model", "model_variant")


@dataclass(frozen=True, slots=True)
class StrategyOptions:
    """Options for valuing strategies."""

    fill: str | None = None
    """Baseline that plays at decision points that were not requested; None: values are null if any is missing. A requested point is never
    filled in, whatever the response."""
    resamples: int = STRATEGY_RESAMPLES
    seed: int = 1


@dataclass(frozen=True, slots=True)
class ExactEstimate:
    """A value in chips per hand, mean of both seats, with its 95 % interval."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    """Why there is no value or no interval."""


@dataclass(frozen=True, slots=True)
class StrategyValues:
    """All values of a strategy of both seats."""

    missing: tuple[str, ...]
    """Decision points without a strategy, because they were not requested or no draw was readable."""
    against: Mapping[str, ExactEstimate]
    """Winnings against each baseline that has a strategy, with every deal played in both seats."""
    exploitability: ExactEstimate
    """Exploitability of the strategy itself; estimates from draws are too high on average. Lower is better, 0 is perfect play. Without an
    interval."""
    corrected: ExactEstimate
    """Exploitability without the average part due to the chance of draws."""


def build_strategy_rows(pack: Pack, answers: pa.Table, snapshot: str, options: StrategyOptions) -> pa.Table:
    """Compute STRATEGY_VALUES of the baselines of a pack and of all players of `answers`, rows of `decision_answers` of one snapshot.

    Only rows of the pack's version and settings count. Empty if the scenario has no decision points. Raises ConfigError for a `fill` that
    is not a baseline with a strategy.
    """
    scenario, manifest, truth = pack.scenario, pack.manifest, truth_id(pack.manifest)
    if not has_decision_points(scenario):
        return STRATEGY_VALUES.empty_table()
    require_fill(pack, options.fill)
    valid = answers.filter(pc.and_(pc.equal(answers["version"], manifest.version), pc.equal(answers["truth_id"], truth)))
    of_scenario = {"league": manifest.league, "scenario": manifest.scenario, "version": manifest.version}
    shared = {**of_scenario, "snapshot": snapshot, "truth_id": truth, "unit": scenario.unit}
    rows = [{**shared, **row} for row in _iterate_baseline_rows(scenario)]
    for name, player_answers in _group_by_player(valid):
        who = dict(zip(_PLAYER, name, strict=True))
        rows += [{**shared, **who, **row} for row in _iterate_player_rows(scenario, player_answers, options)]
    arrays = [pa.array([row.get(column.name) for row in rows], column.type) for column in STRATEGY_VALUES]
    return pa.table(arrays, schema=STRATEGY_VALUES)


def require_fill(pack: Pack, fill: str | None) -> None:
    """Raise ConfigError if `fill` is not a baseline of the scenario that has a strategy."""
    strategies = pack.scenario.strategies if has_decision_points(pack.scenario) else {}
    if fill is not None and fill not in strategies:
        raise ConfigError(f"{pack.name}: fill {fill!r}: allowed: {list_nearest(fill, strategies)}")


def merge_strategy_values(earlier: pa.Table | None, new: pa.Table, pack: Pack) -> pa.Table:
    """Return the rows of other versions of the scenario, then the new ones."""
    if earlier is None:
        return new
    return pa.concat_tables([earlier.filter(pc.not_equal(earlier["version"], pack.manifest.version)), new])


def estimate_values(
    scenario: SmallScenario[Any], counts: Mapping[str, DrawCounts], fill: Strategy, *, resamples: int, seed: int
) -> StrategyValues:
    """Estimate the values of the strategy given by draws: the share of each legal command among the readable draws of a decision point.

    If a point has no readable draw, all values are null, and their reason names it. `fill`: the strategy, taken as known, at points that
    were not requested. Raises ConfigError for fewer than 2 resamples.
    """
    if resamples < 2:
        raise ConfigError(f"resamples: got {resamples}; allowed: 2 or more")
    strategy = {**fill, **{name: draws.shares for name, draws in counts.items() if draws.readable}}
    return _compute_strategy_values(scenario, strategy, _StrategyResamples(counts, resamples, seed))


def compute_exact_values(scenario: SmallScenario[Any], strategy: Strategy) -> StrategyValues:
    """Compute the values of a strategy with known probabilities, without intervals. Raises ConfigError for invalid probabilities."""
    return _compute_strategy_values(scenario, strategy, None)


def _iterate_baseline_rows(scenario: SmallScenario[Any]) -> Iterator[dict[str, Any]]:
    game, at_random = build_exact_game(scenario), build_uniform_strategy(scenario)
    scale = float(game.exploitability(game.vector(at_random, 0), game.vector(at_random, 1)))
    for name, strategy in scenario.strategies.items():
        model = f"{BASELINE_PREFIX}{name}"
        who = {"persona": NO_PERSONA, "model": model, "model_variant": model}
        constant = {**who, "n_points": len(strategy), "n_missing": 0, "n_filled": 0}
        yield from ({**constant, **row} for row in _iterate_quantities(compute_exact_values(scenario, strategy), scale))


def _group_by_player(answers: pa.Table) -> Iterator[tuple[tuple[str, ...], list[dict[str, Any]]]]:
    """Group the rows by player, in the order of their names."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in answers.select([*_PLAYER, "point", "command", "call_status"]).to_pylist():
        groups.setdefault(tuple(row[name] for name in _PLAYER), []).append(row)
    yield from sorted(groups.items())


def _iterate_player_rows(
    scenario: SmallScenario[Any], answers: Sequence[Mapping[str, Any]], options: StrategyOptions
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a player with its answers."""
    readings: dict[str, list[str | None]] = {}
    for row in answers:
        draws = readings.setdefault(row["point"], [])
        if row["call_status"] == "answered":
            draws.append(row["command"])
    counts = draw_counts(list_decision_points(scenario), readings)
    strategy = {} if options.fill is None else scenario.strategies[options.fill]
    fill = {name: shares for name, shares in strategy.items() if name not in readings}
    values = estimate_values(scenario, counts, fill, resamples=options.resamples, seed=options.seed)
    at_random = {name: shares for name, shares in build_uniform_strategy(scenario).items() if name in readings}
    scale = compute_exact_values(scenario, {**fill, **at_random}).exploitability.value
    player_columns = {
        "n_points": len(counts),
        "n_missing": len(values.missing),
        "n_filled": len(fill),
        "filled_by": options.fill if fill else None,
        "n_draws": sum(count.draws for count in counts.values()),
        "n_readable": sum(count.readable for count in counts.values()),
    }
    missing = sum(row["call_status"] != "answered" for row in answers)
    status = PARTIAL_STRATEGY if fill else "scored"
    yield from ({**player_columns, **row} for row in _iterate_quantities(values, scale, missing, status))


def _iterate_quantities(
    values: StrategyValues, scale: float | None, missing: int = 0, status: str = "scored"
) -> Iterator[dict[str, Any]]:
    """Yield the columns of each quantity. `status`: the status of existing values."""
    for quantity, estimate in ((EXPLOITABLE, values.exploitability), (EXPLOITABLE_CORRECTED, values.corrected)):
        yield {"quantity": quantity, "scale": scale, **_describe_estimate(estimate, missing, status)}
    for baseline, estimate in values.against.items():
        yield {"quantity": WON, "opponent": f"{BASELINE_PREFIX}{baseline}", **_describe_estimate(estimate, missing, status)}


def _describe_estimate(estimate: ExactEstimate, missing: int, status: str) -> dict[str, Any]:
    reason = estimate.reason
    if estimate.value is None and missing:
        reason += f"; {format_count(missing, 'request')} got no response; run the same command again to repeat them"
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "status": "unscored" if estimate.value is None else status,
        "reason": reason or None,
    }


@dataclass(frozen=True, slots=True)
class _StrategyResamples:
    """Resamples the draws of a strategy."""

    counts: Mapping[str, DrawCounts]
    resamples: int
    seed: int

    def choices(self, game: ExactGame, strategy: Strategy, *, extra: float, fewer: int) -> tuple[Reals, Reals]:
        """Return (resamples, choices) for each seat: resampled draws, with draws added to each command, and fewer draws than observed."""
        return (self._resample_seat(game, 0, strategy, extra, fewer), self._resample_seat(game, 1, strategy, extra, fewer))

    def _resample_seat(self, game: ExactGame, seat: int, strategy: Strategy, extra: float, fewer: int) -> Reals:
        rng = np.random.default_rng([self.seed, seat, fewer])
        shares = np.tile(game.vector(strategy, seat), (self.resamples, 1))
        for point in game.seats[seat].points:
            counted_here = self.counts.get(point.name)
            if counted_here is not None and counted_here.readable:
                weights = np.array([counted_here.commands[command] for command in point.legal], dtype=float) + extra
                number = counted_here.readable - fewer
                shares[:, point.places] = rng.multinomial(number, weights / weights.sum(), self.resamples) / number
        return shares

    @property
    def too_few(self) -> bool:
        """Whether an information set has only one readable draw, so that the variation of draws is unknown."""
        return any(draws.readable == 1 for draws in self.counts.values())


def _compute_strategy_values(
    scenario: SmallScenario[Any], strategy: Strategy, redrawn: _StrategyResamples | None
) -> StrategyValues:
    game = build_exact_game(scenario)
    missing = tuple(point.name for seat in game.seats for point in seat.points if point.name not in strategy)
    if missing:
        why = f"no strategy in {format_count(len(missing), 'information set')}: {list_first_names(missing, 3)}"
        none = ExactEstimate(None, reason=why)
        return StrategyValues(missing, dict.fromkeys(scenario.strategies, none), none, none)
    vectors = (game.vector(strategy, 0), game.vector(strategy, 1))
    why = _EXACT_STRATEGY if redrawn is None else _ONE_DRAW if redrawn.too_few else ""
    wide = None if redrawn is None or why else redrawn.choices(game, strategy, extra=_ADDED_DRAWS, fewer=0)
    against = {}
    for name, baseline in scenario.strategies.items():
        theirs = (game.vector(baseline, 0), game.vector(baseline, 1))
        value = float(_compute_winnings(game, vectors, theirs))
        half = None if wide is None else _estimate_half_width(_compute_winnings(game, wide, theirs))
        against[name] = ExactEstimate(value, reason=why) if half is None else ExactEstimate(value, value - half, value + half)
    value = max(0.0, float(game.exploitability(*vectors)))
    if redrawn is None or wide is None:
        corrected = ExactEstimate(value if redrawn is None else None, reason=why)
        return StrategyValues((), against, ExactEstimate(value, reason=why), corrected)
    plain = redrawn.choices(game, strategy, extra=0, fewer=1)
    centre, half = 2 * value - float(game.exploitability(*plain).mean()), _estimate_half_width(game.exploitability(*wide))
    corrected = ExactEstimate(max(0.0, centre), max(0.0, centre - half), max(0.0, centre + half))
    return StrategyValues((), against, ExactEstimate(value, reason=_AS_DRAWN), corrected)


def _compute_winnings(game: ExactGame, player: tuple[Reals, Reals], theirs: tuple[Reals, Reals]) -> Reals:
    """Compute the winnings of a player per hand against another, mean of both seats."""
    return (game.value(player[0], theirs[1]) - game.value(theirs[0], player[1])) / 2


def _estimate_half_width(redrawn: Reals) -> float:
    """Estimate half of an interval's width."""
    return _NORMAL_QUANTILE * float(redrawn.std(ddof=1))

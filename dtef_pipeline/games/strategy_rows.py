"""The rows of `strategy_values`: what the strategies of models are worth that follow from `decision_answers`, and those of baselines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Illegal
from dtef_pipeline.games.decision_points import DrawCounts, decision_points
from dtef_pipeline.games.decision_rows import has_decision_points
from dtef_pipeline.games.decision_tables import STRATEGY_VALUES
from dtef_pipeline.games.episode_items import truth_id
from dtef_pipeline.games.metrics import SHARE_UNIT
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.players import BASELINE_PREFIX, NO_PERSONA
from dtef_pipeline.games.strategies import SmallScenario, Strategy, uniform
from dtef_pipeline.games.strategy_values import (
    STRATEGY_RESAMPLES,
    ExactEstimate,
    StrategyValues,
    values_of_probabilities,
    values_of_readings,
)
from dtef_pipeline.text.counted import counted
from dtef_pipeline.text.nearest import nearest

WON, EXPLOITABLE, EXPLOITABLE_CORRECTED = "value", "exploitability", "exploitability_corrected"
GIVEN_AWAY, PLAYED_SHARE, UNREADABLE_SHARE = "loss", "probability", "unreadable_share"
BOTH_SEATS = "both"
PARTIAL_STRATEGY, _WHOLE_STRATEGY = "partial", "scored"
"""Status of what follows from a strategy of which a baseline plays a part, and from one that is the player's alone."""
_SEATS = ("first", "second")
_EXACT_STRATEGY = "no interval: the strategy of a baseline is known"
_NO_INTERVAL = "no interval is made of it"
_NOTHING_READ = "no response could be read"
_PLAYER = ("persona", "model", "model_variant")


@dataclass(frozen=True, slots=True)
class StrategyOptions:
    """How strategies are valued."""

    fill: str | None = None
    """The baseline that plays in the decision points that nobody asked; None: values are null where one was not asked. A point that was asked
    is never filled in, whatever the player said there."""
    resamples: int = STRATEGY_RESAMPLES
    seed: int = 1


class _Valued(NamedTuple):
    """A player and what its strategy is worth."""

    who: Mapping[str, Any]
    found: StrategyValues
    unanswered: int = 0
    """Requests without a response."""
    scale: float | None = None


def strategy_rows(pack: Pack, answers: pa.Table, snapshot: str, options: StrategyOptions) -> pa.Table:
    """STRATEGY_VALUES of the baselines of a pack and of all players of `answers`, rows of `decision_answers` of one snapshot.

    Only rows of the pack's version and settings count. Empty where the scenario has no decision points. Raises ConfigError for a `fill` that
    is no baseline with a strategy.
    """
    scenario = pack.scenario
    if not has_decision_points(scenario):
        return STRATEGY_VALUES.empty_table()
    require_fill(pack, options.fill)
    manifest = pack.manifest
    truth = truth_id(manifest)
    own = answers.filter(pc.and_(pc.equal(answers["version"], manifest.version), pc.equal(answers["truth_id"], truth)))
    writer = _Writer(pack, scenario, snapshot, truth, options)
    rows = [row for valued in _baselines(scenario) for row in writer.rows(valued)]
    for name, asked in _by_player(own):
        rows += writer.rows(writer.valued(name, asked))
    arrays = [pa.array([row.get(one.name) for row in rows], one.type) for one in STRATEGY_VALUES]
    return pa.table(arrays, schema=STRATEGY_VALUES)


def require_fill(pack: Pack, fill: str | None) -> None:
    """Raises ConfigError where `fill` is no baseline of the scenario that has a strategy."""
    known = pack.scenario.strategies if has_decision_points(pack.scenario) else {}
    if fill is not None and fill not in known:
        raise ConfigError(f"{pack.name}: fill {fill!r}: allowed: {nearest(fill, known)}")


def merged_values(earlier: pa.Table | None, new: pa.Table, pack: Pack) -> pa.Table:
    """The new rows, behind those of other versions of the scenario."""
    if earlier is None:
        return new
    return pa.concat_tables([earlier.filter(pc.not_equal(earlier["version"], pack.manifest.version)), new])


def _baselines(scenario: SmallScenario[Any]) -> Iterator[_Valued]:
    for name, strategy in scenario.strategies.items():
        model = f"{BASELINE_PREFIX}{name}"
        who = {"persona": NO_PERSONA, "model": model, "model_variant": model}
        yield _Valued(who, values_of_probabilities(scenario, strategy))


def _by_player(answers: pa.Table) -> Iterator[tuple[tuple[str, ...], list[dict[str, Any]]]]:
    """The rows of each player, in the order of their names."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    columns = [*_PLAYER, "point", "command", "illegal_kind", "illegal_reason", "call_status"]
    for row in answers.select(columns).to_pylist():
        found.setdefault(tuple(row[name] for name in _PLAYER), []).append(row)
    yield from sorted(found.items())


@dataclass(frozen=True, slots=True)
class _Writer:
    """Makes the rows of one player after another."""

    pack: Pack
    scenario: SmallScenario[Any]
    snapshot: str
    truth: str
    options: StrategyOptions

    def valued(self, name: Sequence[str], asked: Sequence[Mapping[str, Any]]) -> _Valued:
        """A player with its rows of answers."""
        readings: dict[str, list[str | Illegal]] = {}
        for row in asked:
            draws = readings.setdefault(row["point"], [])
            if row["call_status"] == "answered":
                draws.append(row["command"] or Illegal(row["illegal_reason"] or "", row["illegal_kind"] or "unparsed"))
        fill = self._fill(readings)
        options = {"resamples": self.options.resamples, "seed": self.options.seed}
        found = values_of_readings(self.scenario, readings, fill=fill, **options)
        at_random = {name: shares for name, shares in uniform(self.scenario).items() if name in readings}
        scale = values_of_probabilities(self.scenario, at_random, fill=fill).exploitability.value
        unanswered = sum(row["call_status"] != "answered" for row in asked)
        return _Valued(dict(zip(_PLAYER, name, strict=True)), found, unanswered, scale)

    def _fill(self, readings: Mapping[str, Any]) -> Strategy:
        """Of the points that nobody asked, what is played there."""
        if self.options.fill is None:
            return {}
        played = self.scenario.strategies[self.options.fill]
        return {name: shares for name, shares in played.items() if name not in readings}

    def rows(self, valued: _Valued) -> Iterator[dict[str, Any]]:
        """All rows of a player."""
        found, manifest = valued.found, self.pack.manifest
        is_baseline = valued.who["model"].startswith(BASELINE_PREFIX)
        scale = found.uniform_exploitability if is_baseline else valued.scale
        shared = {
            "league": manifest.league,
            "scenario": manifest.scenario,
            "version": manifest.version,
            **valued.who,
            "snapshot": self.snapshot,
            "truth_id": self.truth,
            "unit": self.pack.scenario.unit,
            "n_points": len(found.strategy) if is_baseline else len(found.counts),
            "n_missing": len(found.missing),
            "n_filled": len(found.filled),
            "filled_by": self.options.fill if found.filled else None,
            **({} if is_baseline else _drawn(found.counts.values())),
        }
        why = _EXACT_STRATEGY if is_baseline else ""
        scored = PARTIAL_STRATEGY if found.filled else _WHOLE_STRATEGY
        for quantity, estimate in (
            (EXPLOITABLE, found.exploitability),
            (EXPLOITABLE_CORRECTED, found.exploitability_corrected),
        ):
            told = _told(estimate, why, valued.unanswered, scored)
            yield {**shared, "quantity": quantity, "seat": BOTH_SEATS, "scale": scale, **told}
        for won in found.against:
            about = {"quantity": WON, "opponent": f"{BASELINE_PREFIX}{won.baseline}"}
            for seat, estimate in ((_SEATS[0], won.first), (_SEATS[1], won.second), (BOTH_SEATS, won.mean)):
                yield {**shared, **about, "seat": seat, **_told(estimate, why, valued.unanswered, scored)}
        if not is_baseline:
            yield {**shared, **_unreadable(found.counts.values())}
        yield from self._by_point(shared, found, why)

    def _by_point(self, shared: Mapping[str, Any], found: StrategyValues, why: str) -> Iterator[dict[str, Any]]:
        """What is given away in each point, and how often each command is played there."""
        for point in decision_points(self.scenario):
            counts = found.counts.get(point.id)
            if counts is None and (found.counts or point.id not in found.strategy):
                continue
            drawn = {} if counts is None else _drawn([counts])
            own = {**shared, **drawn, "seat": _SEATS[point.seat], "point": point.id}
            lost = ExactEstimate(
                found.losses.get(point.id), reason=found.exploitability.reason if found.missing else _NO_INTERVAL
            )
            scored = PARTIAL_STRATEGY if found.filled else _WHOLE_STRATEGY
            yield {**own, "quantity": GIVEN_AWAY, **_told(lost, why, scored=scored)}
            shares = found.strategy.get(point.id)
            for command in point.legal:
                share = None if shares is None else shares.get(command, 0.0)
                told = _told(ExactEstimate(share, reason=_NOTHING_READ if share is None else _NO_INTERVAL), why)
                yield {**own, "quantity": PLAYED_SHARE, "command": command, **told, "unit": SHARE_UNIT}
            if counts is not None:
                yield {**own, **_unreadable([counts])}


def _told(estimate: ExactEstimate, why: str = "", unanswered: int = 0, scored: str = "scored") -> dict[str, Any]:
    """The columns of an estimate. `why`: why there is no interval, in place of the estimate's own words; `scored`: the status with a value."""
    reason = estimate.reason if estimate.value is None else why or estimate.reason
    if estimate.value is None and unanswered:
        reason += f"; {counted(unanswered, 'request')} got no response: the same command asks again"
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "status": "unscored" if estimate.value is None else scored,
        "reason": reason or None,
    }


def _drawn(counts: Iterable[DrawCounts]) -> dict[str, int]:
    counts = list(counts)
    return {"n_draws": sum(one.draws for one in counts), "n_readable": sum(one.readable for one in counts)}


def _unreadable(counts: Iterable[DrawCounts]) -> dict[str, Any]:
    """The share of the responses from which no legal command was read."""
    found = _drawn(counts)
    draws, readable = found["n_draws"], found["n_readable"]
    share = ExactEstimate(1 - readable / draws if draws else None, reason=_NO_INTERVAL if draws else "nothing was answered")
    return {"quantity": UNREADABLE_SHARE, **_told(share), "unit": SHARE_UNIT}

"""Policies replayed over a stream: what each would have chosen, how good and how dear that was, and its regret, over many seeded orders.

Nobody is asked: every outcome is stored. A policy sees the outcome of the model that it chose and of no other. The dueling bandit has two
models asked, and sees which answer was better: what it made of the item is the mean of the two scores, since choosing between answers would
take a score of each, and both are paid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.policies.choosers import AtRandom, Chooser, Codes, Dueling, EpsilonGreedy, Floats, Thompson, Ucb1
from dtef_pipeline.qa.policies.contextual import ContextualThompson, LinUcb
from dtef_pipeline.qa.policies.front import pareto_front
from dtef_pipeline.qa.policies.stream import OutcomeStream
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE
from dtef_pipeline.statistics.drawing import SEED
from dtef_pipeline.tables import field

RANDOM_POLICY, ALWAYS_BEST, ALWAYS_CHEAPEST, ORACLE, DUELING_BANDIT = (
    "random",
    "always-best",
    "always-cheapest",
    "oracle",
    "dueling-bandit",
)
_LEARNERS: Mapping[str, Callable[[int, int], Chooser]] = {
    "epsilon-greedy": EpsilonGreedy,
    "ucb1": Ucb1,
    "thompson": Thompson,
    RANDOM_POLICY: AtRandom,
}
_CONTEXTUAL_LEARNERS: Mapping[str, Callable[[int, int, int], Chooser]] = {
    "linucb": LinUcb,
    "contextual-thompson": ContextualThompson,
}
POLICY_NAMES = (*_LEARNERS, *_CONTEXTUAL_LEARNERS, DUELING_BANDIT, ALWAYS_BEST, ALWAYS_CHEAPEST, ORACLE)
POLICY_SEEDS = 100
"""Orders of the items that each policy is replayed in."""
QUALITY_BINS = 10
"""Bins of the distribution of quality, of equal width from 0 to 1."""
_STEPS_SHOWN = 100

POLICY_RESULTS = pa.schema(
    [
        field("policy", pa.string(), "Name of the policy"),
        field("n_items", pa.int64(), "Items in the stream"),
        field("n_left_out", pa.int64(), "Items that are left out, because they lack a score of some model"),
        field("n_seeds", pa.int64(), "Replays, each in an order of its own"),
        field("seed", pa.int64(), "Seed of the orders and of what the policies draw"),
        field("quality", pa.float64(), "Mean score of the chosen answers (of a duel: of both), 0-1: higher is better; mean over the replays"),
        field("quality_low", pa.float64(), "Lower end of where 95 % of the replays' mean scores lie"),
        field("quality_high", pa.float64(), "Upper end of where 95 % of the replays' mean scores lie"),
        field("quality_shares", pa.list_(pa.float64()), "Share of the items whose answers score in each tenth from 0 to 1, ten numbers"),
        field("cost_usd", pa.float64(), "US dollars for all items, mean over the replays; null: the price of some answer is unknown"),
        field("cost_low", pa.float64(), "Lower end of where 95 % of the replays' costs lie, in US dollars"),
        field("cost_high", pa.float64(), "Upper end of where 95 % of the replays' costs lie, in US dollars"),
        field("latency_s", pa.float64(), "Mean seconds for an item; null: that of some answer is unknown"),
        field("regret", pa.float64(), "Score lost against the best model of each item, summed over the stream: lower is better"),
        field("regret_low", pa.float64(), "Lower end of where 95 % of the replays' regrets lie"),
        field("regret_high", pa.float64(), "Upper end of where 95 % of the replays' regrets lie"),
        field(
            "shares",
            pa.list_(pa.struct([("model", pa.string()), ("share", pa.float64())])),
            "Share of the items that each model was asked for; two models are asked in a duel, so that shares may sum to 2",
        ),
        field("on_front", pa.bool_(), "Flag: true where no other policy is as good for less or better for as much; null: oracle, or no cost"),
        field("note", pa.string(), "Note on what is missing, and of which models; null: nothing is"),
    ]
)  # fmt: skip
"""One row per policy."""
POLICY_REGRET = pa.schema(
    [
        field("policy", pa.string(), "Name of the policy"),
        field("step", pa.int64(), "Items so far"),
        field("regret", pa.float64(), "Score lost so far against the best model of each item, mean over the replays: lower is better"),
        field("regret_low", pa.float64(), "Lower end of where 95 % of the replays' regrets lie"),
        field("regret_high", pa.float64(), "Upper end of where 95 % of the replays' regrets lie"),
    ]
)  # fmt: skip
"""One row per policy and step; steps are thinned out to 100."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a policy made of each item, in the order of each replay: (replays, items)."""

    score: Floats
    cost: Floats
    """US dollars; NaN: unknown."""
    latency: Floats
    """Seconds; NaN: unknown."""
    regret: Floats
    """Of the item alone, 0 or more: score of its best model less that of the chosen answer, or the mean of two."""
    asked: Floats
    """(models,) share of the items that each model was asked for."""


@dataclass(frozen=True, slots=True)
class PolicyReplay:
    """POLICY_RESULTS and POLICY_REGRET of some policies on one stream."""

    results: pa.Table
    regret: pa.Table


def replay_policies(
    stream: OutcomeStream, policies: Sequence[str] = POLICY_NAMES, *, seeds: int = POLICY_SEEDS, seed: int = SEED
) -> PolicyReplay:
    """Replay policies over the items in `seeds` random orders, the same for all of them. `seed` and `seeds` decide every number.

    Raises ConfigError for an unknown policy, and for no replay.
    """
    if unknown := [name for name in policies if name not in POLICY_NAMES]:
        raise ConfigError(f"policy {unknown[0]!r}: allowed: {', '.join(POLICY_NAMES)}")
    if seeds < 1:
        raise ConfigError(f"policies: got {seeds} seeds; allowed: 1 or more")
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(len(stream.scores)), (seeds, 1)), axis=1)
    known = {name: replayed(stream, name, orders, _generator(name, seed)) for name in dict.fromkeys(policies)}
    rows = [_result(stream, name, found, seeds, seed) for name, found in known.items()]
    # No router can be the oracle, which would otherwise be the front.
    cost = np.array([None if row["policy"] == ORACLE else row["cost_usd"] for row in rows], dtype=np.float64)
    front = pareto_front(cost, np.array([row["quality"] for row in rows], dtype=np.float64))
    for row, is_on in zip(rows, front, strict=True):
        row["on_front"] = None if row["cost_usd"] is None or row["policy"] == ORACLE else bool(is_on)
    curves = [row for name, found in known.items() if found is not None for row in _curve(name, found)]
    return PolicyReplay(pa.Table.from_pylist(rows, schema=POLICY_RESULTS), pa.Table.from_pylist(curves, schema=POLICY_REGRET))


def replayed(stream: OutcomeStream, policy: str, orders: Codes, rng: np.random.Generator) -> Replayed | None:
    """One policy over the items in the orders (replays, items); None: it cannot be told what it chooses (no model's cost is known)."""
    replays, (_, models) = len(orders), stream.scores.shape
    if policy == DUELING_BANDIT:
        return _outcomes(stream, orders, *_duels(stream, orders, Dueling(replays, models), rng))
    if policy in _LEARNERS:
        return _outcomes(stream, orders, _choices(stream, orders, _LEARNERS[policy](replays, models), rng))
    if policy in _CONTEXTUAL_LEARNERS:
        learner = _CONTEXTUAL_LEARNERS[policy](replays, models, stream.features.shape[1])
        return _outcomes(stream, orders, _choices(stream, orders, learner, rng))
    by_item = _fixed(stream, policy)
    return None if by_item is None else _outcomes(stream, orders, by_item[orders])


def _fixed(stream: OutcomeStream, policy: str) -> Codes | None:
    """(items,) the models of a policy that knows all outcomes beforehand; the cheaper one where two are as good."""
    price = np.nan_to_num(stream.costs.mean(axis=0), nan=np.inf)
    if policy == ORACLE:
        as_good = stream.scores == stream.scores.max(axis=1, keepdims=True)
        return np.asarray(np.where(as_good, np.argsort(np.argsort(price, kind="stable"), kind="stable"), np.inf).argmin(axis=1))
    if policy == ALWAYS_CHEAPEST and not np.isfinite(price).any():
        return None
    mean = stream.scores.mean(axis=0)
    chosen = np.lexsort((-mean, price))[0] if policy == ALWAYS_CHEAPEST else np.lexsort((price, -mean))[0]
    return np.full(len(stream.scores), chosen, dtype=np.int64)


def _choices(stream: OutcomeStream, orders: Codes, policy: Chooser, rng: np.random.Generator) -> Codes:
    """(replays, items) the models that a policy chooses one item after the other."""
    chosen = np.empty_like(orders)
    for step, item in enumerate(orders.T):
        features = stream.features[item]
        chosen[:, step] = policy.choose(features, rng)
        policy.learn(chosen[:, step], stream.scores[item, chosen[:, step]], features)
    return chosen


def _duels(stream: OutcomeStream, orders: Codes, policy: Dueling, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """(replays, items) each: the first and the second model; they may be the same."""
    pairs = np.empty_like(orders), np.empty_like(orders)
    for step, item in enumerate(orders.T):
        first, second = policy.pair(rng)
        ahead = stream.scores[item, first] - stream.scores[item, second]
        policy.learn_duel(first, second, (np.sign(ahead) + 1) / 2)
        pairs[0][:, step], pairs[1][:, step] = first, second
    return pairs


def _outcomes(stream: OutcomeStream, orders: Codes, chosen: Codes, beside: Codes | None = None) -> Replayed:
    """What comes of the choices; `beside`: the models that were asked too. Of two the mean score counts, and both are paid."""
    score, cost, latency = (of[orders, chosen] for of in (stream.scores, stream.costs, stream.latencies))
    asked = np.bincount(chosen.ravel(), minlength=len(stream.models)).astype(np.float64)
    if beside is not None:
        apart = beside != chosen
        score = (score + stream.scores[orders, beside]) / 2
        cost = cost + np.where(apart, stream.costs[orders, beside], 0)
        latency = np.where(apart, np.maximum(latency, stream.latencies[orders, beside]), latency)
        asked += np.bincount(beside[apart], minlength=len(stream.models))
    return Replayed(score, cost, latency, stream.scores.max(axis=1)[orders] - score, asked / orders.size)


def _result(stream: OutcomeStream, name: str, found: Replayed | None, seeds: int, seed: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "policy": name,
        "n_items": len(stream.scores),
        "n_left_out": stream.left_out,
        "n_seeds": seeds,
        "seed": seed,
    }
    if found is None:
        return {
            **row,
            "quality": None,
            "cost_usd": None,
            "note": f"no model's cost is known for every item: {stream.unknown()[0]}",
        }
    bins = np.minimum((found.score * QUALITY_BINS).astype(np.int64), QUALITY_BINS - 1)
    shares = np.bincount(bins.ravel(), minlength=QUALITY_BINS) / bins.size
    return {
        **row,
        **_spread("quality", "quality", found.score.mean(axis=1)),
        "quality_shares": shares.tolist(),
        **_spread("cost_usd", "cost", found.cost.sum(axis=1)),
        "latency_s": _known(found.latency.mean()),
        **_spread("regret", "regret", found.regret.sum(axis=1)),
        "shares": [{"model": model, "share": float(s)} for model, s in zip(stream.models, found.asked, strict=True)],
        "note": "; ".join(stream.unknown(None if name == ALWAYS_CHEAPEST else found.asked > 0)) or None,
    }


def _spread(name: str, prefix: str, values: Floats) -> dict[str, float | None]:
    low, high = _middle(values)
    return {name: _known(values.mean()), f"{prefix}_low": _known(low), f"{prefix}_high": _known(high)}


def _middle(values: Floats) -> Floats:
    """Where 95 % of the replays (first axis) lie: low and high."""
    tail = (1 - CONFIDENCE) / 2
    return np.asarray(np.quantile(values, [tail, 1 - tail], axis=0))


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _curve(name: str, found: Replayed) -> list[dict[str, Any]]:
    total = found.regret.cumsum(axis=1)
    steps = np.unique(np.linspace(0, total.shape[1] - 1, _STEPS_SHOWN).astype(np.int64))
    low, high = _middle(total[:, steps])
    columns = zip((steps + 1).tolist(), total[:, steps].mean(axis=0).tolist(), low.tolist(), high.tolist(), strict=True)
    return [{"policy": name, "step": step, "regret": mean, "regret_low": a, "regret_high": b} for step, mean, a, b in columns]


def _generator(policy: str, seed: int) -> np.random.Generator:
    """What a policy draws depends on its name and the seed, not on which others are replayed."""
    return np.random.default_rng([seed, *policy.encode()])

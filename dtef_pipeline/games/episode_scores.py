"""The rows of `episode_scores`: each metric in each episode, as a numerator and a denominator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.games.contract import GameMetric, WinnerlessScenario
from dtef_pipeline.games.episode_rows import PLAYED_EPISODE
from dtef_pipeline.games.game_in_play import FORFEIT_FLAG
from dtef_pipeline.games.manifest import SEVERITY_WEIGHTS
from dtef_pipeline.games.metrics import RED_FLAG_RATE, RED_FLAG_WEIGHTED, is_on_unit_scale, merge_metrics, require_composite
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.tables import EPISODE_SCORES

Floats = npt.NDArray[np.float64]
_OF_TURNS = {"illegal_rate": "illegal", "unparsed_rate": "unparsed", "refused_rate": "refused", "default_rate": "defaults"}
_OF_EPISODES = {
    "expected_return": ("reward", "the episode has no reward"),
    "volatility": ("reward", "the episode has no reward"),
    "forfeit_rate": ("forfeits", ""),
    "turns": ("n_turns", ""),
    "tokens": ("tokens", "no model plays"),
    "dollars": ("cost_usd", "no model plays, or a price is unknown"),
}


class _MetricCounts(NamedTuple):
    """One metric in all episodes: NaN, with a reason, for an episode in which it is not defined."""

    numerator: Floats
    denominator: Floats
    reason: npt.NDArray[np.object_]


def select_pack_metrics(pack: Pack) -> dict[str, GameMetric]:
    """Return the metrics of the scenario's episodes by name; red flags only if the manifest has severities."""
    metrics = merge_metrics(pack.scenario.unit, pack.scenario.metrics)
    left_out = () if pack.manifest.severities else (RED_FLAG_RATE, RED_FLAG_WEIGHTED)
    return {name: metric for name, metric in metrics.items() if name not in left_out}


def compute_episode_scores(episodes: pa.Table, pack: Pack) -> pa.Table:
    """Compute EPISODE_SCORES from rows of `episodes` of the pack's version, metric by metric.

    Raises ConfigError if the manifest puts a metric into the composite score that cannot be part of one.
    """
    metrics = select_pack_metrics(pack)
    require_composite(f"{pack.name}: evaluation, algorithmic", pack.manifest.evaluation.algorithmic, metrics)
    episodes = episodes.filter(pc.equal(episodes["version"], pack.manifest.version))
    counts = _read_own_counts(episodes, {measure.name for measure in pack.scenario.metrics})
    tables = [
        _build_score_rows(episodes, metric, counts[name] if name in counts else _count_metric(name, episodes, pack), pack)
        for name, metric in metrics.items()
    ]
    return pa.concat_tables([EPISODE_SCORES.empty_table(), *tables])


def merge_episode_scores(earlier: pa.Table | None, new: pa.Table, pack: Pack) -> pa.Table:
    """Return the rows of other versions of the scenario, then the new ones."""
    if earlier is None:
        return new
    return pa.concat_tables([earlier.filter(pc.not_equal(earlier["version"], pack.manifest.version)), new])


def _build_score_rows(episodes: pa.Table, metric: GameMetric, counts: _MetricCounts, pack: Pack) -> pa.Table:
    is_played = _convert_to_texts(episodes["status"]) == PLAYED_EPISODE
    is_scored = is_played & np.isfinite(counts.numerator) & (counts.denominator > 0)
    reason = np.where(is_played, counts.reason, _convert_to_texts(episodes["reason"]))
    reason[is_scored] = None
    with np.errstate(divide="ignore", invalid="ignore"):
        value = counts.numerator / counts.denominator
    weight = pack.manifest.evaluation.algorithmic.get(metric.name)
    constant = {
        "metric": metric.name,
        "metric_family": metric.family,
        "unit": metric.unit,
        "direction": metric.direction,
        "unit_scale": is_on_unit_scale(metric),
        "weight": weight,
    }
    columns = {
        "numerator": pa.array(counts.numerator, mask=~is_scored),
        "denominator": pa.array(counts.denominator, mask=~is_scored),
        "status": pa.array(np.where(is_scored, "scored", "unscored")),
        "reason": pa.array(reason, pa.string()),
        "value": pa.array(value, mask=~is_scored),
    }
    arrays = [
        pa.repeat(pa.scalar(constant[column.name], column.type), len(episodes))
        if column.name in constant
        else columns.get(column.name, episodes[column.name] if column.name in episodes.column_names else None)
        for column in EPISODE_SCORES
    ]
    return pa.table(arrays, schema=EPISODE_SCORES)


def _count_metric(name: str, episodes: pa.Table, pack: Pack) -> _MetricCounts:
    """Count a metric that all scenarios have."""
    n = len(episodes)
    ones, none = np.ones(n), np.full(n, None, dtype=object)
    if name in _OF_TURNS:
        return _MetricCounts(
            _convert_to_floats(episodes[_OF_TURNS[name]]),
            _convert_to_floats(episodes["n_turns"]),
            _fill_texts(n, "the player had no turn"),
        )
    if name in _OF_EPISODES:
        column, reason = _OF_EPISODES[name]
        return _MetricCounts(_convert_to_floats(episodes[column]), ones, _fill_texts(n, reason))
    if name in (RED_FLAG_RATE, RED_FLAG_WEIGHTED):
        return _MetricCounts(_sum_red_flags(episodes, pack, weighted=name == RED_FLAG_WEIGHTED), ones, none)
    if isinstance(pack.scenario, WinnerlessScenario):
        return _MetricCounts(np.full(n, np.nan), ones, _fill_texts(n, pack.scenario.no_winner_reason))
    return _MetricCounts(np.asarray(_convert_to_texts(episodes["outcome"]) == "win", dtype=np.float64), ones, none)


def _sum_red_flags(episodes: pa.Table, pack: Pack, *, weighted: bool) -> Floats:
    """Sum the flags with a severity. A forfeit by the opponent has the same flag but is not a violation of the player under test."""
    weights = {flag: SEVERITY_WEIGHTS[grave] if weighted else 1 for flag, grave in pack.manifest.severities.items()}
    opponent_weights = {**weights, FORFEIT_FLAG: 0}
    rows = zip(episodes["flags"].to_pylist(), episodes["forfeits"].to_pylist(), strict=True)
    sums = [sum((weights if forfeits else opponent_weights).get(flag, 0) for flag in flags or ()) for flags, forfeits in rows]
    return np.array(sums, dtype=np.float64)


def _read_own_counts(episodes: pa.Table, names: set[str]) -> Mapping[str, _MetricCounts]:
    """Read what the scenario itself counted, by metric."""
    n = len(episodes)
    reason = "the metric is not defined in this episode"
    counts = {name: _MetricCounts(np.full(n, np.nan), np.zeros(n), _fill_texts(n, reason)) for name in names}
    measures = episodes["metric_counts"].combine_chunks()
    row = pc.list_parent_indices(measures).to_numpy(zero_copy_only=False)
    flat = measures.flatten()
    metric = np.asarray(flat.field("metric").to_pylist(), dtype=object)
    total, denominator = (flat.field(name).to_numpy(zero_copy_only=False) for name in ("numerator", "denominator"))
    for name, count in counts.items():
        mask = metric == name
        count.numerator[row[mask]], count.denominator[row[mask]] = total[mask], denominator[mask]
    return counts


def _convert_to_floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _convert_to_texts(column: pa.ChunkedArray) -> npt.NDArray[np.object_]:
    return np.asarray(column.to_pylist(), dtype=object)


def _fill_texts(n: int, text: str) -> npt.NDArray[np.object_]:
    return np.full(n, text, dtype=object)

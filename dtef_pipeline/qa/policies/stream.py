"""What a policy chooses from: for each item the score, the cost and the latency of every model, as they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.mean_intervals import group_means
from dtef_pipeline.qa.result_means import codes
from dtef_pipeline.statistics.cluster_robust import Codes
from dtef_pipeline.text.counted import counted

_SAME_COST = 0.005
Floats = npt.NDArray[np.float64]
_MOST_CATEGORIES = 20
"""Values of a category that have a feature of their own, the most frequent ones: features are squared at each step."""


@dataclass(frozen=True, slots=True)
class OutcomeStream:
    """Items that every model was scored on, in the order in which they first occur."""

    models: tuple[str, ...]
    scores: Floats
    """(items, models), 0-1: higher is better."""
    costs: Floats
    """(items, models) US dollars; NaN: unknown."""
    latencies: Floats
    """(items, models) seconds; NaN: unknown."""
    features: Floats
    """(items, features) what is known of an item before it is asked; the first feature is 1."""
    left_out: int = 0
    """Items that lack a score of some model."""
    n_scored: tuple[int, ...] = ()
    """(models,) items with a score of the model, of all; empty: those of the stream."""

    def __post_init__(self) -> None:
        if len(self.models) < 2 or not len(self.scores):
            lacking = "".join(f"; {one}" for one in self.partly_scored())
            raise ConfigError(
                f"policies: got {counted(len(self.models), 'model')} and {counted(len(self.scores), 'item')} with a score of each "
                f"({counted(self.left_out, 'item')} left out{lacking}); allowed: 2 models or more, and 1 item or more that each of them was "
                "scored on"
            )
        if not ((self.scores >= 0) & (self.scores <= 1)).all():
            raise ConfigError("policies: got a score outside of 0-1; allowed: 0 to 1")

    def partly_scored(self) -> list[str]:
        """A sentence for each model that lacks a score of some item."""
        every = len(self.scores) + self.left_out
        counts = zip(self.models, self.n_scored, strict=True) if self.n_scored else ()
        return [f"{model} has a score for {n:,} of {counted(every, 'item')}" for model, n in counts if n < every]

    def unknown(self, asked: npt.NDArray[np.bool_] | None = None) -> list[str]:
        """A sentence for each of cost and latency that is not known of some model; `asked` (models,): of these alone; None: of all."""
        among = np.ones(len(self.models), bool) if asked is None else asked
        return list(
            filter(None, (self._unknown(name, of, among) for name, of in (("cost", self.costs), ("latency", self.latencies))))
        )

    def equal_costs(self) -> str:
        """A sentence where all models cost the same per item, up to half a percent; empty where they differ, or a cost is not known."""
        means = self.costs.mean(axis=0)
        if np.isnan(means).any() or means.max() - means.min() > _SAME_COST * means.max():
            return ""
        return f"all models cost the same per item (${means.mean():.3g}): policies differ in quality and latency alone"

    def _unknown(self, name: str, values: Floats, among: npt.NDArray[np.bool_]) -> str:
        missing = np.isnan(values).sum(axis=0) * among
        told = [
            f"{model} ({n:,} of {counted(len(values), 'item')})"
            for model, n in zip(self.models, missing.tolist(), strict=True)
            if n
        ]
        return f"the {name} is not known of {', '.join(told)}" if told else ""


def outcome_stream(rows: pa.Table, *, categories: Sequence[str] = ()) -> OutcomeStream:
    """The stream of a table with one row per response.

    Args:
        rows: `item_id`, `model` and `score` (null: none); of what there is `suite`, `cost_usd`, `latency_s`, `text_length` (characters of the
            item) and the `categories`. Draws are averaged.
        categories: columns that tell kinds of items apart, such as `suite` and `cluster`; their most frequent values become features.

    Raises:
        ConfigError: fewer than two models, or no item that each of them was scored on.
    """
    keys = [name for name in ("suite", "item_id") if name in rows.column_names]
    item, first = codes(rows, keys)
    model, first_of_model = codes(rows, ["model"])
    shape = (len(first), len(first_of_model))
    cell = item * shape[1] + model
    scores, costs, latencies = (_cells(rows, name, cell, shape) for name in ("score", "cost_usd", "latency_s"))
    complete = ~np.isnan(scores).any(axis=1)
    places = first[complete]
    features = item_features(
        _column(rows, "text_length")[places], [rows[name].take(pa.array(places)).to_pylist() for name in categories]
    )
    names = rows["model"].take(pa.array(first_of_model)).to_pylist()
    return OutcomeStream(
        tuple(map(str, names)),
        scores[complete],
        costs[complete],
        latencies[complete],
        features,
        left_out=int((~complete).sum()),
        n_scored=tuple((~np.isnan(scores)).sum(axis=0).tolist()),
    )


def items_drawn(stream: OutcomeStream, most: int, *, seed: int) -> OutcomeStream:
    """At most so many items of the stream, in their order, drawn without replacement; all of them where there are no more."""
    if len(stream.scores) <= most:
        return stream
    at = np.sort(np.random.default_rng(seed).choice(len(stream.scores), most, replace=False))
    return replace(
        stream,
        scores=stream.scores[at],
        costs=stream.costs[at],
        latencies=stream.latencies[at],
        features=stream.features[at],
    )


def item_features(lengths: Floats, categories: Sequence[Sequence[object]] = ()) -> Floats:
    """(items, features): 1; the logarithm of the length, with mean 0 and deviation 1 (NaN counts as the mean); 1 or 0 for each frequent value.

    Of a category the most frequent value has no feature, since all others 0 say it; values beyond the 20 most frequent count as that one.
    """
    columns = [np.ones(len(lengths))]
    logs = np.log1p(lengths)
    known = np.isfinite(logs)
    if known.any() and (spread := float(logs[known].std())) > 0:
        columns.append(np.where(known, (logs - logs[known].mean()) / spread, 0.0))
    for values in categories:
        texts = np.array([str(value) for value in values])
        names, counts = np.unique(texts, return_counts=True)
        frequent = names[np.lexsort((names, -counts))][1:_MOST_CATEGORIES]
        columns += [(texts == name).astype(np.float64) for name in frequent]
    return np.column_stack(columns)


def _cells(rows: pa.Table, name: str, cell: Codes, shape: tuple[int, int]) -> Floats:
    values = _column(rows, name)
    known = ~np.isnan(values)
    return group_means(values[known], cell[known], shape[0] * shape[1]).reshape(shape)


def _column(rows: pa.Table, name: str) -> Floats:
    if name not in rows.column_names:
        return np.full(len(rows), np.nan)
    return np.asarray(pc.cast(rows[name], pa.float64()).to_numpy(), dtype=np.float64)

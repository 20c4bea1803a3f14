"""Many small surveys at once, whose truth is known, so that intervals can be checked against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dtef_pipeline.survey.scoring.metrics import js
from dtef_pipeline.survey.scoring.unbiased import corrected_l2, gini

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """A kind of survey, and of a model that answers it.

    `sizes`: respondents of each segment. `shared_error`: how far the model is off on a question in all segments alike; `segment_error`: how
    far it is off in one segment alone (both standard deviations of log odds). `likeness`: how near the segments' true answers are to those of
    the population (concentration of a Dirichlet distribution: the larger, the nearer).
    """

    questions: int
    sizes: tuple[int, ...]
    shared_error: float = 0.6
    segment_error: float = 0.3
    likeness: float = 30.0
    options: int = 4


@dataclass(frozen=True)
class Sets:
    """Sums over each question's cells, by measure: `sums` (questions, sets) and `noise` (replicates, questions, sets)."""

    sums: Mapping[str, Floats]
    noise: Mapping[str, Floats]
    counts: Floats  # (questions, sets)
    cells: Floats  # (questions, segments, sets) scores, for the naive way


Measure = Callable[[Floats, Floats, Floats], Floats]
MEASURES: Mapping[str, Measure] = {
    "score": lambda predicted, observed, n: js(predicted, observed),
    "uniform": lambda predicted, observed, n: js(np.ones_like(observed), observed),
    "marginal": lambda predicted, observed, n: js(predicted, observed),
    "error": corrected_l2,
    "gini": lambda predicted, observed, n: gini(observed, n),
}
"""What is measured of every cell, from predicted and observed distributions and n. "marginal" predicts the population of the question."""


def simulate(
    rng: np.random.Generator, design: Design, sets: int, measures: Sequence[str] = ("score",), replicates: int = 20
) -> Sets:
    shape = (design.questions, len(design.sizes), sets)
    population = rng.dirichlet(np.full(design.options, 2.0), size=(design.questions, 1, sets))
    gammas = rng.standard_gamma(np.broadcast_to(population * design.likeness, (*shape, design.options))) + 1e-9
    truth = gammas / gammas.sum(axis=-1, keepdims=True)
    off = rng.normal(0, design.shared_error, (design.questions, 1, sets, design.options)) + rng.normal(
        0, design.segment_error, (*shape, design.options)
    )
    predicted = (truth + 0.005) * np.exp(off)
    n = np.broadcast_to(np.array(design.sizes)[:, None], shape)
    observed = rng.multinomial(n, truth) / n[..., None]
    given = {name: np.broadcast_to(population, truth.shape) if name == "marginal" else predicted for name in measures}
    cells = {name: _measured(name, given[name], observed, n) for name in measures}
    noise: dict[str, Floats] = {}
    drawn = [rng.multinomial(n, observed) / n[..., None] for _ in range(replicates)]
    for name in measures if replicates else ():
        values = np.stack([_measured(name, given[name], answers, n).sum(axis=1) for answers in drawn])
        noise[name] = (values - values.mean(axis=0)) * np.sqrt(replicates / (replicates - 1))
    sums = {name: values.sum(axis=1) for name, values in cells.items()}
    return Sets(sums, noise, np.full((design.questions, sets), float(len(design.sizes))), cells[measures[0]])


def expected(
    rng: np.random.Generator, design: Design, measures: Sequence[str] = ("score",), questions: int = 15_000
) -> dict[str, float]:
    """Mean of each measure over all questions there could be, all samples and all segments of the design."""
    every = simulate(rng, replace(design, questions=questions), 1, measures, replicates=0)
    return {name: float(every.sums[name].sum() / every.counts.sum()) for name in measures}


def _measured(name: str, predicted: Floats, observed: Floats, n: npt.NDArray[np.int64]) -> Floats:
    k = predicted.shape[-1]
    return MEASURES[name](predicted.reshape(-1, k), observed.reshape(-1, k), n.ravel()).reshape(n.shape)

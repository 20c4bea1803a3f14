"""Many small surveys at once, whose truth is known: what intervals are judged by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dtef_pipeline.scoring.metrics import js

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """A kind of survey, and of a model that answers it.

    `sizes`: respondents of each segment. `mood`: how far the model is off on a question, in all segments alike, `slip`: in a segment alone
    (standard deviations of log odds). `unlike`: how far the segments are from the question's population, in respondents of a Dirichlet.
    """

    questions: int
    sizes: tuple[int, ...]
    mood: float = 0.6
    slip: float = 0.3
    unlike: float = 30.0
    options: int = 4


@dataclass(frozen=True)
class Sets:
    """Sums over each question's cells: scores, counts (questions, sets) and noise (replicates, questions, sets); cells for the naive way."""

    scores: Floats
    counts: Floats
    noise: Floats
    cells: Floats  # (questions, segments, sets)


def simulate(rng: np.random.Generator, design: Design, sets: int, replicates: int = 20) -> Sets:
    shape = (design.questions, len(design.sizes), sets)
    population = rng.dirichlet(np.full(design.options, 2.0), size=(design.questions, 1, sets))
    gammas = rng.standard_gamma(np.broadcast_to(population * design.unlike, (*shape, design.options))) + 1e-9
    truth = gammas / gammas.sum(axis=-1, keepdims=True)
    off = rng.normal(0, design.mood, (design.questions, 1, sets, design.options)) + rng.normal(
        0, design.slip, (*shape, design.options)
    )
    predicted = (truth + 0.005) * np.exp(off)
    n = np.broadcast_to(np.array(design.sizes)[:, None], shape)
    observed = rng.multinomial(n, truth) / n[..., None]
    cells = _scores(predicted, observed)
    noise = np.empty((replicates, design.questions, sets))
    drawn = (
        np.stack([_scores(predicted, rng.multinomial(n, observed) / n[..., None]) for _ in range(replicates)])
        if replicates
        else None
    )
    if drawn is not None:
        noise = ((drawn - drawn.mean(axis=0)) * np.sqrt(replicates / (replicates - 1))).sum(axis=2)
    return Sets(cells.sum(axis=1), np.full((design.questions, sets), float(len(design.sizes))), noise, cells)


def expected_score(rng: np.random.Generator, design: Design, questions: int = 15_000) -> float:
    """The mean over all questions there could be, all samples and all segments of the design."""
    every = Design(questions, design.sizes, design.mood, design.slip, design.unlike, design.options)
    return float(simulate(rng, every, 1, replicates=0).cells.mean())


def _scores(predicted: Floats, observed: Floats) -> Floats:
    k = predicted.shape[-1]
    return js(predicted.reshape(-1, k), observed.reshape(-1, k)).reshape(predicted.shape[:-1])

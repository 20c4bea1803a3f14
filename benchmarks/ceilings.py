"""Ceilings and corrected errors in full: how long a round takes, and simulations with many truths where the test suite has few.

Prints seconds for a round of the size of GD4 (49 segments x 116 questions); the mean ceiling beside what the true distributions really score,
for segments of several sizes that differ much, little or not at all, few and many of them; corrected errors of one prediction by n; and the
closed form beside the simulation. Run: `python benchmarks/ceilings.py [QUESTIONS]`.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.survey.scoring.ceilings import (
    DRAWS,
    ceilings,
    prior_strength,
    truths,
)
from dtef_pipeline.survey.scoring.metrics import js
from dtef_pipeline.survey.scoring.references import reference_scores
from dtef_pipeline.survey.scoring.unbiased import measure_corrected
from dtef_pipeline.survey.tables import SURVEY_RESPONSES
from tests.made.ceiling_formulas import divergence_formula, similarity_formula

Floats = npt.NDArray[np.float64]
SIZES = np.array([15, 33, 100, 450])
SEED = 20_261_121


def a_round(rng: np.random.Generator, segments: int = 49, questions: int = 116) -> pa.Table:
    """`survey_responses` rows of four options, three attributes."""
    rows = [
        {
            "round": "GD4",
            "segment": f"{attribute}:{s}",
            "attribute": attribute,
            "question_id": f"q{q}",
            "question_text": f"Question number {q}?",
            "options": ["Never", "Seldom", "Often", "Always"],
            "scale": "ordinal",
            "dont_know": [False] * 4,
            "observed": rng.dirichlet([4, 3, 2, 1]).tolist(),
            "n": int(rng.integers(12, 500)),
            "population": [0.4, 0.3, 0.2, 0.1],
            "others": [0.4, 0.3, 0.2, 0.1],
        }
        for q in range(questions)
        for s in range(segments)
        for attribute in [("country", "ageGroup", "gender")[s % 3]]
    ]
    return pa.Table.from_pylist(rows, schema=SURVEY_RESPONSES)


def calibration(questions: int, segments: int, strength: float, rng: np.random.Generator, draws: int = 50) -> dict[str, Floats]:
    """Mean js by size of the segment: what the truth scores, and the ceilings made of the samples with and without shrinkage."""
    n = np.resize(SIZES, segments)
    found: dict[str, list[Floats]] = {"truth": [], "ceiling": [], "not shrunk": []}
    size, flags = n.astype(np.float64), np.zeros(4, dtype=bool)
    for _ in range(questions):
        mean = rng.dirichlet(np.full(4, 3.0))
        truth = rng.dirichlet(strength * mean, segments) if np.isfinite(strength) else np.tile(mean, (segments, 1))
        observed = rng.multinomial(n, truth) / n[:, None]
        population = np.broadcast_to(size @ observed / size.sum(), observed.shape)
        believed = np.full(segments, prior_strength(observed, size))
        drawn = {
            "truth": np.broadcast_to(truth, (draws, *truth.shape)),
            "ceiling": truths(observed, size, population, believed, rng, draws),
            "not shrunk": truths(observed, size, population, np.zeros(segments), rng, draws),
        }
        for name, each in drawn.items():
            found[name].append(ceilings(each, n, rng, ordinal=True, dont_know=flags)["js"])
    return {name: np.array([np.mean(np.array(values)[:, n == each]) for each in SIZES]) for name, values in found.items()}


def print_calibration(questions: int) -> None:
    print(f"\nmean ceiling (js) by n = {SIZES.tolist()}; {questions} questions per row")
    for segments in (4, 8, 20):
        for strength in (5.0, 20.0, 100.0, np.inf):
            rng = np.random.default_rng([SEED, segments, int(min(strength, 1e6))])
            means = calibration(questions, segments, strength, rng)
            shown = "; ".join(f"{name} {' '.join(f'{v:.4f}' for v in values)}" for name, values in means.items())
            print(f"  {segments} segments, prior strength {strength:g}: {shown}")


def print_corrected(samples: int = 200_000) -> None:
    truth, said = np.array([0.55, 0.25, 0.15, 0.05]), np.array([0.4, 0.3, 0.2, 0.1])
    error, steps = ((said - truth) ** 2).sum(), ((said - truth).cumsum()[:-1] ** 2).sum()
    print(f"\none prediction, one truth: squared error {error:.5f}, ranked {steps:.5f}; means over {samples:,} samples")
    for n in SIZES.tolist():
        seen = np.random.default_rng([SEED, n]).multinomial(n, truth, samples) / n
        q = np.broadcast_to(said, seen.shape)
        means = {name: values.mean() for name, values in measure_corrected(q, seen, np.full(samples, n)).items()}
        raw = ((q - seen) ** 2).sum(axis=1).mean()
        print(
            f"  n {n}: "
            + ", ".join(f"{name} {v:.5f}" for name, v in means.items())
            + f"; uncorrected {raw:.5f}, js {js(q, seen).mean():.4f}"
        )


def print_closed_form(draws: int = 100_000) -> None:
    print("\nclosed form over simulated divergence, and its similarity less the simulated one")
    for truth in ([0.4, 0.3, 0.2, 0.1], [0.7, 0.1, 0.1, 0.1], [0.97, 0.01, 0.01, 0.01]):
        for n in (10, 20, 50, 100, 450):
            seen = np.random.default_rng([SEED, n]).multinomial(n, truth, draws)
            distance = 1 - js(np.broadcast_to(truth, seen.shape), seen)
            ratio = divergence_formula(n, 4) / (distance**2).mean()
            print(f"  {truth} n {n}: {ratio:.3f}, {similarity_formula(n, 4) - (1 - distance.mean()):+.4f}")


def main() -> None:
    questions = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    responses = a_round(np.random.default_rng(SEED))
    start = time.perf_counter()
    reference_scores(responses)
    print(f"reference_scores of {len(responses):,} pairs, {DRAWS} draws each: {time.perf_counter() - start:.1f} s")
    print_corrected()
    print_closed_form()
    print_calibration(questions)


if __name__ == "__main__":
    main()

"""How long a fit of 10,000 votes on 60 players takes, beside one solution of 60 linear equations in as many unknowns on this machine.

Run: `python benchmarks/preference_fit.py`. Below 50 ms is what is asked of the scores (ties as half wins).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from dtef_pipeline.preference.vote_files import VoteColumns
from dtef_pipeline.preference.vote_fit import PreferenceOptions, fit_votes
from dtef_pipeline.statistics.bradley_terry import PairedOutcomes, fit_strengths
from dtef_pipeline.statistics.clustered_errors import clustered_errors

VOTES, PLAYERS, REVIEWERS, TIMES = 10_000, 60, 200, 15


def draw_votes(rng: np.random.Generator) -> tuple[VoteColumns, PairedOutcomes]:
    strengths, left = rng.normal(0, 0.7, PLAYERS), rng.integers(PLAYERS, size=VOTES)
    right = (left + rng.integers(1, PLAYERS, size=VOTES)) % PLAYERS
    won = rng.random(VOTES) < 1 / (1 + np.exp(strengths[right] - strengths[left]))
    outcome = np.where(rng.random(VOTES) < 0.3, 0, np.where(won, 1, -1)).astype(np.int64)
    reviewer, ones = rng.integers(REVIEWERS, size=VOTES), np.ones(VOTES)
    names = tuple(f"player {at:02d}" for at in range(PLAYERS))
    votes = VoteColumns("drawn", names, left, right, outcome, ones, tuple(map(str, reviewer.tolist())))
    return votes, PairedOutcomes(PLAYERS, left, right, outcome, ones, ones, reviewer, np.zeros((VOTES, 0)))


def milliseconds(run: Callable[[], object]) -> float:
    """The median of several runs, after one that loads what is needed."""
    run()
    spent = []
    for _ in range(TIMES):
        start = time.perf_counter()
        run()
        spent.append(time.perf_counter() - start)
    return 1e3 * float(np.median(spent))


def main() -> None:
    rng = np.random.default_rng(5)
    votes, rows = draw_votes(rng)
    matrix, side = rng.normal(size=(PLAYERS, PLAYERS)), rng.normal(size=PLAYERS)
    solved = milliseconds(lambda: np.linalg.solve(matrix, side))
    measured = {
        "one solution": solved,
        "scores, ties as half wins": milliseconds(lambda: fit_strengths(rows)),
        "scores and clustered errors": milliseconds(lambda: clustered_errors(fit_strengths(rows))),
        "scores, Davidson": milliseconds(lambda: fit_strengths(rows, ties="davidson")),
        "all that is published, with tiers": milliseconds(lambda: fit_votes(votes, PreferenceOptions())),
    }
    for name, spent in measured.items():
        print(f"{name:<36} {spent:8.2f} ms {spent / solved:8.0f} x one solution")


if __name__ == "__main__":
    main()

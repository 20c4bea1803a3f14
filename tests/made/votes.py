"""Votes of made worlds, as the statistics take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dtef_pipeline.preference.vote_files import VoteColumns, vote_columns
from dtef_pipeline.statistics.bradley_terry import PairedOutcomes

OUTCOME_OF = {"A": 1, "B": -1, "tie": 0}


def paired(
    rows: Sequence[tuple[int, int, int]],
    players: int | None = None,
    cluster: Sequence[int] | None = None,
    weight: Sequence[float] | None = None,
    covariate: Sequence[float] | None = None,
) -> PairedOutcomes:
    """Rows (left, right, outcome) as votes of one each."""
    left, right, outcome = (np.array([row[at] for row in rows], dtype=np.int64) for at in range(3))
    n = len(rows)
    return PairedOutcomes(
        players if players is not None else int(max(left.max(initial=-1), right.max(initial=-1))) + 1,
        left,
        right,
        outcome,
        np.ones(n) if weight is None else np.array(weight, dtype=np.float64),
        np.ones(n),
        None if cluster is None else np.array(cluster, dtype=np.int64),
        np.zeros((n, 0)) if covariate is None else np.array(covariate, dtype=np.float64)[:, None],
    )


def lopsided(seed: int, players: int = 7, votes: int = 400, reviewers: int = 12) -> PairedOutcomes:
    """Votes in which some players and reviewers are seen far more often than others, by Davidson's model with tastes of reviewers."""
    rng = np.random.default_rng(seed)
    often = np.exp(rng.normal(0, 0.7, players))
    rows = [tuple(rng.choice(players, 2, replace=False, p=often / often.sum())) for _ in range(votes)]
    left, right = (np.array([row[side] for row in rows]) for side in (0, 1))
    busy = np.exp(rng.normal(0, 1, reviewers))
    cluster = rng.choice(reviewers, votes, p=busy / busy.sum())
    tastes = rng.normal(0, 0.8, players) + rng.normal(0, 0.4, (reviewers, players))
    outcome = drawn_outcomes(rng, tastes[cluster, left] - tastes[cluster, right], 0.7)
    n = np.zeros((votes, 0))
    return PairedOutcomes(players, left, right, outcome, rng.uniform(0.2, 1, votes), np.ones(votes), cluster, n)


def drawn_outcomes(rng: np.random.Generator, difference: npt.NDArray[np.float64], nu: float) -> npt.NDArray[np.int64]:
    """Outcomes by Davidson's model; nu 0: no ties."""
    strengths = np.stack([np.exp(difference / 2), np.full_like(difference, nu), np.exp(-difference / 2)])
    ends = np.cumsum(strengths / strengths.sum(axis=0), axis=0)
    return np.asarray(1 - (rng.random(len(difference)) > ends[:2]).sum(axis=0), dtype=np.int64)


def votes_of(document: Mapping[str, Any]) -> VoteColumns:
    """The votes of {"votes": [[left, right, choice], ...]} or {"wins": [[winner, loser, count], ...]}, as published data has them."""
    rows = document.get("votes") or [row for row in document.get("wins", ()) if row[2]]
    of_wins = "wins" in document
    outcome = np.array([1 if of_wins else OUTCOME_OF[row[2]] for row in rows], dtype=np.int64)
    times = np.array([float(row[2]) if of_wins else 1.0 for row in rows])
    return vote_columns("made", [(row[0], row[1]) for row in rows], outcome, times)

"""How often the 95 % intervals of preference scores hold the truth, through the function that publishes them.

Reviewers have tastes of their own: what one thinks of a player is its strength and a normal deviation of the reviewer's. The truth is what
fits to votes of reviewers without end tend to: the scores of the mean probabilities over reviewers. Beside the published intervals stand
those that take every vote for independent, and those of the model.

Run: `python benchmarks/preference_coverage.py [SETS] [WORLD]`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from dtef_pipeline.preference.fitted import PreferenceOptions, fit_votes
from dtef_pipeline.preference.vote_files import VoteColumns
from dtef_pipeline.statistics.bradley_terry import PairedOutcomes, Ties, fit_strengths

Numbers = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
REVIEWERS_FOR_TRUTH = 20_000


@dataclass(frozen=True)
class VoteWorld:
    """Players, reviewers and votes of one kind; spreads in logits."""

    players: int = 8
    reviewers: int = 25
    votes: int = 600
    strengths: float = 0.7
    tastes: float = 0.6
    busy: float = 0.0
    """Spread of the logarithm of how many votes a reviewer gives; 0: all give alike."""
    nu: float = 0.0
    """How often reviewers tie."""
    ties: Ties = "half"


WORLDS_OF_VOTES = {
    "8 players, 25 reviewers, 600 votes": VoteWorld(),
    "the same, no tastes": VoteWorld(tastes=0.0),
    "the same, strong tastes": VoteWorld(tastes=1.2),
    "10 reviewers": VoteWorld(reviewers=10),
    "5 reviewers": VoteWorld(reviewers=5),
    "unbalanced reviewers": VoteWorld(busy=1.0),
    "very unbalanced reviewers": VoteWorld(busy=1.6),
    "100 reviewers, 3,000 votes": VoteWorld(reviewers=100, votes=3_000, busy=1.0),
    "ties as half wins": VoteWorld(nu=1.5),
    "ties by Davidson": VoteWorld(nu=1.5, ties="davidson"),
    "ties dropped": VoteWorld(nu=1.5, ties="drop", votes=1_000),
    "60 players, 120 reviewers, 3,500 votes": VoteWorld(players=60, reviewers=120, votes=3_500, nu=1.5, busy=1.0),
    "60 players, Davidson": VoteWorld(players=60, reviewers=120, votes=3_500, nu=1.5, busy=1.0, ties="davidson"),
}


def strengths(world: VoteWorld) -> Numbers:
    found = np.random.default_rng([1, world.players]).normal(0, world.strengths, world.players)
    return np.asarray(found - found.mean())


def probabilities(difference: Numbers, nu: float) -> Numbers:
    """(3, ...) that the left one wins, that it is a tie, that the right one wins: Davidson's model."""
    weights = np.stack([np.exp(difference / 2), np.full_like(difference, nu), np.exp(-difference / 2)])
    return np.asarray(weights / weights.sum(axis=0))


def truth(world: VoteWorld) -> Numbers:
    """(players,) the scores that a fit tends to: of each pair the mean probabilities over reviewers, as often as each other pair."""
    rng = np.random.default_rng([2, world.players])
    left, right = np.triu_indices(world.players, 1)
    apart = strengths(world)[left] - strengths(world)[right]
    deviations = world.tastes * np.sqrt(2) * rng.normal(size=(REVIEWERS_FOR_TRUTH, 1))
    means = np.stack([probabilities(d + deviations[:, 0], world.nu).mean(axis=1) for d in apart], axis=1)
    places, pairs = np.nonzero(means > 0)
    rows = PairedOutcomes(
        world.players,
        left[pairs],
        right[pairs],
        1 - places,
        means[places, pairs],
        np.ones(len(pairs)),
        None,
        np.zeros((len(pairs), 0)),
    )
    return fit_strengths(rows, ties=world.ties).beta


def drawn_votes(world: VoteWorld, rng: np.random.Generator) -> VoteColumns:
    likes = strengths(world) + world.tastes * rng.normal(size=(world.reviewers, world.players))
    busy = np.exp(world.busy * rng.normal(size=world.reviewers))
    reviewer = rng.choice(world.reviewers, world.votes, p=busy / busy.sum())
    left = rng.integers(world.players, size=world.votes)
    right = (left + rng.integers(1, world.players, size=world.votes)) % world.players
    ends = np.cumsum(probabilities(likes[reviewer, left] - likes[reviewer, right], world.nu), axis=0)
    outcome = 1 - (rng.random(world.votes) > ends[:2]).sum(axis=0)
    names = tuple(f"player {at:02d}" for at in range(world.players))
    who = tuple(f"r{number}" for number in reviewer.tolist())
    return VoteColumns("drawn", names, left, right, outcome, np.ones(world.votes), who)


def of_votes(world: VoteWorld, expected: Numbers, rng: np.random.Generator) -> dict[str, float]:
    """Share of intervals that hold the truth, by kind, and how many there are at all."""
    votes = drawn_votes(world, rng)
    options = PreferenceOptions(ties=world.ties)
    place = {name: at for at, name in enumerate(votes.players)}
    found = [score for score in fit_votes(votes, options).scores if score.beta is not None]
    made = [score for score in found if score.low is not None and score.high is not None]
    held = [score.low <= expected[place[score.model]] <= score.high for score in made]  # type: ignore[operator]
    normal = float(stdtrit(1e6, 0.975))
    model = [abs((score.beta or 0) - expected[place[score.model]]) <= normal * (score.se_model or 0) for score in found]
    alone = fit_votes(replace(votes, reviewer_ids=None), options).scores
    by_vote = [score.low <= expected[place[score.model]] <= score.high for score in alone if score.low is not None]  # type: ignore[operator]
    width = float(np.mean([score.high - score.low for score in made]) / 2) if made else np.nan  # type: ignore[operator]
    wide = [score for score in fit_votes(votes, replace(options, degrees="effective")).scores if score.low is not None]
    effective = [score.low <= expected[place[score.model]] <= score.high for score in wide]  # type: ignore[operator]
    shares = {"published": held, "with --degrees effective": effective, "by vote": by_vote, "of the model": model}
    told = {name: float(np.mean(values)) if values else np.nan for name, values in shares.items()}
    return {**told, "with interval": len(made) / world.players, "half width": width}


def coverage(world: VoteWorld, sets: int) -> dict[str, float]:
    expected = truth(world)
    drawn = [of_votes(world, expected, np.random.default_rng([3, at])) for at in range(sets)]
    return {name: float(np.nanmean([one[name] for one in drawn])) for name in drawn[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=1000)
    parser.add_argument("world", nargs="?", choices=list(WORLDS_OF_VOTES))
    given = parser.parse_args()
    for name, world in WORLDS_OF_VOTES.items():
        if given.world in (None, name):
            print(f"{name:<40}", {key: round(value, 3) for key, value in coverage(world, given.sets).items()}, flush=True)


if __name__ == "__main__":
    main()

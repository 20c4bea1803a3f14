"""How often the 95 % intervals of preference scores hold the truth, through the function that publishes them.

What a reviewer thinks of a player's response is the player's strength, a normal deviation of the reviewer's, and one of the prompt's. The truth
is what fits to votes on prompts and of reviewers without end tend to: the scores of the mean probabilities. Beside the published intervals
stand those that take every vote for independent, and those of the model. `tiers split` counts where the players are equal: how often any of
them stands in another tier.

Run: `python benchmarks/preference_coverage.py [SETS] [WORLD]`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from dtef_pipeline.preference.vote_files import VoteColumns
from dtef_pipeline.preference.vote_fit import PreferenceScore, VoteSettings, fit_votes
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
    zipf: float = 0.0
    """The r-th reviewer gives votes in proportion to r^-zipf."""
    prompts: int = 0
    """0: the votes do not say on which prompt they are."""
    prompt_effects: float = 0.0
    """Spread of what each prompt adds to the strength of each player."""
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
    "equal players, 10 prompts without effects": VoteWorld(strengths=0, prompts=10),
    "equal players, 20 prompts without effects": VoteWorld(strengths=0, prompts=20),
    "equal players, 5 prompts without effects": VoteWorld(strengths=0, prompts=5),
    "equal players, 5 prompts .8, 400 votes": VoteWorld(strengths=0, votes=400, prompts=5, prompt_effects=0.8),
    "equal players, 10 prompts .8, 400 votes": VoteWorld(strengths=0, votes=400, prompts=10, prompt_effects=0.8),
    "equal players, 20 prompts .8, 1,500 votes": VoteWorld(strengths=0, votes=1_500, prompts=20, prompt_effects=0.8),
    "equal players, 20 prompts .8, no tastes": VoteWorld(strengths=0, tastes=0, votes=1_500, prompts=20, prompt_effects=0.8),
    "equal players, 5 prompts .3, 400 votes": VoteWorld(strengths=0, votes=400, prompts=5, prompt_effects=0.3),
    "8 players, 20 prompts .8, 1,500 votes": VoteWorld(votes=1_500, prompts=20, prompt_effects=0.8),
    "equal players, 25 reviewers, Zipf 1.5": VoteWorld(strengths=0, zipf=1.5),
    "equal players, 8 reviewers, Zipf 1.5": VoteWorld(strengths=0, reviewers=8, zipf=1.5),
    "equal players, 25 reviewers, Zipf 1": VoteWorld(strengths=0, zipf=1.0),
    "Zipf 1, 10 prompts .8": VoteWorld(zipf=1.0, prompts=10, prompt_effects=0.8, votes=1_000),
}


def strengths(world: VoteWorld) -> Numbers:
    values = np.random.default_rng([1, world.players]).normal(0, world.strengths, world.players)
    return np.asarray(values - values.mean())


def probabilities(difference: Numbers, nu: float) -> Numbers:
    """(3, ...) that the left one wins, that it is a tie, that the right one wins: Davidson's model."""
    weights = np.stack([np.exp(difference / 2), np.full_like(difference, nu), np.exp(-difference / 2)])
    return np.asarray(weights / weights.sum(axis=0))


def truth(world: VoteWorld) -> Numbers:
    """(players,) the scores that a fit tends to: of each pair the mean probabilities over reviewers and prompts, as often as each other pair."""
    if not world.strengths:
        return np.zeros(world.players)
    rng = np.random.default_rng([2, world.players])
    left, right = np.triu_indices(world.players, 1)
    apart = strengths(world)[left] - strengths(world)[right]
    spread = np.hypot(world.tastes, world.prompt_effects)
    deviations = spread * np.sqrt(2) * rng.normal(size=(REVIEWERS_FOR_TRUTH, 1))
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


def draw_votes(world: VoteWorld, rng: np.random.Generator) -> VoteColumns:
    likes = strengths(world) + world.tastes * rng.normal(size=(world.reviewers, world.players))
    effects = world.prompt_effects * rng.normal(size=(max(world.prompts, 1), world.players))
    busy = np.exp(world.busy * rng.normal(size=world.reviewers)) / np.arange(1, world.reviewers + 1) ** world.zipf
    reviewer = rng.choice(world.reviewers, world.votes, p=busy / busy.sum())
    left = rng.integers(world.players, size=world.votes)
    right = (left + rng.integers(1, world.players, size=world.votes)) % world.players
    prompt = rng.integers(max(world.prompts, 1), size=world.votes)
    appeal = likes[reviewer] + effects[prompt]
    rows = np.arange(world.votes)
    ends = np.cumsum(probabilities(appeal[rows, left] - appeal[rows, right], world.nu), axis=0)
    outcome = 1 - (rng.random(world.votes) > ends[:2]).sum(axis=0)
    names = tuple(f"player {at:02d}" for at in range(world.players))
    who = tuple(f"r{number}" for number in reviewer.tolist())
    prompts = tuple(f"p{number}" for number in prompt.tolist()) if world.prompts else None
    return VoteColumns("drawn", names, left, right, outcome, np.ones(world.votes), who, prompt_ids=prompts)


def judge_votes(world: VoteWorld, expected: Numbers, rng: np.random.Generator) -> dict[str, float]:
    """Shares of the intervals of one fit that hold the truth, by kind, and whether its tiers are more than one."""
    votes = draw_votes(world, rng)
    options = VoteSettings(ties=world.ties)
    truth_of = dict(zip(votes.players, expected, strict=True))
    scores = [score for score in fit_votes(votes, options).scores if score.beta is not None]
    bounded = [score for score in scores if score.low is not None and score.high is not None]
    normal = float(stdtrit(1e6, 0.975))
    model = [abs((score.beta or 0) - truth_of[score.model]) <= normal * (score.se_model or 0) for score in scores]
    by_vote = fit_votes(replace(votes, reviewer_ids=None, prompt_ids=None), options).scores
    shares = {
        "published": [_holds(score, truth_of[score.model]) for score in bounded],
        "by vote": [_holds(score, truth_of[score.model]) for score in by_vote if score.low is not None],
        "of the model": model,
    }
    return {name: float(np.mean(held)) if held else np.nan for name, held in shares.items()} | {
        "with interval": len(bounded) / world.players,
        "half width": float(np.mean([score.high - score.low for score in bounded]) / 2) if bounded else np.nan,  # type: ignore[operator]
        "tiers split": float(len({score.tier for score in bounded}) > 1),
    }


def _holds(score: PreferenceScore, truth: float) -> bool:
    return bool(score.low <= truth <= score.high)  # type: ignore[operator]


def coverage(world: VoteWorld, sets: int) -> dict[str, float]:
    """Means over simulated fits; `half width` is their median, and `+-` the Monte-Carlo standard error of `published`."""
    expected = truth(world)
    results = [judge_votes(world, expected, np.random.default_rng([3, at])) for at in range(sets)]
    columns = {name: np.array([result[name] for result in results]) for name in results[0]}
    known = columns["published"][~np.isnan(columns["published"])]
    means = {name: float(np.nanmean(values)) if len(known) else np.nan for name, values in columns.items()}
    return means | {"half width": float(np.nanmedian(columns["half width"])), "+-": float(known.std() / len(known) ** 0.5)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=1000)
    parser.add_argument("world", nargs="?", choices=list(WORLDS_OF_VOTES))
    options = parser.parse_args()
    for name, world in WORLDS_OF_VOTES.items():
        if options.world in (None, name):
            print(f"{name:<40}", {key: round(value, 3) for key, value in coverage(world, options.sets).items()}, flush=True)


if __name__ == "__main__":
    main()

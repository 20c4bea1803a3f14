"""The benchmark of intervals in small: whole reviewers are what is independent."""

from __future__ import annotations

from benchmarks.preference_coverage import WORLDS_OF_VOTES, VoteWorld, coverage, truth


def test_published_intervals_hold_the_truth_where_reviewers_have_tastes() -> None:
    held = coverage(VoteWorld(players=5, votes=400, tastes=1.2), sets=20)
    assert 0.89 < held["published"] < 0.995
    assert held["by vote"] < held["published"] - 0.05


def test_published_intervals_hold_the_truth_where_prompts_differ() -> None:
    """Votes on one prompt were taken for as many: .74 of the intervals held the truth, and equal players stood in two tiers in .3 of fits."""
    world = VoteWorld(players=6, votes=900, strengths=0, tastes=0, prompts=12, prompt_effects=0.8)
    results = coverage(world, sets=25)
    assert results["published"] > 0.9
    assert results["with interval"] == 1
    assert results["tiers split"] <= 0.1


def test_equal_players_stand_in_one_tier_where_a_few_reviewers_give_most_votes() -> None:
    """They stood in two tiers in .33 of fits."""
    results = coverage(VoteWorld(strengths=0, zipf=1.5), sets=20)
    assert results["tiers split"] <= 0.1
    assert results["with interval"] < 0.5


def test_the_benchmark_has_worlds_with_a_truth() -> None:
    world = WORLDS_OF_VOTES["8 players, 25 reviewers, 600 votes"]
    assert abs(truth(world).sum()) < 1e-9

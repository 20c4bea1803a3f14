"""The benchmark of intervals in small: whole reviewers are what is independent."""

from __future__ import annotations

from benchmarks.preference_coverage import WORLDS_OF_VOTES, VoteWorld, coverage, truth


def test_published_intervals_hold_the_truth_where_reviewers_have_tastes() -> None:
    held = coverage(VoteWorld(players=5, votes=400, tastes=1.2), sets=25)
    assert 0.89 < held["published"] < 0.995
    assert held["by vote"] < held["published"] - 0.05


def test_the_benchmark_has_worlds_with_a_truth() -> None:
    world = WORLDS_OF_VOTES["8 players, 25 reviewers, 600 votes"]
    assert abs(truth(world).sum()) < 1e-9

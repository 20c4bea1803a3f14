"""What a board over blueprints says of runs that were not made alike."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dtef_pipeline.rubric.run_comparison import describe_unlike_runs

A, B = "standard(a)", "standard(b)"


def runs(*rows: tuple[Sequence[str], str], policy: str = "beta=0.35") -> pd.DataFrame:
    return pd.DataFrame([{"judges": list(judges), "judge_hash": by, "policy": policy} for judges, by in rows])


def test_two_scales_are_reported_as_numbers_that_cannot_be_compared_and_not_as_other_judges() -> None:
    (line,) = describe_unlike_runs(runs(([A], "five"), ([f"{A}[scale:10]"], "ten"), ([A], "five")))
    assert line.startswith("blueprints were judged on different scales")
    assert "5 classes (2 blueprints); 10 classes (1 blueprint)" in line


def test_other_judges_are_named_with_how_many_blueprints_they_judged() -> None:
    (line,) = describe_unlike_runs(runs(([A], "a"), ([A, B], "ab"), ([A], "a"), ([A, "no own judge"], "own")))
    assert "judges: standard(a) (2 blueprints); standard(a), standard(b) (1 blueprint)" in line
    assert "standard(a), no own judge (1 blueprint)" in line


def test_judges_of_one_name_that_judge_otherwise_are_distinguished_by_their_hash() -> None:
    (line,) = describe_unlike_runs(runs(([A], "1234567890"), ([A], "abcdefghij")))
    assert "standard(a) with judge_hash 12345678 (1 blueprint)" in line


def test_nothing_is_stated_of_like_runs_and_of_blueprints_without_judges() -> None:
    assert list(describe_unlike_runs(runs(([A], "a"), ([], "none"), ([A], "a")))) == []
    assert list(describe_unlike_runs(runs(([], "none"), ([], "none")))) == []


def test_policies_are_reported_with_judges() -> None:
    both = pd.concat([runs(([A], "a")), runs(([B], "b"), policy="beta=0")])
    first, second = describe_unlike_runs(both)
    assert "policies: beta=0.35 (1 blueprint); beta=0 (1 blueprint)" in first
    assert "different judges" in second

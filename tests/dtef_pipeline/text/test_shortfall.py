"""What came of what was asked for, in words."""

from __future__ import annotations

import pytest

from dtef_pipeline.text.amounts import describe_shortfall


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((20, 20, 0, 0), ""),
        ((24, 12, 9, 2), "12 of 24 episodes were played: a budget ended 9, 2 failed, 1 is not made"),
        ((1, 0, 0, 1), "0 of 1 episode was played: 1 failed"),
        ((3, 0, 0, 0), "0 of 3 episodes were played: 3 are not made"),
    ],
)
def test_it_says_how_many_came_and_what_became_of_the_others(counts: tuple[int, int, int, int], said: str) -> None:
    assert describe_shortfall(*counts, ("episode", "played")) == said

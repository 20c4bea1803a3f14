from __future__ import annotations

from itertools import permutations

import pytest

from dtef_pipeline.text.amounts import describe_shortfall
from dtef_pipeline.text.name_matching import natural_order


@pytest.mark.parametrize(
    "names",
    [
        ["m1", "m2", "m10"],
        ["a", "B", "c"],
        ["gpt-4", "gpt-4.1", "gpt-4.10", "gpt-10"],
        ["1", "1a", "a", "a1"],
        ["A", "a"],
    ],
)
def test_names_stand_in_the_order_of_their_words_and_numbers(names: list[str]) -> None:
    """Models stood as 1, 10, 2."""
    assert all(sorted(one, key=natural_order) == names for one in permutations(names))


def test_digits_of_any_length_and_script_are_compared() -> None:
    assert sorted(["x" + "9" * 10_000, "x1", "x²", "x٣"], key=natural_order)[0] == "x1"


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

from __future__ import annotations

from itertools import permutations

import pytest

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

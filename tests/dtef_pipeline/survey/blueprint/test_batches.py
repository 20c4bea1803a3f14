"""Batches of questions: nearly equal in length, no question alone, no duplicates together."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.survey.blueprint.batches import batches

SIZES = st.integers(2, 5)


@pytest.mark.parametrize(
    ("questions", "size", "lengths"),
    [
        (1, 3, [1]),
        (2, 5, [2]),
        (3, 2, [3]),
        (4, 3, [2, 2]),
        (6, 5, [3, 3]),
        (7, 2, [3, 2, 2]),
        (7, 3, [3, 2, 2]),
        (11, 5, [4, 4, 3]),
        (116, 5, [5] * 20 + [4] * 4),
    ],
)
def test_batches_are_of_nearly_equal_length_and_none_is_alone(questions: int, size: int, lengths: list[int]) -> None:
    made = batches([str(place) for place in range(questions)], size)
    assert [len(batch) for batch in made] == lengths
    assert [place for batch in made for place in batch] == list(range(questions))


def test_no_question_is_no_batch() -> None:
    assert batches([], 3) == []


@pytest.mark.parametrize(
    ("kinds", "size", "expected"),
    [
        ("aabc", 3, [[0, 2], [1, 3]]),
        ("bcaa", 2, [[0, 3], [1, 2]]),
        ("abac", 5, [[0, 1], [2, 3]]),
        ("aa", 2, [[0], [1]]),
        ("abcdefa", 4, [[0, 1, 2, 3], [4, 5, 6]]),
    ],
)
def test_duplicates_are_never_asked_together(kinds: str, size: int, expected: list[list[int]]) -> None:
    assert batches(kinds, size) == expected


@given(st.lists(st.sampled_from("abcdefghijklmnop"), max_size=40), SIZES)
def test_every_question_is_in_one_batch_and_no_batch_repeats_itself(kinds: list[str], size: int) -> None:
    made = batches(kinds, size)
    assert sorted(place for batch in made for place in batch) == list(range(len(kinds)))
    for batch in made:
        assert batch == sorted(batch)
        assert len({kinds[place] for place in batch}) == len(batch) <= max(size, 3)


@given(st.integers(2, 200), SIZES, st.data())
def test_none_is_alone_while_duplicates_are_few(questions: int, size: int, data: st.DataObject) -> None:
    kinds = [str(place) for place in range(questions)]
    if questions >= 4:
        one, other = data.draw(st.lists(st.integers(0, questions - 1), min_size=2, max_size=2, unique=True))
        kinds[one] = kinds[other]
    assert min(len(batch) for batch in batches(kinds, size)) > 1


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=20), SIZES)
def test_there_are_at_least_as_many_batches_as_duplicates(kinds: list[str], size: int) -> None:
    assert len(batches(kinds, size)) >= max(Counter(kinds).values())

"""Batches of questions: nearly equal in length, no question alone, no duplicates together."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.survey.blueprint.prompts import split_question_batches

SIZES = st.integers(2, 5)


@given(st.lists(st.sampled_from("abcdefghijklmnop"), max_size=40), SIZES)
def test_every_question_is_in_one_batch_and_no_batch_repeats_itself(kinds: list[str], size: int) -> None:
    made = split_question_batches(kinds, size)
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
    assert min(len(batch) for batch in split_question_batches(kinds, size)) > 1


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=20), SIZES)
def test_there_are_at_least_as_many_batches_as_duplicates(kinds: list[str], size: int) -> None:
    assert len(split_question_batches(kinds, size)) >= max(Counter(kinds).values())

"""Options in another order: the right option stays the right one, and letters find their way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.model import QaItem
from dtef_pipeline.qa.option_order import find_original_letter, find_shown_letter, rotate_options, rotate_order

LETTERS = "ABCDEFGHIJ"


def item_of(options: list[str], reference: str) -> QaItem:
    return QaItem("rivers/0", "mmlu", "rivers", "choice", "Which?", options=tuple(options), reference=reference)


ITEMS = st.lists(st.text(), min_size=2, max_size=10, unique=True).flatmap(
    lambda options: st.builds(item_of, st.just(options), st.sampled_from(LETTERS[: len(options)]))
)


def test_four_options_are_rotated_by_hand() -> None:
    shown = rotate_options(item_of(["Elbe", "Rigi", "Malta", "Ural"], "A"), 1)
    assert (shown.options, shown.reference) == (("Rigi", "Malta", "Ural", "Elbe"), "D")
    assert [find_original_letter(letter, rotate_order(4, 1)) for letter in "ABCD"] == ["B", "C", "D", "A"]


@given(ITEMS, st.integers(0, 3))
def test_the_same_text_is_expected_in_every_order(item: QaItem, rotation: int) -> None:
    shown, order = rotate_options(item, rotation), rotate_order(len(item.options), rotation)
    assert shown.options[LETTERS.index(shown.reference)] == item.options[LETTERS.index(item.reference)]
    assert find_original_letter(shown.reference, order) == item.reference
    assert sorted(shown.options) == sorted(item.options)
    assert (shown.item_id, shown.text) == (item.item_id, item.text)


@given(st.integers(2, 10), st.integers(0, 3), st.data())
def test_a_letter_that_is_shown_and_mapped_back_is_itself(n: int, rotation: int, data: st.DataObject) -> None:
    letter, order = data.draw(st.sampled_from(LETTERS[:n])), rotate_order(n, rotation)
    assert find_original_letter(find_shown_letter(letter, order), order) == letter
    assert find_shown_letter(find_original_letter(letter, order), order) == letter


@given(ITEMS, st.integers(0, 3), st.integers(0, 3))
def test_rotations_add_up(item: QaItem, first: int, second: int) -> None:
    together = rotate_options(rotate_options(item, first), second)
    by_hand = [item.options[(place + first + second) % len(item.options)] for place in range(len(item.options))]
    assert list(together.options) == by_hand


@pytest.mark.parametrize("letter", ["E", "a", "", "AB", "1"])
def test_a_letter_of_no_option_has_no_way_back(letter: str) -> None:
    with pytest.raises(ConfigError, match="allowed: A-D"):
        find_original_letter(letter, rotate_order(4, 1))


def test_free_answers_have_nothing_to_rotate() -> None:
    free = QaItem("gsm8k/0", "gsm8k", "all", "number", "How many?", reference="4")
    assert rotate_options(free, 0) is free
    with pytest.raises(ConfigError, match="gsm8k/0: order rotated-2"):
        rotate_options(free, 2)

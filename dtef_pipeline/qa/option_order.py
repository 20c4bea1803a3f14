"""Options in another order than the file's: what is shown where, and what a letter of a reply means in the file's order.

An item whose options are shown in every rotation tells how much a model's choice depends on the place of an option.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.item_files.layout import ITEM_LETTERS
from dtef_pipeline.qa.item_files.mmlu import CHOICE_TYPE
from dtef_pipeline.qa.model import QaItem


def rotate_order(n_options: int, rotation: int) -> tuple[int, ...]:
    """The places, in the file's order and from 0, of the options as they are shown: (1, 2, 3, 0) for four options rotated by one."""
    return tuple((place + rotation) % n_options for place in range(n_options))


def rotate_options(item: QaItem, rotation: int) -> QaItem:
    """The item as it is shown: its options rotated to the left by so many places, and the letter of the same option as before expected.

    A scorer that is given these options and this reference scores a reply to what was shown. Raises ConfigError where there is nothing to
    rotate.
    """
    if not rotation:
        return item
    if item.type != CHOICE_TYPE or not item.options:
        raise ConfigError(f"{item.item_id}: order rotated-{rotation} of an item without options: allowed: the file's order")
    order = rotate_order(len(item.options), rotation)
    return replace(
        item, options=tuple(item.options[place] for place in order), reference=find_shown_letter(item.reference, order)
    )


def find_original_letter(letter: str, order: Sequence[int]) -> str:
    """The letter in the file's order of the option that is shown under a letter. Raises ConfigError for one that is not shown."""
    return ITEM_LETTERS[order[_find_letter_place(letter, order)]]


def find_shown_letter(letter: str, order: Sequence[int]) -> str:
    """The letter under which the option is shown that has a letter in the file's order. Raises ConfigError for one of no option."""
    return ITEM_LETTERS[list(order).index(_find_letter_place(letter, order))]


def _find_letter_place(letter: str, order: Sequence[int]) -> int:
    letters = ITEM_LETTERS[: len(order)]
    if len(letter) != 1 or letter not in letters:
        raise ConfigError(f"letter {letter!r}: allowed: {letters[0]}-{letters[-1]}")
    return letters.index(letter)

"""Options in another order than the file's, and the meaning of a reply's letter in the file's order.

Showing an item's options in every rotation measures how much a model's choice depends on their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.item_files.layout import ITEM_LETTERS
from dtef_pipeline.qa.item_files.mmlu import CHOICE_TYPE
from dtef_pipeline.qa.model import QaItem


def rotate_order(n_options: int, rotation: int) -> tuple[int, ...]:
    """Return the file's places, from 0, of the options as shown: (1, 2, 3, 0) for four options rotated by one."""
    return tuple((place + rotation) % n_options for place in range(n_options))


def rotate_options(item: QaItem, rotation: int) -> QaItem:
    """Return the item as shown: its options rotated to the left by `rotation` places, and its reference the new letter of the expected
    option.

    A scorer with these options and this reference scores a reply to the shown item. Raises ConfigError for an item without options.
    """
    if not rotation:
        return item
    if item.type != CHOICE_TYPE or not item.options:
        raise ConfigError(f"{item.item_id}: order rotated-{rotation}: the item has no options; allowed: the file's order")
    order = rotate_order(len(item.options), rotation)
    return replace(
        item, options=tuple(item.options[place] for place in order), reference=find_shown_letter(item.reference, order)
    )


def find_original_letter(letter: str, order: Sequence[int]) -> str:
    """Return the letter in the file's order of the option shown under a letter. Raises ConfigError for a letter that is not shown."""
    return ITEM_LETTERS[order[_find_letter_place(letter, order)]]


def find_shown_letter(letter: str, order: Sequence[int]) -> str:
    """Return the letter under which the option with a letter in the file's order is shown. Raises ConfigError for a letter of no option."""
    return ITEM_LETTERS[list(order).index(_find_letter_place(letter, order))]


def _find_letter_place(letter: str, order: Sequence[int]) -> int:
    letters = ITEM_LETTERS[: len(order)]
    if len(letter) != 1 or letter not in letters:
        raise ConfigError(f"letter {letter!r}: allowed: {letters[0]}-{letters[-1]}")
    return letters.index(letter)

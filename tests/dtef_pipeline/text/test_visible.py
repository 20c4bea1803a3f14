from __future__ import annotations

import unicodedata

import pytest

from dtef_pipeline.text.printable import SHOWN_AS_NUMBERS, make_visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, é 漢 ⟨⟩\t\n", "plain, é 漢 ⟨⟩\t\n"),
        ("a\u202eb\u2066", "a⟨U+202E⟩b⟨U+2066⟩"),
        ("\u200b\u200f\u2060\ufeff", "⟨U+200B⟩⟨U+200F⟩⟨U+2060⟩⟨U+FEFF⟩"),
        ("\U000e0001\U000e007f", "⟨U+E0001⟩⟨U+E007F⟩"),
        ("\x00\x1b[31m\x7f\x85", "⟨U+0000⟩⟨U+001B⟩[31m⟨U+007F⟩⟨U+0085⟩"),
        ("one\r\ntwo\rthree", "one\ntwo⟨U+000D⟩three"),
    ],
)
def test_a_character_that_nobody_sees_stands_as_its_number(text: str, shown: str) -> None:
    assert make_visible(text) == shown


def test_no_control_and_no_mark_of_direction_is_left_unseen() -> None:
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    for code in range(0x110000):
        character = chr(code)
        if unicodedata.category(character) == "Cc" or unicodedata.bidirectional(character) in turning:
            assert bool(SHOWN_AS_NUMBERS.match(character)) is (character not in "\t\n"), hex(code)

"""Safe display of foreign texts on a page: invisible characters are shown as numbers."""

from __future__ import annotations

import re

SHOWN_AS_NUMBERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
"""Control characters but tab and line feed, characters without width, those that turn the direction of writing, tags, and selectors of
variants that no font has. `visible` of `site/static/site.js` has the same."""


def make_visible(text: str) -> str:
    """Return the text with every invisible character as its number: `⟨U+202E⟩`. Windows line ends become Unix ones."""
    if text.isascii() and text.isprintable():
        return text
    return SHOWN_AS_NUMBERS.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text.replace("\r\n", "\n"))

"""Safe output of foreign texts on a terminal or a page: control characters and invisible ones are shown as numbers."""

from __future__ import annotations

import re

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line feed, those that turn the direction of writing, and halves of characters."""


def escape_terminal(text: str) -> str:
    r"""Return the text with every terminal control character as its number: `\x1b[31m` for the escape sequence of red.

    Tabs and line ends stay; Windows line ends become Unix ones.
    """
    return _OBEYED.sub(
        lambda match: f"\\x{ord(match[0]):02x}" if match[0] < "\u0100" else f"\\u{ord(match[0]):04x}",
        text.replace("\r\n", "\n"),
    )


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

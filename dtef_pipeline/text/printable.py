"""Safe output of foreign texts on a terminal: control characters are shown as numbers."""

from __future__ import annotations

import re

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line feed, those that turn the direction of writing, and halves of characters."""


def escape_terminal(text: str) -> str:
    r"""Return the text with every terminal control character as its number: `\x1b[31m` for the escape sequence of red.

    Tabs and line ends stay; Windows line ends become Unix ones.
    """
    return _OBEYED.sub(_escape_control, text.replace("\r\n", "\n"))


def _escape_control(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"

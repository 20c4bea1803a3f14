"""Text that every table, hash and server accepts."""

from __future__ import annotations


def replace_surrogates(text: str) -> str:
    """Return the text with U+FFFD for NUL and for unpaired surrogates; a surrogate pair becomes its character."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")

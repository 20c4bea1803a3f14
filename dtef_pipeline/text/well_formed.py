"""Text that every table, hash and server takes."""

from __future__ import annotations


def replace_surrogates(text: str) -> str:
    """The text with U+FFFD for NUL and for half surrogate pairs; two halves that belong together become their character."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")

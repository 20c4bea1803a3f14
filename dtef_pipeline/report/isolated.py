"""Texts from data in a page. They stand isolated, so that marks which turn the direction of writing end where the text ends."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from dtef_pipeline.report.markup import DASH, breakable, is_unknown, paragraph


def inline(value: Any) -> str:
    """A short text from data."""
    return DASH if is_unknown(value) else f"<bdi>{escape(str(value))}</bdi>"


def wrapping_name(value: Any) -> str:
    """A name from data that a narrow column may break after its parts."""
    return DASH if is_unknown(value) else f"<bdi>{breakable(escape(str(value)))}</bdi>"


def said(value: Any, kind: str = "") -> str:
    """A text from data in a box, as it was written."""
    if is_unknown(value) or not str(value):
        return '<p class="count">No text.</p>'
    return f'<div class="said {kind}" dir="auto">{escape(str(value))}</div>'


def missing(what: str, made_by: str) -> str:
    """What is said where a part has nothing to be made of. Both are our words; what stands in backticks is a command."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", paragraph(f"{what}: {made_by}."))

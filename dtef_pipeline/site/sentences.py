"""Sentences and paragraphs that templates write: plain text, which pages escape when they show it."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Template

from dtef_pipeline.site.rendering import environment
from dtef_pipeline.text.number_words import format_count, format_plural


@cache
def _load_template(name: str) -> Template:
    texts = environment().overlay(autoescape=False)
    return texts.get_template(name, globals={"format_count": format_count, "format_plural": format_plural})


def write_sentence(template: str, macro: str, **values: Any) -> str:
    """Return the text of a macro of a template, such as `verdict` of a family's sentences, on one line."""
    write = getattr(_load_template(template).module, macro)
    return " ".join(str(write(**values)).split())


def write_paragraphs(template: str, **values: Any) -> list[str]:
    """Return the paragraphs of a template, which blank lines separate, each on one line."""
    text = _load_template(template).render(**values)
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n") if paragraph.strip()]

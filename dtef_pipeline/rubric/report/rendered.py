"""Markdown of authors and models as HTML that can do no harm: raw HTML is shown as text, nothing is loaded, links lead to the web alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from dtef_pipeline.report.isolated import said
from dtef_pipeline.report.markup import is_unknown
from dtef_pipeline.rubric.report.marks import with_links

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MOST_RENDERED = 20_000
"""Characters of a text; of a longer one the source is shown."""
_DEEPEST_MARKUP = 20
"""Quotes and lists within each other. What is deeper would vanish, so that of such a text the source is shown."""
_MOST_MARKUP = 10
"""Characters of markup for one of the text; a table of many empty cells would have hundreds."""
_FREE_MARKUP = 5_000
_WEB_ADDRESS = re.compile(r"https?://[^/\s]", re.IGNORECASE)
_LINK_RELATIONS = "noopener noreferrer nofollow"


def markdown_markup(words: str) -> str | None:
    """The text as markup: paragraphs, headings (all of the lowest level), lists, quotes, code, tables, emphasis, and links to http(s).

    An image is a link to it, and what has no effect (raw HTML, other links) is shown as it was written. None: the text is too long, nested
    too deeply, or would become too large.
    """
    if len(words) > MOST_RENDERED:
        return None
    parser = _parser()
    env: dict[str, Any] = {}
    tokens = parser.parse(words, env)
    if max((token.level for token in tokens), default=0) >= _DEEPEST_MARKUP - 1:
        return None
    made = str(parser.renderer.render(tokens, parser.options, env))
    return made if len(made) <= _MOST_MARKUP * len(words) + _FREE_MARKUP else None


def rendered(value: Any, kind: str = "") -> str:
    """Markdown from data, as authors wrote it; what cannot be rendered stands there as its source."""
    if is_unknown(value) or not str(value).strip():
        return ""
    made = markdown_markup(str(value).strip())
    return said(value, kind) if made is None else f'<div class="rendered {kind}" dir="auto">{made}</div>'


def said_as(value: Any, form: Any, kind: str = "") -> str:
    """A text from data in a box: rendered where its `form` is markdown, with its source beneath; else as it was written, HTML too."""
    shown = is_markdown(form) and not is_unknown(value) and str(value).strip()
    made = markdown_markup(str(value)) if shown else None
    if made is None:
        return said(value, kind)
    if made == f"<p>{escape(str(value).strip())}</p>\n" and "\n" not in str(value).strip():
        return said(value, kind)
    source = f'<details class="source-text"><summary>As it was written</summary>{said(value)}</details>'
    return f'<div class="said rendered {kind}" dir="auto">{made}</div>{source}'


def is_markdown(form: Any) -> bool:
    return not is_unknown(form) and str(form).strip().lower() == "markdown"


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # where it is used, as few commands need it

    found = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST_MARKUP}).enable(["table", "strikethrough"])
    found.disable("reference")  # a definition would vanish from sight
    found.validateLink = lambda url: bool(_WEB_ADDRESS.match(url))  # type: ignore[method-assign]
    for name, rule in (("link_open", _link_opened), ("image", _image), ("text", _text)):
        found.renderer.rules[name] = rule  # type: ignore[attr-defined]
    for name in ("heading_open", "heading_close"):
        found.renderer.rules[name] = _markdown_heading  # type: ignore[attr-defined]
    return found


def _link_opened(tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    title = tokens[at].attrGet("title")
    return _link_to(tokens[at].attrGet("href")) + (f' title="{escape(str(title))}">' if title else ">")


def _link_to(address: Any) -> str:
    return f'<a href="{escape(str(address or ""))}" rel="{_LINK_RELATIONS}"'


def _image(tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    words = tokens[at].content.strip() or "without words"
    if _is_in_link(tokens, at):
        return f"Image: {escape(words)}"
    return f"{_link_to(tokens[at].attrGet('src'))}>Image: {escape(words)}</a>"


def _text(tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    words = tokens[at].content
    return escape(words) if "://" not in words or _is_in_link(tokens, at) else with_links(words)


def _is_in_link(tokens: Sequence[Token], at: int) -> bool:
    """A link within a link is none."""
    before = [token.type for token in tokens[:at]]
    return before.count("link_open") > before.count("link_close")


def _markdown_heading(tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    """The headings of a text are below all headings of the page."""
    return "<h6>" if tokens[at].nesting == 1 else "</h6>\n"

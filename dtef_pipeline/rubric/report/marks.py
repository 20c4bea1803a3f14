"""Pieces of the rubric pages: texts of models, names, sources, scores and heat maps. Whatever comes from data is escaped here.

Texts stand isolated, so that marks which turn the direction of writing round end where the text ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from dtef_pipeline.report.isolated import said
from dtef_pipeline.report.markup import DASH, is_unknown, shortened
from dtef_pipeline.report.palette import STEPS, colour

TENTHS = tuple(at / 10 for at in range(1, len(STEPS)))
"""Inner edges of the colours of scores: each is a tenth, on all pages the same."""
SCALE_STYLE = "".join(f".h{at}{{background:{ground};color:{ink}}}" for at, (ground, ink) in enumerate(STEPS))
_ADDRESS = re.compile(r"https?://[^\s<>\"'`\\]+", re.IGNORECASE)
_LONGEST_HEADING = 34
"""Characters of a name above its column."""


def own_file(name: str) -> str:
    """A style sheet or script of these pages."""
    return files("dtef_pipeline.rubric.report").joinpath(name).read_text(encoding="utf-8")


def source(value: Any) -> str:
    """A citation or reference: addresses of the web are links, everything else is text."""
    if is_unknown(value):
        return ""
    return f'<bdi class="source">{with_links(str(value))}</bdi>'


def with_links(words: str) -> str:
    """The text as markup, in which addresses of the web are links; the mark of a sentence that follows one is no part of it."""
    parts, end = [], 0
    for match in _ADDRESS.finditer(words):
        address = match[0].rstrip(".,;:!?")
        address = address if "(" in address else address.rstrip(").,;:!?")
        if not address.partition("//")[2]:
            continue  # nothing but marks
        shown = escape(address)
        parts += [escape(words[end : match.start()]), f'<a href="{shown}" rel="noopener noreferrer nofollow">{shown}</a>']
        end = match.start() + len(address)
    return "".join((*parts, escape(words[end:])))


class Heat(NamedTuple):
    """One cell of a heat map."""

    value: float | None
    told: str = ""
    """What is seen when it is pointed at."""
    link: str = ""
    """Where it leads; ours, not from data."""
    mark: str = ""
    """A sign behind the number."""


class HeatRow(NamedTuple):
    """One row; `head` is markup."""

    head: str
    cells: Sequence[Heat | None] | None = None
    """None: the row is a heading of those below."""


def heat_table(
    caption: str, corner: str, names: Sequence[str], rows: Iterable[HeatRow], edges: Sequence[float] = TENTHS
) -> str:
    """A heat map as a table in a box that scrolls. `names` of its columns are texts."""
    head = "".join(_heading(name) for name in names)
    body = "".join(_heat_row(row, len(names), edges) for row in rows)
    shown = (
        f'<table class="heat"><caption>{escape(caption)}</caption><thead><tr><th scope="col" class="text">{escape(corner)}</th>'
        f"{head}</tr></thead><tbody>{body}</tbody></table>"
    )
    return f'{_scale(edges)}<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">{shown}</div>'


def _scale(edges: Sequence[float]) -> str:
    """What the colours of a heat map stand for."""
    swatches = "".join(f'<i class="h{step}"></i>' for step in range(len(STEPS)))
    low, high = (f"{edge:.2f}".rstrip("0").rstrip(".") for edge in (edges[0], edges[-1]))
    return f'<p class="scale">below {low} <span aria-hidden="true">{swatches}</span> {high} and above</p>'


def _heading(name: str) -> str:
    whole = escape(name)
    short = escape(shortened(name, _LONGEST_HEADING))
    return f'<th scope="col" class="upright" title="{whole}" aria-label="{whole}" data-model="{whole}"><span><bdi>{short}</bdi></span></th>'


def _heat_row(row: HeatRow, width: int, edges: Sequence[float]) -> str:
    if row.cells is None:
        return f'<tr><th scope="rowgroup" colspan="{width + 1}" class="text group">{row.head}</th></tr>'
    return f'<tr><th scope="row" class="text">{row.head}</th>{"".join(_heat_cell(cell, edges) for cell in row.cells)}</tr>'


def _heat_cell(cell: Heat | None, edges: Sequence[float]) -> str:
    if cell is None:
        return "<td></td>"
    told = f' title="{escape(cell.told)}"' if cell.told else ""
    if is_unknown(cell.value):
        kind, words = "none", DASH + cell.mark
    else:
        number = float(cell.value or 0)
        kind, words = f"h{colour(number, edges)}", f"{number:.2f}{cell.mark}"
    return f'<td class="{kind}"{told}>' + (f'<a href="{cell.link}">{words}</a></td>' if cell.link else f"{words}</td>")


def two_digits(value: Any) -> str:
    """A score as cells show it."""
    return DASH if is_unknown(value) else f"{float(value):.2f}"


def score_badge(value: Any) -> str:
    """A score on its colour."""
    if is_unknown(value):
        return '<span class="badge none">unscored</span>'
    return f'<span class="badge h{colour(float(value), TENTHS)}">{two_digits(value)}</span>'


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

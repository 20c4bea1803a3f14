"""Markup that cannot forget to escape: an element takes text, which is escaped, or other elements, which are not."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from dtef_pipeline.text.well_formed import well_formed

_WITHOUT_END = frozenset({"br", "hr", "input", "link", "meta", "wbr"})


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Content = str | int | float | None | Iterable["Content"]
"""What stands in an element: text or a number, `Html`, nothing, or several of them."""


def html(*content: Content) -> Html:
    """Contents one after the other, each escaped where it is no `Html`."""
    return Html("".join(_marked(one) for one in content))


def element(name: str, /, *content: Content, **attributes: str | int | float | bool | None) -> Html:
    """An element. An attribute is named with `_` for `-`, and with a `_` at its end where Python keeps its name; True: it has no
    value; False or None: it is left out.
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _WITHOUT_END:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{html(*content)}</{name}>")


def link(address: str, /, *content: Content, **attributes: str | bool | None) -> Html:
    return element("a", *content, href=address, **attributes)


def _attribute(key: str, value: str | int | float | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{_escaped(str(value))}"'


def _marked(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, Html):
        return content
    if isinstance(content, str | int | float):
        return _escaped(str(content))
    return "".join(_marked(one) for one in content)


def _escaped(words: str) -> str:
    return escape(well_formed(words).replace("\x00", "\N{REPLACEMENT CHARACTER}"))

"""Pages as a browser asks for them, without a browser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder

from fastapi.testclient import TestClient

from tests.dtef_pipeline.api.made import ROLE_TOKENS, begin_session, client_in
from tests.dtef_pipeline.report.browser import Browser, until
from tests.made.read_page import ReadPage

OWN_ORIGIN = {"Origin": "http://testserver"}
OPERATOR_PAGES = (
    "/queue",
    "/new",
    "/personas",
    "/personas/bold",
    "/scenarios",
    "/scenarios/poker/kuhn",
    "/health",
    "/votes",
    "/board",
)
HOSTILE = "<script>alert(1)</script>\"'&\x00\u202e"


@contextmanager
def browsing(folder: Path, role: str | None = "operator") -> Iterator[TestClient]:
    """A client that is logged in by the cookie, and follows no redirect."""
    with client_in(folder, None) as client:
        client.follow_redirects = False
        if role is not None:
            begin_session(client, role)
        yield client


def log_in(browser: Browser, address: str, role: str = "operator") -> None:
    """Log in by the form of the page, and wait for the queue."""
    browser.call("Network.clearBrowserCookies")
    browser.visits(f"{address}/login")
    browser.does(f"document.querySelector('[name=token]').value = {ROLE_TOKENS[role]!r}")
    browser.does("document.querySelector('form').requestSubmit()")
    until(lambda: browser.does("location.pathname") == "/queue")


def tags_of(markup: str) -> Sequence[tuple[str, Mapping[str, str | None]]]:
    """Every element with its attributes."""
    return ReadPage(markup).elements


_VOID = frozenset(("br", "hr", "input", "link", "meta", "wbr"))


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.builder = TreeBuilder()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        if tag in _VOID:
            self.builder.end(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            self.builder.end(tag)

    def handle_data(self, data: str) -> None:
        self.builder.data(data)


def tree_of(markup: str) -> Element:
    """The elements of a page as a tree; every element ends."""
    found = _Tree()
    found.feed(f"<body>{markup}</body>")
    return found.builder.close()


def text_of(element: Element | None) -> str:
    """What a reader sees of an element, in one line."""
    assert element is not None
    return " ".join(" ".join(element.itertext()).split())


def texts_of(markup: str, path: str = ".") -> list[str]:
    """What a reader sees of a page, or of each of its elements at a path of ElementTree such as `.//dd`."""
    return [text_of(one) for one in tree_of(markup).findall(path)]


def faults_beside(markup: str) -> dict[str, list[str]]:
    """By field, what stands beside it as wrong."""
    found = {one.get("id", ""): one for one in tree_of(markup).iter() if one.get("id", "").endswith("-fault")}
    return {
        name.removesuffix("-fault"): [text_of(one) for one in element.findall("li")] or [text_of(element)]
        for name, element in found.items()
    }


def typed_in(markup: str, name: str) -> str:
    """The text in a field of several lines. The first line end is none of its text."""
    (field,) = [one for one in tree_of(markup).iter("textarea") if one.get("name") == name]
    return (field.text or "").removeprefix("\n")


def assert_inert(markup: str) -> None:
    """No script and no style stands in the page itself, and nothing is an element that came from data."""
    for tag, attributes in tags_of(markup):
        assert "style" not in attributes
        assert tag != "style"
        assert not [name for name in attributes if name.startswith("on")]
        if tag == "script":
            assert "src" in attributes or attributes.get("type") == "application/json"


def hidden_fields(markup: str, action: str) -> dict[str, str]:
    """The hidden fields of the form that is sent to an address."""
    found: dict[str, str] = {}
    is_within = False
    for tag, attributes in tags_of(markup):
        if tag == "form":
            is_within = attributes.get("action") == action
        if is_within and tag == "input" and attributes.get("type") == "hidden":
            found[str(attributes["name"])] = attributes.get("value") or ""
    return found

"""Pages as a browser asks for them, without a browser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

from fastapi.testclient import TestClient

from tests.dtef_pipeline.api.made import ROLE_TOKENS, begin_session, client_in
from tests.dtef_pipeline.report.browser import Browser, until

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


class _Found(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags_of(markup: str) -> Sequence[tuple[str, Mapping[str, str | None]]]:
    """Every element with its attributes."""
    found = _Found()
    found.feed(markup)
    return found.tags


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

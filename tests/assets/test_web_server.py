"""Dagster's web server takes nothing from pages of other sites, and goes on working for its own pages and for programs."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from assets.stage.dagster_internals import dev_command
from assets.web_server import ForeignPageGuard, command, guard
from dtef_pipeline.errors import ConfigError

JSON = {"Content-Type": "application/json"}
QUERY = "query=mutation{setNuxSeen}"
FOREIGN_FETCH = {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
FOLLOWED = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
HTML = {"Accept": "text/html,*/*"}


async def _answer(request: Request) -> PlainTextResponse:
    return PlainTextResponse(request.method)


async def _talk(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.close()


def client(base: str = "http://127.0.0.1:3000", hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")) -> TestClient:
    routes = [
        Route("/graphql", _answer, methods=["GET", "POST"]),
        WebSocketRoute("/graphql", _talk),
        Route("/prefix/graphql", _answer, methods=["GET", "POST"]),
        Route("/report_asset_materialization/{key:path}", _answer, methods=["POST"]),
        Route("/{path:path}", _answer),
    ]
    return TestClient(ForeignPageGuard(Starlette(routes=routes), hosts), base_url=base)


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", f"/graphql?{QUERY}", {}, 405),
        ("HEAD", f"/graphql?{QUERY}", HTML, 405),
        ("GET", f"/graphql%0A?{QUERY}", {}, 400),
        ("POST", f"/graphql?{QUERY}", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ("POST", "/graphql", {"Content-Type": "text/plain; application/json"}, 415),
        ("POST", "/graphql", JSON | {"Origin": "https://127.0.0.1:3000"}, 403),
        ("POST", "/graphql", JSON | {"Origin": "null"}, 403),
        ("POST", "/graphql", JSON | {"Sec-Fetch-Site": "same-site"} | FOLLOWED, 403),
        ("POST", "/graphql", JSON | {"Host": "127.0.0.1:3000@evil.test"}, 400),
        ("POST", "/report_asset_materialization/a", {}, 415),
        ("GET", "/runs", {"Host": "evil.test"}, 400),
        ("GET", "/runs", {"Sec-Fetch-Site": "cross-site"} | FOREIGN_FETCH, 403),
        ("GET", "/runs", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403),
    ],
)
def test_what_any_page_can_have_a_browser_send_is_refused(method: str, path: str, headers: dict[str, str], status: int) -> None:
    """A picture on a foreign page launched runs: GraphQL was taken by GET, under any name, from any page."""
    answer = client().request(method, path, headers=headers, content=b"{}" if method != "GET" else None)
    assert answer.status_code == status
    assert method == "HEAD" or "allowed: " in answer.text


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("POST", "/graphql", JSON),
        ("POST", "/graphql", JSON | {"Origin": "http://127.0.0.1:3000", "Sec-Fetch-Site": "same-origin"}),
        ("POST", "/graphql", JSON | {"Host": "LOCALHOST:8080", "Origin": "http://localhost:8080"}),
        ("POST", "/graphql", JSON | {"Host": "[::1]:3000", "Origin": "http://[::1]:3000"}),
        ("GET", "/graphql", HTML),
        ("GET", "/runs", {}),
        ("GET", "/runs", {"Sec-Fetch-Site": "cross-site"} | FOLLOWED),
    ],
)
def test_own_pages_links_and_programs_go_on_working(method: str, path: str, headers: dict[str, str]) -> None:
    answer = client().request(method, path, headers=headers, content=b"{}" if method != "GET" else None)
    assert (answer.status_code, answer.text) == (200, method)
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"


def test_behind_a_proxy_with_tls_the_default_port_may_be_left_out() -> None:
    own = client("https://dtef.example.org", ("dtef.example.org",))
    for origin, status in {
        "https://dtef.example.org": 200,
        "https://dtef.example.org:443": 200,
        "http://dtef.example.org": 403,
    }.items():
        assert own.post("/graphql", json={}, headers={"Origin": origin}).status_code == status


@pytest.mark.parametrize(
    ("headers", "is_taken"),
    [
        ({}, True),
        # Not every browser counts a WebSocket as of the same origin.
        ({"Origin": "http://127.0.0.1:3000", "Sec-Fetch-Site": "cross-site"}, True),
        ({"Origin": "http://127.0.0.1:3001"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
    ],
)
def test_websockets_are_for_own_pages_and_programs(headers: dict[str, str], is_taken: bool) -> None:
    def talk() -> None:
        with client().websocket_connect("ws://127.0.0.1:3000/graphql", headers=headers):
            pass

    if is_taken:
        talk()
    else:
        with pytest.raises(WebSocketDisconnect):
            talk()


def test_hosts_are_those_of_this_computer_of_the_address_and_of_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    def hosts(bound_to: str) -> set[str]:
        made = guard(Starlette(), bound_to)
        assert isinstance(made, ForeignPageGuard)
        return set(made.hosts) - {"localhost", "127.0.0.1", "[::1]"}

    assert hosts("127.0.0.1") == hosts("localhost") == hosts("::1") == set()
    assert hosts("192.0.2.7") == {"192.0.2.7"}
    monkeypatch.setenv("DTEF_ALLOWED_HOSTS", "DTEF.example.org, dagster.example.org:8443")
    assert hosts("0.0.0.0") == {"0.0.0.0", "dtef.example.org", "dagster.example.org"}
    for wrong in ("https://dtef.example.org", "*", "*.example.org", "a b/c"):
        monkeypatch.setenv("DTEF_ALLOWED_HOSTS", wrong)
        with pytest.raises(ConfigError, match=r"DTEF_ALLOWED_HOSTS is '.*'; allowed: names of hosts"):
            guard(Starlette(), "127.0.0.1")


def test_dagsters_application_is_served_behind_the_guard(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (state / "dagster").mkdir()
    answers: list[Any] = []

    def serve(app: Any, **_: Any) -> None:
        own, query = TestClient(app, base_url="http://127.0.0.1:3000"), {"query": "{ version }"}
        answers.append(own.post("/graphql", json=query).json()["data"]["version"])
        answers.append(own.post("/graphql", json=query, headers={"Origin": "http://127.0.0.1:3001"}).status_code)
        answers.append(own.get("/graphql?query={version}", headers=FOREIGN_FETCH).status_code)

    monkeypatch.setattr("dagster_webserver.cli.uvicorn.run", serve)
    CliRunner().invoke(command(), ["--empty-workspace", "--port", "3000"], catch_exceptions=False)
    assert answers == [dg.__version__, 403, 405]


def test_dagster_dev_starts_this_server_in_place_of_dagsters(monkeypatch: pytest.MonkeyPatch) -> None:
    from dagster._cli import dev

    started: list[list[str]] = []

    def open_ipc_subprocess(parts: list[str], **_: object) -> None:
        started.append(parts)

    assert '"dagster_webserver"' in inspect.getsource(dev), "what it is given"
    monkeypatch.setattr(dev, "open_ipc_subprocess", open_ipc_subprocess)
    dev_command(web_server="assets.web_server")
    vars(dev)["open_ipc_subprocess"](["python", "-m", "dagster_webserver"])
    assert started == [["python", "-m", "assets.web_server"]]

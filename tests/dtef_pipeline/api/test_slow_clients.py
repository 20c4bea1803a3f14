"""Nobody without a token, and nobody who is slow, keeps others from being served: sockets that a test fills byte by byte."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from dtef_pipeline.api import bodies, connections
from tests.dtef_pipeline.api.made import ROLE_TOKENS, client_in, services_in
from tests.dtef_pipeline.api.served import PATIENCE_OF_TESTS_S, served

HALF_OPEN = 50
AS_OPERATOR = f"Authorization: Bearer {ROLE_TOKENS['operator']}\r\n"


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(bodies, "BODY_WITHIN_S", 1.0)
    monkeypatch.setattr(connections, "HEADERS_WITHIN_S", 1.0)
    with served(services_in(tmp_path)) as api:
        yield api.address


def opened(address: str, sent: str) -> socket.socket:
    """A connection on which so much was sent."""
    host, _, port = address.removeprefix("http://").partition(":")
    found = socket.create_connection((host, int(port)), timeout=PATIENCE_OF_TESTS_S)
    found.sendall(sent.encode())
    return found


def answered(connection: socket.socket) -> tuple[str, str]:
    """(headers, body) of the answer: all that comes until the server closes."""
    told = b""
    while some := connection.recv(65_536):
        told += some
    headers, _, body = told.decode().partition("\r\n\r\n")
    return headers.lower(), body


def unfinished(path: str, headers: str = "", length: int = 900_000) -> str:
    """A request whose body has begun."""
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n" + "{" * 100


def test_without_a_token_no_body_is_waited_for(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body of 1 MB was read to its end, and read as JSON, before anybody looked at the token."""
    monkeypatch.setattr(bodies, "BODY_WITHIN_S", PATIENCE_OF_TESTS_S)
    for token in ("", "Authorization: Bearer another\r\n"):
        with opened(address, unfinished("/api/personas", token)) as connection:
            headers, body = answered(connection)
        assert headers.startswith("http/1.1 401 ")
        assert "connection: close" in headers
        assert "content-type: application/problem+json" in headers
        assert "x-content-type-options: nosniff" in headers
        assert json.loads(body)["status"] == 401


def test_without_a_token_the_login_takes_little(address: str) -> None:
    assert httpx2.post(f"{address}/login", content=b"token=" + b"x" * 20_000).status_code == 413
    with opened(address, unfinished("/login")) as connection:
        assert answered(connection)[0].startswith("http/1.1 413 ")


def test_a_body_that_does_not_come_is_given_up(address: str) -> None:
    for path, headers, length in (("/api/personas", AS_OPERATOR, 900_000), ("/login", "", 9_000)):
        with opened(address, unfinished(path, headers, length)) as connection:
            told, body = answered(connection)
        assert told.startswith("http/1.1 408 ")
        assert "the body did not come within 1 second" in body


def test_headers_that_do_not_come_are_given_up(address: str) -> None:
    with opened(address, "GET /login HTTP/1.1\r\nHost: local") as connection:
        headers, body = answered(connection)
    assert headers.startswith("http/1.1 408 ")
    assert "content-type: application/problem+json" in headers
    assert json.loads(body)["status"] == 408
    with opened(address, "") as connection:
        assert answered(connection) == ("", "")


def test_a_second_request_on_a_connection_has_to_come_in_time_too(address: str) -> None:
    with opened(address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") as connection:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHo")
        assert answered(connection)[0].startswith("http/1.1 408 ")


def test_the_methods_of_the_server_are_told(address: str) -> None:
    with opened(address, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") as connection:
        headers, _ = answered(connection)
    assert headers.startswith("http/1.1 204 ")
    assert "allow: get, head, options, post, put\r\n" in headers


def test_what_is_no_http_is_a_problem(address: str) -> None:
    with opened(address, "NO HTTP AT ALL\r\n\r\n") as connection:
        headers, body = answered(connection)
    assert headers.startswith("http/1.1 400 bad request\r\n")
    assert json.loads(body)["title"] == "Bad Request"


@pytest.mark.parametrize("coding", ["gzip", "identity", "xchunked"])
def test_a_coding_that_is_not_read_is_a_problem(address: str, coding: str) -> None:
    """The connection was closed without a word."""
    begun = f"POST /api/personas HTTP/1.1\r\nHost: localhost\r\n{AS_OPERATOR}Transfer-Encoding: {coding}\r\n\r\n{{}}"
    with opened(address, begun) as connection:
        headers, body = answered(connection)
    assert headers.startswith("http/1.1 400 ")
    assert json.loads(body)["status"] == 400


def test_a_body_that_breaks_off_wrongly_is_a_problem(address: str) -> None:
    begun = f"POST /api/personas HTTP/1.1\r\nHost: localhost\r\n{AS_OPERATOR}Transfer-Encoding: chunked\r\n\r\nno number\r\n"
    with opened(address, begun) as connection:
        assert answered(connection)[0].startswith("http/1.1 400 ")


@pytest.mark.parametrize("headers", ["X: " + "x" * 2_000_000, "X: y\r\n" * 100_000], ids=["one header", "many headers"])
def test_headers_have_a_size(address: str, headers: str) -> None:
    """Without a token, 49 MB of them were read and kept."""
    with opened(address, f"GET /healthz HTTP/1.1\r\nHost: localhost\r\n{headers}") as connection:
        told, body = answered(connection)
    assert told.startswith("http/1.1 431 ")
    assert "content-type: application/problem+json" in told
    assert "64,000 bytes" in json.loads(body)["detail"]
    fitting = "X: y\r\n" * 9_000
    with opened(address, f"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fitting}\r\n") as connection:
        assert answered(connection)[0].startswith("http/1.1 200 ")


def test_half_open_requests_hold_up_nobody(tmp_path: Path) -> None:
    with served(services_in(tmp_path)) as api, ExitStack() as held:
        for number in range(HALF_OPEN):
            begun = "GET /api/he" if number % 2 else unfinished("/api/personas", AS_OPERATOR)
            held.enter_context(opened(api.address, begun))
        with httpx2.Client(timeout=5) as client:
            assert client.get(f"{api.address}/login").status_code == 200
            token = {"Authorization": f"Bearer {ROLE_TOKENS['operator']}"}
            assert client.get(f"{api.address}/api/evaluations/queue", headers=token).status_code == 200


def test_half_a_surrogate_pair_is_found_in_one_pass() -> None:
    """A body was read as JSON and written again, on the thread that serves everybody."""
    for text in (b'{"x": "\\\\u0000"}', b"\\ud83d\\ude00", b"\\\\ud800", b"", b"\\", b"\\u12", b"a\\n\n\\u0041"):
        assert bodies._UNSTORABLE_ESCAPE.match(text) is None, text
    for text in (
        b"\\u0000",
        b"a\\\\\\u0000",
        b"\\ud800",
        b"\\uDC00",
        b"\\ud83dx\\ude00",
        b"\\ud83d\\ud83d\\ude00",
        b'\n"\\uDfFf',
    ):
        assert bodies._UNSTORABLE_ESCAPE.match(text) is not None, text


def test_a_form_without_a_login_is_kept_to_be_sent_again(tmp_path: Path) -> None:
    with client_in(tmp_path, None) as client:
        own = {"Origin": "http://testserver"}
        answer = client.post("/personas", data={"id": "x"}, headers=own, follow_redirects=False)
    assert answer.status_code == 401
    assert "it can be sent again from here" in answer.text

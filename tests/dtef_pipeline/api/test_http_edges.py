"""What HTTP asks of every path, whichever route it is: HEAD, the header Allow, and JSON in which each key stands once."""

from __future__ import annotations

import dataclasses
from itertools import product
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dtef_pipeline.api import bodies
from dtef_pipeline.cli.serve_api import _app
from tests.dtef_pipeline.api.followed import asked_evaluation, events_path, operator_client
from tests.dtef_pipeline.api.made import client_in, services_in
from tests.dtef_pipeline.api.served import served


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/personas", "GET, HEAD, OPTIONS, POST"),
        ("/api/personas/calm", "GET, HEAD, OPTIONS, PUT"),
        ("/api/scenarios/poker/kuhn", "GET, HEAD, OPTIONS, PUT"),
        ("/api/feedback/votes", "OPTIONS, POST"),
        ("/login", "GET, HEAD, OPTIONS, POST"),
    ],
)
def test_all_methods_of_a_path_are_told(path: str, methods: str, tmp_path: Path) -> None:
    """Of two routes with one path, the methods of the first alone were told."""
    with client_in(tmp_path) as client:
        answer = client.delete(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)
        assert answer.headers["content-type"].partition(";")[0] == (
            "application/problem+json" if path.startswith("/api") else "text/html"
        )
        answer = client.options(path)
        assert (answer.status_code, answer.headers["allow"], answer.content) == (204, methods, b"")


def test_head_is_answered_as_get_without_the_body(tmp_path: Path) -> None:
    with client_in(tmp_path) as client:
        for path in ("/api/scenarios", "/login", "/static/api.css", "/api/nothing"):
            whole, head = client.get(path), client.head(path)
            assert (head.status_code, head.content) == (whole.status_code, b""), path
            assert head.headers == whole.headers, path
        assert client.head("/api/feedback/votes").status_code == 405


def test_head_of_a_stream_ends(tmp_path: Path) -> None:
    services = services_in(tmp_path)
    with served(services) as api, operator_client() as http:
        answer = http.head(api.address + events_path(asked_evaluation(services.evaluations)))
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """The last was taken, and nobody was told of the first."""
    twice = '{"id": "calm", "traits": {"patience": "high", "patience": "low"}}'
    with client_in(tmp_path) as client:
        for kind in ("application/json", "application/merge-patch+json; charset=utf-8"):
            answer = client.post("/api/personas", content=twice, headers={"Content-Type": kind})
            assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "patience"), kind


@pytest.mark.parametrize(
    "body",
    [
        b'{"\xed\xa0\x80": 1, "\xed\xa0\x80": 2}',
        b'{"id": "calm", "traits": {"\xed\xa0\x80": "x"}}',
        b'{"id": "caf\xe9"}',
        '{"id": "calm"}'.encode("utf-16"),
        '{"id": "calm"}'.encode("utf-16-le"),
        '{"id": "calm"}'.encode("utf-32-be"),
    ],
)
def test_json_is_sent_in_utf8(body: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a surrogate pair as bytes was an error of the server, and UTF-16 brought in what is refused otherwise."""
    monkeypatch.setattr(bodies, "LINGER_S", 0.0)
    with client_in(tmp_path) as client:
        for path, kind in product(
            ("/api/personas", "/api/evaluations", "/api/feedback/votes"), ("application/json", "application/a+b+json")
        ):
            answer = client.post(path, content=body, headers={"Content-Type": kind})
            assert (answer.status_code, "UTF-8, which JSON is sent in" in answer.json()["detail"]) == (400, True), (path, kind)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('{"id": ' + "1" * 5_000 + "}", "a number with too many digits"),
        ('{"id": ' + "[" * 200_000 + "]" * 200_000 + "}", "nests too deeply"),
    ],
)
def test_a_body_that_cannot_be_read_is_told_why(body: str, told: str, tmp_path: Path) -> None:
    with client_in(tmp_path) as client:
        answer = client.post("/api/personas", content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["detail"]) == (400, f"the body {'has ' if 'number' in told else ''}{told}")


@pytest.mark.parametrize("path", ["evaluations", "feedback/pairs", "personas/cautious/status"])
def test_json_that_is_sent_as_something_else_is_told_so(path: str, tmp_path: Path) -> None:
    with client_in(tmp_path) as client:
        answer = client.post(f"/api/{path}", content="{}", headers={"Content-Type": "application/x-www-form-urlencoded"})
        said = "header.Content-Type: got application/x-www-form-urlencoded; allowed: application/json"
        assert (answer.status_code, answer.json()["detail"]) == (422, said)


def test_what_arrived_is_told_as_json(tmp_path: Path) -> None:
    with client_in(tmp_path) as client:
        for sent, said in (({"family": None}, "family: got null;"), ({"seeds": True}, "seeds: got true;")):
            assert said in client.post("/api/evaluations", json=sent).json()["detail"]
        persona = {"id": "calm", "display_name": True, "system_prompt": "x"}
        assert "display_name: got true;" in client.post("/api/personas", json=persona).json()["detail"]
        assert "got [null, true];" in client.post("/api/personas", json=[None, True]).json()["detail"]


def test_a_path_has_one_spelling(tmp_path: Path) -> None:
    """A further slash led to an address of the name that the client had given."""
    with client_in(tmp_path) as client:
        for path in ("/api/personas/", "/queue/"):
            assert client.get(path, headers={"Host": "elsewhere.org"}, follow_redirects=False).status_code == 404


def test_another_name_of_this_computer_is_a_problem(tmp_path: Path) -> None:
    """The framework said so as plain text."""
    services = dataclasses.replace(services_in(tmp_path), open_to_all=True)
    with TestClient(_app(services), base_url="http://example.org") as client:
        answer = client.get("/api/personas")
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
        assert client.get("/healthz", headers={"Host": "127.0.0.1:8321"}).status_code == 200


@pytest.mark.parametrize("path", ["/api/personas", "/api/evaluations", "/api/feedback/votes"])
def test_an_answer_lists_a_part_of_a_great_many_faults(path: str, tmp_path: Path) -> None:
    """80,000 unknown keys, which fit into a body, were answered with 20 MB."""
    body = {"type": "games", **{f"{number:05}": 1 for number in range(20_000)}, "x" * 50_000: 1}
    with client_in(tmp_path) as client:
        answer = client.post(path, json=body)
        assert 400 <= answer.status_code < 500
        assert len(answer.content) < 100_000
        told = answer.json()
        assert len(told["errors"]) <= 100
        assert path != "/api/evaluations" or len(told["errors"]) + told["further_errors"] > 20_000

"""What holds for every path, whichever route it is: methods, sizes of bodies, text that can be stored."""

from __future__ import annotations

import dataclasses
from itertools import product
from pathlib import Path

import httpx2
import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.api.app import LARGEST_BODY
from dtef_pipeline.api.etags import compute_weak_etag, matches
from dtef_pipeline.cli.serve_api import _make_config
from tests.dtef_pipeline.api.made import client_in, services_in
from tests.dtef_pipeline.api.served import PATIENCE_OF_TESTS_S, served
from tests.made.shared_cases import cases


def test_a_path_that_does_not_take_the_method_is_a_problem(tmp_path: Path) -> None:
    with client_in(tmp_path) as client:
        answer = client.delete("/api/personas")
        assert (answer.status_code, answer.headers["content-type"]) == (405, "application/problem+json")
        assert answer.headers["allow"]
        assert client.delete("/login").headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("role", ["operator", None])
@pytest.mark.parametrize(
    ("path", "kind"), [("/api/personas", "application/problem+json"), ("/login", "text/html; charset=utf-8")]
)
def test_a_body_over_the_limit_is_refused(path: str, kind: str, role: str | None, tmp_path: Path) -> None:
    body = b'{"id": "' + b"x" * LARGEST_BODY + b'"}'
    with served(services_in(tmp_path)) as api, client_in(tmp_path, role) as client:
        headers = {**client.headers, "Content-Type": "application/json", "Origin": api.address}
        for content in (body, iter([body[:900_000], body[900_000:]])):
            answer = httpx2.post(api.address + path, content=content, headers=headers, timeout=PATIENCE_OF_TESTS_S)
            assert (answer.status_code, answer.headers["content-type"]) == (413, kind)
            assert answer.headers["x-content-type-options"] == "nosniff"


def test_text_that_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    """PostgreSQL stores neither NUL nor half a surrogate pair: these were errors of the server."""
    with client_in(tmp_path) as client:
        for text, is_stored in (
            (r"\ud800", False),
            (r"\ud83dx\ude00", False),
            (r"a\\\u0000", False),
            (r"\u0000", False),
            (r"\\u0000", True),
            (r"\ud83d\ude00", True),
        ):
            sent = f'{{"id": "calm", "system_prompt": "x", "display_name": "{text}"}}'
            answer = client.post("/api/personas", content=sent, headers={"Content-Type": "application/json"})
            assert (answer.status_code == 400) is not is_stored, text


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
def test_json_is_sent_in_utf8(body: bytes, tmp_path: Path) -> None:
    """Half a surrogate pair as bytes was an error of the server, and UTF-16 brought in what is refused otherwise."""
    with client_in(tmp_path) as client:
        for path, kind in product(
            ("/api/personas", "/api/evaluations", "/api/feedback/votes"), ("application/json", "application/a+b+json")
        ):
            answer = client.post(path, content=body, headers={"Content-Type": kind})
            assert (answer.status_code, "not UTF-8" in answer.json()["detail"]) == (400, True), (path, kind)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('{"id": ' + "1" * 5_000 + "}", "a number with too many digits"),
        ('{"id": ' + "[" * 200_000 + "]" * 200_000 + "}", "nested too deeply"),
    ],
)
def test_a_body_that_cannot_be_read_is_reported_with_the_reason(body: str, told: str, tmp_path: Path) -> None:
    with client_in(tmp_path) as client:
        answer = client.post("/api/personas", content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["detail"]) == (400, f"the body {'has' if 'number' in told else 'is'} {told}")


@pytest.mark.parametrize("path", ["evaluations", "feedback/votes", "personas/cautious/status"])
def test_json_that_is_sent_as_something_else_is_reported(path: str, tmp_path: Path) -> None:
    with client_in(tmp_path) as client:
        answer = client.post(f"/api/{path}", content="{}", headers={"Content-Type": "application/x-www-form-urlencoded"})
        said = "header.Content-Type: got application/x-www-form-urlencoded; allowed: application/json"
        assert (answer.status_code, answer.json()["detail"]) == (422, said)


def test_a_path_has_one_spelling(tmp_path: Path) -> None:
    """A further slash led to an address of the name that the client had given."""
    with client_in(tmp_path) as client:
        for path in ("/api/personas/", "/queue/"):
            assert client.get(path, headers={"Host": "elsewhere.org"}, follow_redirects=False).status_code == 404


def test_another_name_of_this_computer_is_refused(tmp_path: Path) -> None:
    services = dataclasses.replace(services_in(tmp_path), open_to_all=True)
    with TestClient(_make_config(services).app, base_url="http://example.org") as client:  # type: ignore[arg-type]
        assert client.get("/api/personas").status_code == 400
        assert client.get("/healthz", headers={"Host": "127.0.0.1:8321"}).status_code == 200


@pytest.mark.parametrize("path", ["/api/personas", "/api/evaluations"])
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


TAG = 'W/"abc"'
FORMS = {
    None: False,
    'W/"abc"': True,
    '"abc"': True,
    'W/"x", W/"abc"': True,
    '"x","y"': False,
    "*": True,
    "garbage": False,
    'garbage, "abc"': False,
    '"a,"abc"': False,
    'W/"abc" W/"x"': False,
    '"a,b", "abc"': True,
    'w/"abc"': False,
    '"abc': False,
    "": False,
    # The end of a header was looked for with `$`, which also matches before a final line break: the reader then never came further.
    "\n": False,
    '"abc"\n': False,
    " * ": True,
    '"",W/"abc"': True,
    '"x",, ,"abc",': True,
    ",,": False,
    "abc": False,
    '"a,abc"': False,
    '*, "abc"x': False,
}


@pytest.mark.parametrize("header", FORMS)
def test_every_form_of_the_header(header: str | None) -> None:
    assert matches(header, TAG) is FORMS[header]


def test_the_published_cases() -> None:
    for case in cases("votes", "if_none_match"):
        assert (304 if matches(case["in"]["if_none_match"], case["in"]["etag"]) else 200) == case["out"], case["id"]


@given(st.text(max_size=60))
def test_no_header_is_too_strange(header: str) -> None:
    assert matches(header, TAG) in (True, False)


def test_the_tag_is_of_what_is_stated_and_not_of_its_order() -> None:
    assert compute_weak_etag({"a": 1, "b": 2}) == compute_weak_etag({"b": 2, "a": 1}) != compute_weak_etag({"a": 1})

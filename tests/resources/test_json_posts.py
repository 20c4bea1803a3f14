"""Look-ups of a server, against a real server on loopback: replies, statuses, waits, and secrets found nowhere."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
import stamina

from dtef_pipeline.qa.transcripts.retriever import RemoteRetriever
from resources.json_posts import ATTEMPTS, SECRET_LEFT_OUT, JsonEndpoint, JsonReply
from tests.json_server import Behaviour, answers, serving

KEY = 'sk-planted/"key"\\Ünï-42'
DOCUMENT = {"page_content": "The sea is cold.", "metadata": {"FILE": "one.csv", "YEAR": 2024, "COLOUR": "red", "NAME": 7}}
REPLY = {
    "question": "Cold?",
    "context": [DOCUMENT],
    "answer": {"answer": "Yes", "citations": [{"source_index": 0, "quote": "cold"}]},
}


def drips(handler: BaseHTTPRequestHandler, received: dict[str, Any]) -> None:
    """A byte now and then, each of them well in time."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(200):
        handler.wfile.write(b" ")
        time.sleep(0.05)


def echoes(handler: BaseHTTPRequestHandler, received: dict[str, Any]) -> None:
    """A careless server, which shows what it was sent wherever it can."""
    shown = f"got {json.dumps(received)} and {received['auth']}"
    context = [{"page_content": shown, "metadata": {"NAME": received["auth"], "FILE": "f"}, "auth": received["auth"]}]
    answers(200, {**received, "context": context, "answer": {"answer": shown, "citations": [{"quote": shown}]}})(
        handler, received
    )


def endpoint(url: str, timeout: float = 10.0) -> JsonEndpoint:
    return JsonEndpoint(url, "MY_AUTH", timeout, {"MY_AUTH": KEY})


@pytest.fixture(autouse=True)
def _without_waits() -> Iterator[None]:
    with stamina.set_testing(True, attempts=ATTEMPTS):
        yield


def down() -> str:
    """The address of a server that is not there."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}/hook/s3cret"


def test_it_posts_json_with_the_key_and_reads_json() -> None:
    with serving(answers(200, REPLY)) as server:
        assert endpoint(server.url).post({"k": 3}) == JsonReply(REPLY, None)
    assert server.received == [{"k": 3, "auth": KEY}]


@pytest.mark.parametrize("fault", [answers(500), answers(429), answers(200, b'{"context": [', Content_Length="5000")])
def test_a_flaky_server_and_a_reply_that_is_cut_off_are_tried_again(fault: Behaviour) -> None:
    with serving(fault, answers(200, REPLY)) as server:
        assert endpoint(server.url).post({}) == JsonReply(REPLY, None)
        assert len(server.received) == 2


@pytest.mark.parametrize("status", [201, 302, 307, 400, 404])
def test_any_status_but_200_that_will_stay_is_a_problem_at_once(status: int) -> None:
    with serving(answers(status, b"{}", Location="http://127.0.0.1:1/")) as server:
        reply = endpoint(server.url).post({})
    assert (reply.value, len(server.received)) == (None, 1)
    assert str(reply.problem).endswith(f"answered {status}")


@pytest.mark.parametrize(("said", "attempts"), [({}, ATTEMPTS), ({"Retry_After": "3600"}, 1)])
def test_a_server_that_stays_broken_or_asks_for_an_hour_is_given_up_on(said: dict[str, str], attempts: int) -> None:
    with serving(answers(503, **said)) as server:
        reply = endpoint(server.url).post({})
    assert len(server.received) == attempts
    assert "answered 503" in str(reply.problem)


def test_a_reply_that_drips_is_not_waited_for_beyond_the_time_of_an_attempt() -> None:
    with serving(drips) as server, stamina.set_testing(True, attempts=1):
        started = time.monotonic()
        reply = endpoint(server.url, timeout=0.4).post({})
    assert "no answer in time" in str(reply.problem)
    assert time.monotonic() - started < 8


def test_a_server_that_is_down_is_a_problem_in_words() -> None:
    reply = endpoint(down()).post({})
    assert "ConnectError" in str(reply.problem)


@pytest.mark.parametrize("body", [b"", b'{"a": ', b"\xff\xfe\x00", b"[" * 200_000])
def test_what_is_no_json_is_a_problem(body: bytes) -> None:
    with serving(answers(200, body)) as server:
        reply = endpoint(server.url).post({})
    assert (reply.value, "not JSON" in str(reply.problem)) == (None, True)


def test_a_reply_without_end_is_not_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.json_posts.MAX_REPLY_BYTES", 1_000)
    with serving(answers(200, b" " * 5_000)) as server:
        assert "longer than 1,000 bytes" in str(endpoint(server.url).post({}).problem)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://x/s3cret",
        "http://[s3cret",
        "http://a:0/",
        "http://a:99999/s3cret",
        "http://user:s3cret@127.0.0.1:1/",
        "http://a b/s3cret",
    ],
)
def test_what_is_no_web_address_is_never_asked(url: str) -> None:
    reply = endpoint(url).post({})
    assert reply.value is None
    assert reply.problem
    assert "s3cret" not in reply.problem


@pytest.mark.parametrize("environ", [{}, {"MY_AUTH": "  "}])
def test_without_the_variable_nothing_is_sent_and_its_name_is_reported(environ: dict[str, str]) -> None:
    with serving(answers(200, REPLY)) as server:
        reply = JsonEndpoint(server.url, "MY_AUTH", environ=environ).post({})
    assert reply == JsonReply(None, "environment variable MY_AUTH is not set")
    assert server.received == []


def test_a_server_without_a_secret_gets_none() -> None:
    with serving(answers(200, REPLY)) as server:
        JsonEndpoint(server.url).post({"k": 1})
    assert server.received == [{"k": 1}]


def test_what_is_no_json_is_not_sent() -> None:
    reply = endpoint("http://127.0.0.1:1/").post({"k": float("nan")})
    assert "not JSON" in str(reply.problem)


@pytest.mark.parametrize(
    "behaviour",
    [echoes, answers(500, KEY.encode()), answers(403, {"auth": KEY}, X_Auth="sk-planted"), answers(200, KEY.encode())],
    ids=["200 echo", "500", "403", "no json"],
)
def test_a_planted_key_is_in_no_reply_no_error_no_log_and_no_representation(
    behaviour: Behaviour, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(behaviour) as server:
        asked = endpoint(server.url)
        reply = asked.post({"k": 1})
        found = RemoteRetriever(asked.post, asked.origin).retrieve("Cold?", 3)
    assert server.received[0]["auth"] == KEY
    out, err = capfd.readouterr()
    records = "".join(str(record.__dict__) for record in caplog.records)
    told = " ".join([repr(asked), repr(reply), repr(found), records, out, err, json.dumps(reply.value)])
    for spelled in (KEY, json.dumps(KEY)[1:-1], json.dumps(KEY, ensure_ascii=False)[1:-1], "sk-planted", "s3cret"):
        assert spelled not in told
    if reply.value is not None:
        assert SECRET_LEFT_OUT in json.dumps(reply.value)


def test_a_key_that_is_a_number_of_the_reply_is_kept_out_too() -> None:
    with serving(answers(200, {"context": [], "n": 123456})) as server:
        reply = JsonEndpoint(server.url, "MY_AUTH", environ={"MY_AUTH": "123456"}).post({})
    assert (reply.value, "contains the secret" in str(reply.problem)) == (None, True)


def test_a_remote_server_is_a_retriever() -> None:
    with serving(answers(200, REPLY)) as server:
        asked = endpoint(server.url)
        found = RemoteRetriever(asked.post, asked.origin, "openai/gpt-4o-mini").retrieve("Cold?", 2, {"YEAR": 2024})
    sent = {"k": 2, "filter": {"YEAR": 2024}, "question": "Cold?", "model": "openai:gpt-4o-mini", "auth": KEY}
    assert server.received == [sent]
    (source,) = found.sources
    assert (source.page_content, source.metadata) == ("The sea is cold.", {"FILE": "one.csv", "YEAR": 2024})

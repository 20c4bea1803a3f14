"""The webhook against a real server on loopback."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import pytest

from resources.gateway.retries import Backoff
from resources.webhook import Sent, Webhook
from tests.webhook_receiver import PATH, Receiver

PAYLOAD = {"version": 1, "series": [{"model": "m\u00fcnchen", "shift": -0.08}]}


class Waits(list[float]):
    """In place of sleeping."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


def hook(url: str, waits: Waits, *, timeout: float = 5.0, attempts: int = 4) -> Webhook:
    return Webhook(url, timeout, attempts, Backoff(first=1.0, longest=20.0), waits)


def test_it_posts_json(waits: Waits) -> None:
    with Receiver(204) as receiver:
        assert hook(receiver.url, waits).send(PAYLOAD) == Sent(1)
    assert receiver.bodies == [("application/json", PAYLOAD)]
    assert receiver.paths == [PATH]
    assert waits == []


def test_a_flaky_server_is_tried_again_with_growing_waits(waits: Waits) -> None:
    with Receiver(500, 503, 429, 200) as receiver:
        assert hook(receiver.url, waits).send(PAYLOAD) == Sent(4)
    assert [body for _, body in receiver.bodies] == [PAYLOAD] * 4
    assert len(waits) == 3
    for doubled, wait in enumerate(waits):
        assert 0.5 * 2**doubled <= wait <= 2**doubled


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413])
def test_what_the_server_refuses_is_not_tried_again(waits: Waits, status: int) -> None:
    with Receiver(status) as receiver:
        sent = hook(receiver.url, waits).send(PAYLOAD)
    assert sent.attempts == len(receiver.bodies) == 1
    assert f"answered {status}" in str(sent.problem)


def test_a_server_that_never_answers_is_given_up_on(waits: Waits) -> None:
    with Receiver(None) as receiver:
        sent = hook(receiver.url, waits, timeout=0.2, attempts=2).send(PAYLOAD)
    assert sent.attempts == 2
    assert "no answer in time" in str(sent.problem)


def test_a_server_that_is_down_is_tried_again(waits: Waits) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        sent = hook(f"http://127.0.0.1:{unused.getsockname()[1]}{PATH}", waits).send(PAYLOAD)
    assert sent.attempts == 4
    assert "refused" in str(sent.problem)


def test_a_server_says_how_long_to_wait(waits: Waits) -> None:
    with Receiver(429, 200, headers={"Retry-After": "7"}) as receiver:
        assert hook(receiver.url, waits).send(PAYLOAD) == Sent(2)
    assert waits == [7.0]


def test_a_server_that_asks_for_an_hour_is_not_waited_for(waits: Waits) -> None:
    with Receiver(503, headers={"Retry-After": "3600"}) as receiver:
        sent = hook(receiver.url, waits).send(PAYLOAD)
    assert (sent.attempts, waits) == (1, [])
    assert "answered 503" in str(sent.problem)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_it_is_not_sent_elsewhere_by_the_server(waits: Waits, status: int) -> None:
    with Receiver(status, headers={"Location": "/elsewhere"}) as receiver:
        sent = hook(receiver.url, waits).send(PAYLOAD)
    assert receiver.paths == [PATH]
    assert f"answered {status}" in str(sent.problem)


def _problems(waits: Waits, urls: Sequence[str]) -> list[str]:
    return [str(hook(url, waits, attempts=1, timeout=1.0).send(PAYLOAD).problem) for url in urls]


def test_nothing_it_says_holds_the_secret(waits: Waits) -> None:
    with Receiver(500) as receiver:
        urls = [
            receiver.url,
            "http://user:s3cret@127.0.0.1:1/s3cret",
            "http://127.0.0.1:99999/s3cret",
            "http://127.0.0.1/s3c\nret-s3cret",
            "http://[s3cret",
            "file:///s3cret",
            "s3cret",
            "",
        ]
        said = _problems(waits, urls)
        shown = [repr(hook(url, waits)) + hook(url, waits).where for url in urls]
    assert all(said)
    assert "s3cret" not in " ".join([*said, *shown])


def test_what_is_no_json_is_not_sent_and_not_raised(waits: Waits) -> None:
    with Receiver(200) as receiver:
        sent = hook(receiver.url, waits).send({"shift": float("nan")})
    assert receiver.bodies == []
    assert sent.problem

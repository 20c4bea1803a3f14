"""The webhook against a real server on loopback."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest
import stamina

from resources import webhook
from resources.webhook import ATTEMPTS, Webhook
from tests.webhook_receiver import PATH, Receiver

MESSAGE = {"table": "model_drift", "series": [{"model": "m\u00fcnchen", "shift": -0.08}]}
SECRET = "s3cret"


@pytest.fixture(autouse=True)
def _without_waits() -> Iterator[None]:
    with stamina.set_testing(True, attempts=ATTEMPTS):
        yield


def test_it_posts_json() -> None:
    with Receiver(204) as receiver:
        assert Webhook(receiver.url).send(MESSAGE) is None
    assert receiver.bodies == [("application/json", MESSAGE)]
    assert receiver.paths == [PATH]


def test_a_flaky_server_is_tried_again() -> None:
    with Receiver(500, 503, 429, 200) as receiver:
        assert Webhook(receiver.url).send(MESSAGE) is None
    assert [body for _, body in receiver.bodies] == [MESSAGE] * 4


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 400, 401, 403, 404, 410, 413])
def test_what_the_server_refuses_is_neither_tried_again_nor_sent_elsewhere(status: int) -> None:
    with Receiver(status, headers={"Location": "/elsewhere"}) as receiver:
        assert str(status) in str(Webhook(receiver.url).send(MESSAGE))
    assert receiver.paths == [PATH]


@pytest.mark.parametrize("status", [503, None])
def test_a_server_that_fails_or_hangs_is_given_up_on(status: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "TIMEOUT_S", 0.2)
    with Receiver(status) as receiver:
        assert Webhook(receiver.url).send(MESSAGE)


def test_a_server_that_is_down_is_no_error_of_the_caller() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert Webhook(f"http://127.0.0.1:{unused.getsockname()[1]}{PATH}").send(MESSAGE)


def test_what_is_no_json_is_not_sent_and_not_raised() -> None:
    with Receiver(200) as receiver:
        assert Webhook(receiver.url).send({"shift": float("nan")})
    assert receiver.bodies == []


def test_neither_logs_nor_problems_hold_the_secret(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """httpx logs each address in full, stamina the error of each attempt."""
    caplog.set_level(logging.DEBUG)
    for status in (500, 400, 200):
        with Receiver(status) as receiver:
            hook = Webhook(receiver.url)
            said = f"{hook.send(MESSAGE)} {hook}"
        assert SECRET not in said
    for url in (
        "http://user:s3cret@127.0.0.1:1/s3cret",
        "http://127.0.0.1:99999/s3cret",
        "http://127.0.0.1/s3c\nret-s3cret",
        "http://[s3cret",
        "http://127.0.0.1:1/s3cret",
        "file:///s3cret",
        "s3cret",
        "",
    ):
        problem = Webhook(url).send(MESSAGE)
        assert problem
        assert SECRET not in problem
    # All that a log could show, the extras of its records included.
    assert SECRET not in "".join(str(record.__dict__) for record in caplog.records)
    assert SECRET not in "".join(capsys.readouterr())

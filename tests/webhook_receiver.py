"""A server on loopback that receives messages to a webhook, remembers them, and answers with the statuses it is given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.json_server import Behaviour, answers, serving


class Received:
    """`bodies`: (content type, message) of each."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[tuple[str | None, Any]] = []

    def noting(self, behave: Behaviour) -> Behaviour:
        def note(handler: BaseHTTPRequestHandler, received: dict[str, Any]) -> None:
            self.bodies.append((handler.headers["content-type"], received))
            behave(handler, received)

        return note


@contextmanager
def Receiver(*statuses: int) -> Iterator[Received]:
    """For the time of the block; the last status is given again and again."""
    made = Received()
    with serving(*(made.noting(answers(status)) for status in statuses)) as server:
        made.url = server.url
        yield made

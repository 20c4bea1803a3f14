"""The API on a port of loopback, in a thread of the test: for browsers, streams and clients that go away."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import uvicorn
from fastapi import FastAPI

from dtef_pipeline.api.app import make_app
from dtef_pipeline.api.services import Services

PATIENCE_OF_TESTS_S = 60.0


class ServedApi(NamedTuple):
    """An application that answers."""

    address: str
    """`http://127.0.0.1:PORT`"""
    app: FastAPI


@contextmanager
def served(services: Services) -> Iterator[ServedApi]:
    """The application over these services for the time of the block."""
    app = make_app(services)
    config = uvicorn.Config(app, http="h11", host="127.0.0.1", port=0, log_level="error", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + PATIENCE_OF_TESTS_S
    while not (server.started and server.servers):
        assert thread.is_alive(), "the server did not start"
        assert time.monotonic() < end, "the server did not start in time"
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield ServedApi(f"http://127.0.0.1:{port}", app)
    finally:
        server.should_exit = True
        thread.join(PATIENCE_OF_TESTS_S)

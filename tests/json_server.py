"""A server on loopback that takes POSTs of JSON and behaves as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


def answers(status: int, body: Any = b"", **headers: str) -> Behaviour:
    def behave(handler: BaseHTTPRequestHandler, received: dict[str, Any]) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {"Content-Length": str(len(data)), **given}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    return behave


class Server:
    def __init__(self, *behaviours: Behaviour) -> None:
        self.behaviours = list(behaviours)
        self.received: list[dict[str, Any]] = []
        self.url = ""

    def next(self) -> Behaviour:
        first = self.behaviours[0]
        self.behaviours = self.behaviours[1:] or self.behaviours
        return first


@contextmanager
def serving(*behaviours: Behaviour) -> Iterator[Server]:
    server = Server(*behaviours)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received = json.loads(self.rfile.read(int(self.headers["content-length"])))
            server.received.append(received)
            with suppress(OSError):  # the other side has had enough
                server.next()(self, received)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_address[1]}/evaluation?token=s3cret"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()

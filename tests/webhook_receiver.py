"""A server on loopback that receives POSTs of JSON, remembers them, and answers as it is set up to."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

PATH = "/hook/s3cret?token=s3cret"


class Receiver:
    """Answers POSTs with the given statuses, the last one again and again; `None` never answers."""

    def __init__(self, *statuses: int | None) -> None:
        self.statuses = list(statuses)
        self.bodies: list[Any] = []
        self.paths: list[str] = []
        self._end = threading.Event()

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{PATH}"

    def next_status(self) -> int | None:
        status = self.statuses[0]
        self.statuses = self.statuses[1:] or self.statuses
        if status is None:
            self._end.wait(20)
        return status


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.bodies.append((self.headers["content-type"], json.loads(body)))
            receiver.paths.append(self.path)
            status = receiver.next_status()
            if status is not None:
                self.send_response(status)
                self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler

"""A server on loopback that receives POSTs of JSON, remembers them, and answers as it is set up to.

As a process, for trying things out (prints each message, Ctrl-C ends):

    python -m tests.webhook_receiver --port 0 --status 200
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

PATH = "/hook/s3cret?token=s3cret"


class Receiver:
    """Answers POSTs with the given statuses, the last one again and again; `None` never answers."""

    def __init__(
        self,
        *statuses: int | None,
        headers: dict[str, str] | None = None,
        port: int = 0,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.statuses, self.headers, self.port, self.say = list(statuses), headers or {}, port, say or (lambda text: None)
        self.bodies: list[Any] = []
        self.paths: list[str] = []
        self._end = threading.Event()

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
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
            receiver.say(body.decode())
            status = receiver.next_status()
            if status is not None:
                self.send_response(status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.end_headers()

        def do_GET(self) -> None:
            receiver.paths.append(f"GET {self.path}")
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--status", type=int, nargs="+", default=[200], help="of the answers, the last one again and again")
    options = parser.parse_args()
    with Receiver(*options.status, port=options.port, say=lambda text: print(text, flush=True)) as receiver:
        print(receiver.url, flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()

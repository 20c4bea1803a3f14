"""An HTTP server on loopback that knows whether a client is connected, and how often one was."""

from __future__ import annotations

import select
import socket
from http.server import ThreadingHTTPServer
from typing import Any


class CountedClients(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._clients = set[socket.socket]()
        self.connections = 0

    @property
    def has_clients(self) -> bool:
        """Whether a client is connected, or waits to be."""
        return bool(select.select([self.socket], [], [], 0)[0] or self._clients)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._clients.add(request)
        self.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self._clients.discard(request)

    def handle_error(self, *_: object) -> None:
        """Clients that hang up are part of the tests."""

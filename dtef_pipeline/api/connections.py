"""Connections of clients: headers have to come in time, and what is no HTTP is answered like every other error."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from dtef_pipeline.api.bodies import LINGER_S
from dtef_pipeline.api.problems import problem_answer
from dtef_pipeline.text.counted import counted

HEADERS_WITHIN_S = 10.0
"""How long the headers of a request may take to come, from the beginning of the connection or their first byte on."""
LARGEST_HEADERS = 64_000
"""Bytes of a request until its body begins."""
_FED_TOGETHER = 8_192


class PatientHttp(AutoHTTPProtocol):  # type: ignore[valid-type, misc]
    """The protocol of the server, for `uvicorn.Config(http=...)`. A connection without a whole request keeps no place for long."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._late: asyncio.TimerHandle | None = None
        self._has_begun = self._has_ended = False
        self._of_headers = 0
        """Bytes that came of headers whose end is not there yet."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._late = self.loop.call_later(HEADERS_WITHIN_S, self._end_late)

    def data_received(self, data: bytes) -> None:
        """After the answer to what could not be read, the rest is thrown away."""
        self._has_begun = True
        for start in range(0, len(data), _FED_TOGETHER):
            if not self._has_ended:
                self._feed(data[start : start + _FED_TOGETHER])

    def _feed(self, data: bytes) -> None:
        super().data_received(data)
        if self._has_ended:
            return
        self._of_headers = self._of_headers + len(data) if self._awaits_headers() else 0
        if self._of_headers > LARGEST_HEADERS:
            self._end(431, f"the headers are larger than {counted(LARGEST_HEADERS, 'byte')}")
        elif not self._awaits_headers():
            self._forget_late()
        elif self._late is None:
            self._late = self.loop.call_later(HEADERS_WITHIN_S, self._end_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_late()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        self._end(400, "the request is no HTTP that can be read")

    def _awaits_headers(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def _forget_late(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _end_late(self) -> None:
        self._late = None
        if not self._awaits_headers() or self.transport.is_closing():
            return
        if self._has_begun:
            self._end(408, f"the headers did not come within {counted(int(HEADERS_WITHIN_S), 'second')}")
        else:
            self.transport.close()

    def _end(self, status: int, detail: str) -> None:
        """Answers, where no other answer is under way, and closes, but not before the client could read that: it may send still more."""
        self._has_ended = True
        self._forget_late()
        if self._awaits_headers() or self._is_unanswered():
            answer = problem_answer(status, detail, {"Connection": "close"})
            headers = [f"{name.decode()}: {value.decode()}" for name, value in answer.raw_headers]
            lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *headers, "", ""]
            self.transport.write("\r\n".join(lines).encode() + answer.body)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER_S, self.transport.close)

    def _is_unanswered(self) -> bool:
        """Whether nothing was said yet to the one request that is under way: it is not carried out any more."""
        if self.pipeline or self.cycle.response_started:
            return False
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        return True

"""A server that is asked by a POST of JSON and replies with JSON. Its secret comes from the environment and goes nowhere else."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

from resources.gateway.retries import Backoff, retry_after
from resources.http_posts import NO_REDIRECTS, address_fault, in_safe_words, may_change, scheme_and_host

MOST_REPLY_BYTES = 20_000_000
"""A longer reply is no list of a few documents."""
SECRET_LEFT_OUT = "[secret]"  # noqa: S105 - what stands in its place
_READ_AT_ONCE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class EndpointReply:
    """What became of a request."""

    value: Any
    """The reply, decoded from JSON; None: there is none, or it is null."""
    problem: str | None
    """Why there is no reply, in words that hold neither the secret nor more of the address than its host; None: there is one."""
    attempts: int


class _Outcome(NamedTuple):
    value: Any
    problem: str | None
    again_after: float | None = None
    """Seconds to wait at least before another attempt; None: another one will not help."""


@dataclass
class JsonEndpoint:
    """Asks one server.

    `secret_env`: name of the environment variable with the secret, which is sent as `sent_as` of each request; None: none is sent.
    `timeout`: seconds for one attempt in all. `attempts`: how often it is tried, with growing waits between; a server that asks to be left
    alone for more than `backoff.longest` seconds is not waited for.
    """

    url: str = field(repr=False)
    secret_env: str | None = None
    sent_as: str = "auth"
    timeout: float = 60.0
    attempts: int = 4
    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=20.0))
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    sleep: Callable[[float], None] = time.sleep

    @property
    def where(self) -> str:
        """Scheme and host of the URL."""
        return scheme_and_host(self.url, "the server")

    def post(self, payload: Mapping[str, Any]) -> EndpointReply:
        """The reply to a payload. Any status but 200 is a problem. Raises nothing for what happens on the way."""
        secret = self._secret
        if problem := self._problem(secret):
            return EndpointReply(None, problem, 0)
        try:
            request = self._request(payload, secret)
        except (ValueError, TypeError, RecursionError):
            return EndpointReply(None, f"{self.where}: the request is no JSON, or the address no URL", 0)
        for attempt in range(1, self.attempts + 1):
            outcome = self._once(request, secret)
            if outcome.again_after is None or attempt == self.attempts:
                break
            wait = max(outcome.again_after, self.backoff.wait(attempt))
            if wait > self.backoff.longest:
                break
            self.sleep(wait)
        return EndpointReply(outcome.value, outcome.problem, attempt)

    @property
    def _secret(self) -> str:
        return self.environ.get(self.secret_env, "").strip() if self.secret_env else ""

    def _problem(self, secret: str) -> str | None:
        if fault := address_fault(self.url):
            return f"the address of the server {fault}"
        if self.secret_env and not secret:
            return f"environment variable {self.secret_env} is not set"
        return None

    def _request(self, payload: Mapping[str, Any], secret: str) -> urllib.request.Request:
        body = {**payload, **({self.sent_as: secret} if secret else {})}
        return urllib.request.Request(  # noqa: S310 - the scheme has been looked at
            self.url,
            data=json.dumps(body, allow_nan=False).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "dtef-pipeline"},
            method="POST",
        )

    def _once(self, request: urllib.request.Request, secret: str) -> _Outcome:
        try:
            with NO_REDIRECTS.open(request, timeout=self.timeout) as response:
                if response.status != 200:
                    return _Outcome(None, f"{self.where} answered {response.status}")
                return self._decoded(_read(response, time.monotonic() + self.timeout), secret)
        except urllib.error.HTTPError as error:
            with error:
                asked = retry_after({key.lower(): value for key, value in error.headers.items()}, datetime.now(UTC))
            again = (asked or 0.0) if may_change(error.code) else None
            return _Outcome(None, f"{self.where} answered {error.code}", again)
        except (OSError, http.client.HTTPException) as error:
            return _Outcome(None, f"{self.where}: {in_safe_words(error)}", 0.0)
        except ValueError:  # control characters and the like; the message would show the URL
            return _Outcome(None, f"{self.where}: the address is no URL")

    def _decoded(self, data: bytes | None, secret: str) -> _Outcome:
        if data is None:
            return _Outcome(None, f"{self.where}: the reply is longer than {MOST_REPLY_BYTES:,} bytes")
        try:
            return _Outcome(_without(secret, json.loads(data)), None)
        except (ValueError, RecursionError):
            return _Outcome(None, f"{self.where}: the reply is no JSON, or holds the secret amid it")


def _read(response: http.client.HTTPResponse, deadline: float) -> bytes | None:
    """The body; None: it is too long. Raises TimeoutError when it is not there in time, however steadily it drips."""
    parts: list[bytes] = []
    size = 0
    while part := response.read1(_READ_AT_ONCE_BYTES):
        size += len(part)
        parts.append(part)
        if size > MOST_REPLY_BYTES:
            return None
        if time.monotonic() > deadline:
            raise TimeoutError
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(parts)


def _without(secret: str, value: Any) -> Any:
    """The value without the secret, should a server repeat it. Raises ValueError where it cannot be taken out."""
    text = json.dumps(value, ensure_ascii=False)
    found = [spelled for spelled in _spellings(secret) if spelled in text] if secret else []
    for spelled in found:
        text = text.replace(spelled, SECRET_LEFT_OUT)
    return json.loads(text) if found else value


def _spellings(secret: str) -> list[str]:
    """The secret as a JSON document may hold it, the longest first: as text, as JSON within a text, and as a part of an address."""
    within = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    written = {secret, *within, quote(secret, safe=""), quote_plus(secret)}
    return sorted({json.dumps(one, ensure_ascii=False)[1:-1] for one in written}, key=len, reverse=True)

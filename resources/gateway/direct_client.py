"""HTTP calls of a server at an address of its own: connections that are kept open, and what their failures mean."""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi

from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.http_errors import (
    connection_lost,
    message_in,
    no_answer,
    no_connection_in_time,
    status_error,
    unreadable,
    untrusted,
)
from resources.gateway.transport import CONNECT_TIMEOUT_S, GRACE_S, CallError, Scope, certificates

# Servers (uvicorn, llama.cpp) close a connection that was idle for 5 s. One that they are closing now must not be used again.
_KEPT_OPEN_S = 4.0
_ADDRESSES_KEPT_S = 60
# More than is ever shown: keys are taken out before a message is cut to what is shown.
_MOST_SAID = 10_000


def opened(environ: Mapping[str, str]) -> aiohttp.ClientSession:
    """A session of the running event loop. How many calls there are at once is the gateway's business, so it sets no limit."""
    # At this level aiohttp would log addresses, which may hold a password.
    logging.getLogger("aiohttp").setLevel(logging.WARNING)
    trusted = ssl.create_default_context(cafile=certificates(environ) or certifi.where())
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_OPEN_S, ttl_dns_cache=_ADDRESSES_KEPT_S, ssl=trusted)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())


@lru_cache(maxsize=256)
def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address. (aiohttp would look it up in another thread, at each call.)"""
    parts = urlsplit(url)
    named = getproxies()
    found = named.get(parts.scheme) or named.get("all")
    if not found or proxy_bypass(parts.hostname or ""):
        return None
    return found if "://" in found else f"http://{found}"


class HttpReply(NamedTuple):
    """What a server sent, whatever its status."""

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes


async def post(session: aiohttp.ClientSession, spec: ModelSpec, url: str, headers: Mapping[str, str], body: bytes) -> HttpReply:
    """The server's answer. Raises `CallError` where there is none."""
    limits = aiohttp.ClientTimeout(total=spec.timeout + GRACE_S, sock_connect=min(spec.timeout, CONNECT_TIMEOUT_S))
    try:
        async with session.post(url, data=body, headers=headers, timeout=limits, proxy=proxy_for(url)) as response:
            return HttpReply(response.status, str(response.reason), response.headers, await response.read())
    except Exception as error:
        raise _error(spec, error) from None


def refuse_status(spec: ModelSpec, answer: HttpReply) -> None:
    """Raises `CallError` for every status but success."""
    if answer.status // 100 != 2:
        words = answer.content.decode("utf-8", "replace")
        said = " ".join((message_in(words.strip()) or words)[:_MOST_SAID].split()) or answer.reason
        raise status_error(spec, answer.status, said, words=words, headers=answer.headers)


def _error(spec: ModelSpec, error: Exception) -> CallError:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return no_connection_in_time(spec)
        case TimeoutError():
            return no_answer(spec)
        case aiohttp.ClientConnectorCertificateError():
            return untrusted(spec, error.certificate_error)
        case aiohttp.InvalidURL():  # it may hold a password
            return CallError(f"{spec.name}: its address, or that of the proxy, cannot be read", Scope.MODEL)
        case aiohttp.ClientConnectorError():
            return connection_lost(spec, error, reached=False)
        case aiohttp.ClientResponseError():
            return unreadable(spec, error.message or type(error).__name__)
        case aiohttp.ClientError() | OSError():
            return connection_lost(spec, error, reached=True)
        case _:
            return CallError(f"{spec.name}: {type(error).__name__}: {error}", Scope.REQUEST, billed=True)


def quoted(content: bytes) -> str:
    """The beginning of what a server sent, in one line."""
    return " ".join(content[:_MOST_SAID].decode("utf-8", "replace").split()) or "it is empty"


def as_object(spec: ModelSpec, content: bytes) -> dict[str, Any]:
    """The JSON object that a server sent. Raises `CallError` when it is none, or when it is an error that came as a success."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        raise unreadable(spec, quoted(content)) from None
    if not isinstance(answer, dict):
        raise unreadable(spec, quoted(content))
    if error := answer.get("error"):
        words = content.decode("utf-8", "replace").strip()
        said = message_in(words) or quoted(content)
        code = error.get("code") if isinstance(error, dict) else None
        if isinstance(code, int) and 400 <= code <= 599:
            raise status_error(spec, code, said, words=words, headers={})
        raise unreadable(spec, said)
    return answer

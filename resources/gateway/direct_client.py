"""HTTP calls to a server at its own address: persistent connections, and the errors of failed calls."""

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
    extract_message,
    make_answer_timeout,
    make_certificate_error,
    make_connection_error,
    make_connection_timeout,
    make_status_error,
    make_unreadable_error,
)
from resources.gateway.transport import CONNECT_TIMEOUT_S, GRACE_S, CallError, Scope, find_certificates

# Servers (uvicorn, llama.cpp) close a connection after 5 s without use. A connection that is being closed must not be used again.
_KEPT_OPEN_S = 4.0
_ADDRESSES_KEPT_S = 60
# More than is ever shown, because keys are removed before a message is shortened.
_MOST_SAID = 10_000


def open_session(environ: Mapping[str, str]) -> aiohttp.ClientSession:
    """Open a session of the running event loop. The gateway limits concurrent calls, so it does not."""
    # aiohttp would log addresses at this level, and they may contain a password.
    logging.getLogger("aiohttp").setLevel(logging.WARNING)
    context = ssl.create_default_context(cafile=find_certificates(environ) or certifi.where())
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_OPEN_S, ttl_dns_cache=_ADDRESSES_KEPT_S, ssl=context)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())


@lru_cache(maxsize=256)
def find_proxy(url: str) -> str | None:
    """Return the environment's proxy for an address, or None. (aiohttp would look it up in another thread at each call.)"""
    parts = urlsplit(url)
    named = getproxies()
    proxy = named.get(parts.scheme) or named.get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


class HttpReply(NamedTuple):
    """A server's reply of any status."""

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes


async def post(session: aiohttp.ClientSession, spec: ModelSpec, url: str, headers: Mapping[str, str], body: bytes) -> HttpReply:
    """Return the server's reply. Raises `CallError` if there is none."""
    limits = aiohttp.ClientTimeout(total=spec.timeout + GRACE_S, sock_connect=min(spec.timeout, CONNECT_TIMEOUT_S))
    try:
        async with session.post(url, data=body, headers=headers, timeout=limits, proxy=find_proxy(url)) as response:
            return HttpReply(response.status, str(response.reason), response.headers, await response.read())
    except Exception as error:
        raise _convert_error(spec, error) from None


def refuse_status(spec: ModelSpec, answer: HttpReply) -> None:
    """Raise `CallError` for every status but success."""
    if answer.status // 100 != 2:
        words = answer.content.decode("utf-8", "replace")
        message = " ".join((extract_message(words.strip()) or words)[:_MOST_SAID].split()) or answer.reason
        raise make_status_error(spec, answer.status, message, words=words, headers=answer.headers)


def _convert_error(spec: ModelSpec, error: Exception) -> CallError:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return make_connection_timeout(spec)
        case TimeoutError():
            return make_answer_timeout(spec)
        case aiohttp.ClientConnectorCertificateError():
            return make_certificate_error(spec, error.certificate_error)
        case aiohttp.InvalidURL():  # it may contain a password
            return CallError(f"{spec.name}: its address, or that of the proxy, cannot be read", Scope.MODEL)
        case aiohttp.ClientConnectorError():
            return make_connection_error(spec, error, reached=False)
        case aiohttp.ClientResponseError():
            return make_unreadable_error(spec, error.message or type(error).__name__)
        case aiohttp.ClientError() | OSError():
            return make_connection_error(spec, error, reached=True)
        case _:
            return CallError(f"{spec.name}: {type(error).__name__}: {error}", Scope.REQUEST, billed=True)


def quote_content(content: bytes) -> str:
    """Return the beginning of a reply, in one line."""
    return " ".join(content[:_MOST_SAID].decode("utf-8", "replace").split()) or "it is empty"


def parse_object(spec: ModelSpec, content: bytes) -> dict[str, Any]:
    """Return the JSON object of a reply. Raises `CallError` if it is none, or is an error sent as a success."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        raise make_unreadable_error(spec, quote_content(content)) from None
    if not isinstance(answer, dict):
        raise make_unreadable_error(spec, quote_content(content))
    if error := answer.get("error"):
        words = content.decode("utf-8", "replace").strip()
        message = extract_message(words) or quote_content(content)
        code = error.get("code") if isinstance(error, dict) else None
        if isinstance(code, int) and 400 <= code <= 599:
            raise make_status_error(spec, code, message, words=words, headers={})
        raise make_unreadable_error(spec, message)
    return answer

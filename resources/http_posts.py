"""What all POSTs of JSON to other systems share: no redirects, when to try again, and words that give no address away."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from typing import IO, Any
from urllib.parse import urlsplit

STATUSES_TO_TRY_AGAIN = frozenset({408, 425, 429})
"""With 5xx, the statuses of an answer that may be another one later."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would arrive as a GET without its message; and the message is not meant for another address."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


NO_REDIRECTS = urllib.request.build_opener(_NoRedirect)


def may_change(status: int) -> bool:
    """Whether another attempt may be answered with another status."""
    return status >= 500 or status in STATUSES_TO_TRY_AGAIN


def address_fault(url: str) -> str | None:
    """Why nothing can be sent to the URL, in words that hold nothing of it and go on after its name; None: something can."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        return "is no web address; allowed: https://... or http://..."
    if "@" in parts.netloc:
        return "has a user name or a password in it, which would not be sent as such; allowed: an address without them"
    return None


def scheme_and_host(url: str, otherwise: str) -> str:
    """What may be told of a URL: `https://hooks.example.org/...`; `otherwise` where it has no host."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return otherwise
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}/..." if host else otherwise


def in_safe_words(error: Exception) -> str:
    """What went wrong on the way, in words that hold nothing of the URL."""
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, socket.gaierror):
        return "host not found"
    return (cause.strerror if isinstance(cause, OSError) else None) or type(cause).__name__

"""Server addresses: validation, and display without secrets."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

_ALLOWED = "an address such as http://127.0.0.1:8000/v1 (http or https, a host, a port from 1 to 65535)"
_HOST = re.compile(r"[^\s/\\?#@]+")
_BEFORE_HOST = re.compile(r"(?:[A-Za-z][\w+.-]*:)?/+")
_PARAMETERS = re.compile(r"[?#](?=[\w.~%-]+=|[^@]*\Z)")
"""Start of the parameters. A `?` before an `@` starts them only if `name=` follows; otherwise it is part of a password."""


def web_address(text: str) -> str:
    """Return the text unchanged. Raises ValueError if it is not the address of a web server."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(_HOST.fullmatch(parts.hostname or "")) and parts.port != 0
    except ValueError:  # a port that is not a number or beyond 65535, half an IPv6 address
        good = False
    if not good or any(character.isspace() for character in text):
        raise ValueError(f"got {redact_address(text)}; allowed: {_ALLOWED}")
    return text


def redact_address(address: str) -> str:
    """Return the address without name, password and parameters: `http://[...]@host/v1`.

    An unquoted password may contain any of `/@?#`, so everything before the last `@` is redacted.
    """
    start, base = _BEFORE_HOST.match(address), _PARAMETERS.split(address, maxsplit=1)[0]
    prefix = start.group() if start else ""
    _, separator, place = base.removeprefix(prefix).rpartition("@")
    return f"{prefix}[...]@{place}" if separator else base


Address = Annotated[str, AfterValidator(web_address)]
"""A setting whose value is a server address."""

"""Whether a page of a server sent a request, by the headers `Host` and `Origin` (RFC 9110, RFC 6454)."""

from __future__ import annotations

import re
from typing import NamedTuple

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""The names of this computer, which mean no other one wherever they are looked up."""
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[^\s:/@\\?#\[\]]{1,255}?)\.?(?::([0-9]{1,5}))?")
_PORTS = {"http": "80", "https": "443"}


class Origin(NamedTuple):
    """Scheme, host and port, in lower case."""

    scheme: str
    host: str
    port: str


def parse_origin(scheme: str, authority: str) -> Origin | None:
    """The origin of `http` and `127.0.0.1:3000`; the port is that of the scheme where none is named. None: it is no host with a port."""
    match = _AUTHORITY.fullmatch(authority.lower())
    return Origin(scheme, match[1], match[2] or _PORTS.get(scheme, "")) if match else None


def read_origin(header: str) -> Origin | None:
    """What the header `Origin` names. None: `null`, or no origin of a page that was served over HTTP."""
    scheme, separator, authority = header.lower().partition("://")
    return parse_origin(scheme, authority) if separator and scheme in _PORTS else None


def parse_hosts(text: str) -> tuple[str, ...]:
    """Host names of a setting, separated by commas or white space, in lower case. A port, which is not compared, is left out.

    Raises ValueError with the first that is not a name of a host, such as an address that begins with `https://`.
    """
    names = re.split(r"[\s,]+", text.strip()) if text.strip() else []
    hosts = []
    for name in filter(None, names):
        origin = parse_origin("http", _bracket_ipv6(name))
        if origin is None or "*" in name:
            raise ValueError(name)
        hosts.append(origin.host)
    return tuple(dict.fromkeys(hosts))


def list_served_hosts(bound_to: str) -> tuple[str, ...]:
    """The hosts of a server that are allowed without a setting: those of this computer, and the one it is bound to."""
    origin = parse_origin("http", _bracket_ipv6(bound_to))
    return tuple(dict.fromkeys([*LOOPBACK_HOSTS, *([origin.host] if origin else [])]))


def _bracket_ipv6(host: str) -> str:
    """An address of IPv6 as it stands in a URL."""
    return f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host

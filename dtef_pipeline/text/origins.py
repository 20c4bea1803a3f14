"""Whether a request comes from a page of the same server, by the headers `Host` and `Origin` (RFC 9110, RFC 6454)."""

from __future__ import annotations

import re
from typing import NamedTuple

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""The names of this computer, which mean no other one wherever they are looked up."""
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[^\s:/@\\?#\[\]]{1,255}?)\.?(?::([0-9]{1,5}))?")
_PORTS = {"http": "80", "https": "443"}


class Origin(NamedTuple):
    """Scheme, host and port in lower case."""

    scheme: str
    host: str
    port: str


def parse_origin(scheme: str, authority: str) -> Origin | None:
    """Return the origin of a scheme and a host such as `127.0.0.1:3000`, with the scheme's default port, or None if it is not a host."""
    match = _AUTHORITY.fullmatch(authority.lower())
    return Origin(scheme, match[1], match[2] or _PORTS.get(scheme, "")) if match else None


def read_origin(header: str) -> Origin | None:
    """Return the origin that the header `Origin` names, or None if it is `null` or not an HTTP origin."""
    scheme, separator, authority = header.lower().partition("://")
    return parse_origin(scheme, authority) if separator and scheme in _PORTS else None


def parse_hosts(text: str) -> tuple[str, ...]:
    """Return the host names of a setting (separated by commas or white space) in lower case, without ports.

    Raises ValueError for the first entry that is not a host name, such as one that begins with `https://`.
    """
    names = re.split(r"[\s,]+", text.strip()) if text.strip() else []
    hosts = []
    for name in filter(None, names):
        origin = parse_origin("http", _bracket_ipv6(name))
        if origin is None or "*" in name:
            raise ValueError(name)
        hosts.append(origin.host)
    return tuple(dict.fromkeys(hosts))


def list_served_hosts(host: str) -> tuple[str, ...]:
    """List the hosts of a server that need no setting: this computer's, and the one that the server is bound to."""
    origin = parse_origin("http", _bracket_ipv6(host))
    return tuple(dict.fromkeys([*LOOPBACK_HOSTS, *([origin.host] if origin else [])]))


def _bracket_ipv6(host: str) -> str:
    """Return an IPv6 address as URLs write it."""
    return f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host

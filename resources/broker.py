"""The address of the queue of runs that several machines share: where it is named, what is wrong with it, and how it is shown.

Nothing of its password is shown. No server is asked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml

EXAMPLE = "redis://:PASSWORD@HOST:6379/0"
VARIABLE = "DTEF_BROKER"
IN_PASSWORDS = "in the password, write %40 for @, %2F for / and %3B for ;"
_REDIS = ("redis", "rediss")
_PATH_OF_REDIS = re.compile(r"/?\d*")
_CERTIFICATES = ("CERT_REQUIRED", "CERT_OPTIONAL", "required", "optional")


class Launcher(NamedTuple):
    """What a `dagster.yaml` says of the broker."""

    is_celery: bool
    """Whether its runs are tasks of Celery."""
    address: str | None = None
    """As it is written there."""
    variable: str | None = None
    """The environment variable that has the address."""


class WrongAddress(NamedTuple):
    """What is wrong with an address, and what to do about it."""

    found: str
    remedy: str


def launcher_of(home: Path) -> Launcher | None:
    """Of the `dagster.yaml` of a folder; None: there is none, or it cannot be read."""
    try:
        settings = yaml.safe_load((home / "dagster.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    if settings is not None and not isinstance(settings, Mapping):
        return None
    launcher = _mapping(settings, "run_launcher")
    if "celery" not in f"{launcher.get('module')}.{launcher.get('class')}".lower():
        return Launcher(False)
    named = _mapping(launcher, "config").get("broker")
    if isinstance(named, Mapping):
        return Launcher(True, None, str(named.get("env")))
    return Launcher(True, str(named).strip() or None) if named is not None else Launcher(True)


def _mapping(of: Any, name: str) -> Mapping[str, Any]:
    found = of.get(name) if isinstance(of, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def fault(url: str, source: str = VARIABLE) -> WrongAddress | None:
    """What is wrong with an address before anybody is asked. `source`: where it is written."""
    if (where := shown(url)) is None:
        return WrongAddress(f"{source} is no address such as {EXAMPLE}", f"mend it; {IN_PASSWORDS}")
    scheme = url.partition("://")[0]
    wrong: tuple[str, str] | None = None
    if scheme != scheme.lower():
        wrong = (f"{scheme} has a capital letter", f"begin {source} with {scheme.lower()}://")
    elif is_redis(url):
        wrong = _wrong_with_redis(url, source)
    return WrongAddress(f"{where}: Celery does not take this address: {wrong[0]}", wrong[1]) if wrong else None


def _wrong_with_redis(url: str, source: str) -> tuple[str, str] | None:
    if len(_parts(url)) > 1:
        return "it is several, and the results of Celery need one Redis", f"name one in {source}, such as {EXAMPLE}"
    parts = urlsplit(url)
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(name for name in parameters if not name.startswith("ssl_")):
        return f"it does not know the parameter {', '.join(unknown)}", f"take it away from the end of {source}"
    if parts.scheme == "redis":
        return (
            ("it has the settings of TLS, and begins with redis://", f"begin {source} with rediss://") if parameters else None
        )
    if parameters.get("ssl_cert_reqs") not in _CERTIFICATES:
        return "with rediss:// it is to say which certificates count", f"let {source} end in ?ssl_cert_reqs=required"
    return None


def is_redis(url: str) -> bool:
    """Whether the address is one of a plain Redis."""
    return urlsplit(_parts(url)[0]).scheme in _REDIS


def shown(url: str) -> str | None:
    """The address without name, password and parameters; None: it is none, and then a password may stand anywhere in it."""
    found = [_shown(part) for part in _parts(url)]
    return ";".join(filter(None, found)) if all(found) else None


def _parts(url: str) -> list[str]:
    """Celery takes several addresses, with a semicolon between them. (One in a password is followed by no address.)"""
    parts = url.split(";")
    return parts if all("://" in part for part in parts) else [url]


def _shown(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    is_plain = parts.scheme in _REDIS
    if "://" not in url or not parts.scheme or ((parts.netloc or is_plain) and not parts.hostname):
        return None
    # Behind a sign that a password has unwritten, the host would be a piece of the password.
    if (
        ";" in url
        or "@" in parts.path + parts.query + parts.fragment
        or (is_plain and not _PATH_OF_REDIS.fullmatch(parts.path))
    ):
        return None
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path if is_plain else ''}"


def without_password(said: str, url: str) -> str:
    """A message in one line, with [...] in place of the password. The whole of it, where the address is none."""
    if shown(url) is None:
        return "[...]"
    one_line = " ".join(said.split())
    for part in _parts(url):
        parts = urlsplit(part)
        secrets = [parts.password or "", *(value for name, value in parse_qsl(parts.query) if "pass" in name)]
        for secret in filter(None, (*secrets, *map(unquote, secrets))):
            one_line = one_line.replace(secret, "[...]")
    return one_line.removesuffix(".")

"""POSTs of JSON to servers with secret addresses or keys: only scheme and host of an address are ever shown."""

from __future__ import annotations

import functools
import json
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit

import httpx
import stamina

from dtef_pipeline.asking.models import web_address
from dtef_pipeline.errors import ConfigError
from resources.retry_after import retry_after
from resources.settings import Settings

ATTEMPTS = 4
LONGEST_RETRY_WAIT_S = 20.0
"""A longer requested wait fails the request."""
MAX_REPLY_BYTES = 20_000_000
"""A longer reply is not a list of a few documents."""
SECRET_LEFT_OUT = "[secret]"  # noqa: S105 - what stands in its place
_STATUSES_TO_TRY_AGAIN = frozenset({408, 425, 429})

_get_tls_context = functools.cache(httpx.create_ssl_context)
"""It takes longer to read the certificates than to send a small message."""

for _name in ("httpx", "httpcore"):
    # These log every address and the servers' replies in full.
    logging.getLogger(_name).setLevel(logging.WARNING)


class PostFailure(Exception):
    """The reason for a missing reply, showing only the address's scheme and host. `wait`: seconds until another attempt, None if useless."""

    def __init__(self, problem: str, wait: float | None = None) -> None:
        super().__init__(problem)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class JsonReply:
    """The outcome of a request."""

    value: Any
    """The reply, decoded from JSON; None: no reply, or null."""
    problem: str | None
    """Why there is no reply; None: there is a reply."""


@dataclass(frozen=True)
class JsonEndpoint:
    """A server that replies with JSON.

    `secret_env`: name of the environment variable with the secret, sent as `auth` of each request, or None. `timeout`: total seconds per
    attempt.
    """

    url: str = field(repr=False)
    secret_env: str | None = None
    timeout: float = 60.0
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    @property
    def origin(self) -> str:
        """Scheme and host of the URL."""
        return format_scheme_and_host(self.url)

    def post(self, payload: Mapping[str, Any]) -> JsonReply:
        """Return the reply to a payload. Any status but 200 is a problem. Raises no delivery errors."""
        secret = self.environ.get(self.secret_env, "").strip() if self.secret_env else ""
        if fault := find_address_fault(self.url):
            return JsonReply(None, f"the address of the server {fault}")
        if self.secret_env and not secret:
            return JsonReply(None, f"environment variable {self.secret_env} is not set")
        reply = _post(self.url, {**payload, **({"auth": secret} if secret else {})}, self.timeout)
        if reply.problem:
            return reply
        status, content = reply.value
        if status != 200:
            return JsonReply(None, f"{self.origin} answered {status}")
        try:
            return JsonReply(_remove_secret(secret, json.loads(content)), None)
        except (ValueError, RecursionError):
            return JsonReply(None, f"{self.origin}: the reply is not JSON, or contains the secret")


def find_look_up_server(settings: Settings) -> JsonEndpoint:
    """Return the server of DTEF_SOCIOSCOPE_URL. Raises ConfigError, which does not show the URL, if it is missing or unusable."""
    if settings.socioscope_url is None:
        raise ConfigError(
            "retriever remote: DTEF_SOCIOSCOPE_URL is not set; set it to the address of a server, https://... or http://..."
        )
    require_address("retriever remote: DTEF_SOCIOSCOPE_URL", settings.socioscope_url)
    return JsonEndpoint(settings.socioscope_url, settings.socioscope_auth_env)


def require_address(name: str, url: str) -> None:
    """Raise ConfigError, which begins with `name` and does not show the URL, if nothing can be sent to it."""
    if fault := find_address_fault(url):
        raise ConfigError(f"{name} {fault}")


def find_address_fault(url: str) -> str | None:
    """Return why nothing can be sent to the URL, or None; the words follow its name and do not show it."""
    try:
        web_address(url)
    except ValueError:
        return "is not a web address that begins with https:// or http://"
    if "@" in urlsplit(url).netloc:
        return "has a user name or a password in it, which would not be sent; leave them out"
    return None


def format_scheme_and_host(url: str) -> str:
    """Return the part of a web address that may be shown: `https://hooks.example.org/...`."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}/..."


def _post(url: str, message: Mapping[str, Any], timeout: float) -> JsonReply:
    """Return status and content of a successful response, after retries where another attempt may help."""
    retrying = stamina.RetryingCaller(attempts=ATTEMPTS, timeout=None, wait_initial=1.0, wait_max=LONGEST_RETRY_WAIT_S)
    try:
        return JsonReply(retrying(_is_retryable, post_once, url, message, timeout), None)
    except PostFailure as error:
        return JsonReply(None, str(error))


def _is_retryable(error: Exception) -> bool | float:
    """Return whether to retry, or after how many seconds if the server says so."""
    wait = error.wait if isinstance(error, PostFailure) else None
    return False if wait is None or wait > LONGEST_RETRY_WAIT_S else wait or True


def post_once(url: str, message: Mapping[str, Any], timeout: float) -> tuple[int, bytes]:
    """Return status and content of a successful reply to one POST. Raises PostFailure otherwise.

    Redirects are not followed, as the message is meant for this address only.
    """
    where = format_scheme_and_host(url)
    deadline = time.monotonic() + timeout
    content = bytearray()
    headers = {"User-Agent": "dtef-pipeline"}
    try:
        with httpx.stream("POST", url, json=message, timeout=timeout, headers=headers, verify=_get_tls_context()) as response:
            if not response.is_success:
                wait = retry_after(response.headers, datetime.now(UTC)) or 0.0
                is_retryable = response.status_code >= 500 or response.status_code in _STATUSES_TO_TRY_AGAIN
                raise PostFailure(f"{where} answered {response.status_code}", wait if is_retryable else None)
            for part in response.iter_bytes():
                content += part
                if len(content) > MAX_REPLY_BYTES:
                    raise PostFailure(f"{where}: the reply is longer than {MAX_REPLY_BYTES:,} bytes")
                if time.monotonic() > deadline:
                    raise PostFailure(f"{where}: no answer in time", 0.0)
    except httpx.TransportError as error:
        raise PostFailure(f"{where}: {type(error).__name__}", 0.0) from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, TypeError, RecursionError) as error:
        # The message would contain the address or the sent data.
        raise PostFailure(f"{where}: the request is not JSON, or the address is not a URL ({type(error).__name__})") from None
    return response.status_code, bytes(content)


def _remove_secret(secret: str, value: Any) -> Any:
    """Return the value without the secret, should a server repeat it. Raises ValueError if removing it breaks the JSON."""
    text = json.dumps(value, ensure_ascii=False)
    spellings = [spelling for spelling in _list_spellings(secret) if spelling in text] if secret else []
    for spelling in spellings:
        text = text.replace(spelling, SECRET_LEFT_OUT)
    return json.loads(text) if spellings else value


def _list_spellings(secret: str) -> list[str]:
    """Return the secret as a JSON document may contain it, longest first: as text, as JSON within text, and in an address."""
    json_forms = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    forms = {secret, *json_forms, quote(secret, safe=""), quote_plus(secret)}
    return sorted({json.dumps(form, ensure_ascii=False)[1:-1] for form in forms}, key=len, reverse=True)

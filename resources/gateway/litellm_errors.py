"""What a failed call means: litellm's exceptions, which differ by provider and repeat themselves, as one `CallError`."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import suppress
from typing import TypeVar

import httpx

from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.bills import COST_HEADER, usage_in
from resources.gateway.http_errors import (
    cause_of,
    connection_lost,
    message_in,
    no_answer,
    no_connection_in_time,
    status_error,
    to,
    unreadable,
    untrusted,
)
from resources.gateway.transport import CallError, Scope

# As in "litellm.RateLimitError: RateLimitError: OpenAIException - the message".
_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?: Error)?(?:: | - ))+")
# As in "Error code: 401 - {'error': {'message': 'no luck'}}".
_STATUS_CODE = re.compile(r"^Error code: \d{3} - ")
_NOTHING_SAID = "Connection error"
_SUFFIX = re.compile(r"\.? Handle with `litellm\.\w+`\.?")


def call_error(spec: ModelSpec, error: Exception) -> CallError:
    """What the exception means for this call and for further ones. The message names the model and quotes the server."""
    answered = _first(error, httpx.HTTPStatusError)
    if answered is None and (fault := _first(error, httpx.TransportError)):
        return _network_error(spec, fault)
    status = answered.response.status_code if answered else getattr(error, "status_code", None)
    if answered is None and _text(error).rstrip(".") == _NOTHING_SAID:
        # What the client says itself ("Connection error.") tells nothing; what it was raised from does.
        cause = list(_chain(error))[-1]
        return CallError(f"{spec.name}: no connection{to(spec)}: {cause_of(cause)}", Scope.PASSING, reached=False)
    if answered is None and status in (200, 500):
        return unreadable(spec, _text(error))
    if not isinstance(status, int):
        return CallError(f"{spec.name}: {type(error).__name__}: {_text(error)}", Scope.REQUEST, billed=True)
    headers = answered.response.headers if answered else getattr(error, "litellm_response_headers", None) or {}
    kind = type(error).__name__
    return status_error(
        spec,
        status,
        _text(error),
        words=f"{getattr(error, 'message', error)} {getattr(error, 'body', '')}",
        headers=headers,
        too_long=kind == "ContextWindowExceededError",
        blocked=kind == "ContentPolicyViolationError",
        # litellm knows some refused keys that come as another status than 401.
        refused=getattr(error, "status_code", None) == 401,
    )


def usage_and_cost_header(error: Exception) -> tuple[object, object]:
    """The `usage` that the body of an error's HTTP response states, and the cost that its headers state; None: nothing."""
    for one in _chain(error):
        response = getattr(one, "response", None)
        if not isinstance(response, httpx.Response):
            continue
        # litellm makes up some responses; the one that its client read has what the server sent.
        with suppress(httpx.ResponseNotRead):
            usage, header = usage_in(response.content), response.headers.get(COST_HEADER)
            if usage is not None or header is not None:
                return usage, header
    return None, None


def _network_error(spec: ModelSpec, fault: httpx.TransportError) -> CallError:
    if refused := _first(fault, ssl.SSLCertVerificationError):
        return untrusted(spec, refused)
    if isinstance(fault, httpx.ConnectTimeout):
        return no_connection_in_time(spec)
    if isinstance(fault, httpx.TimeoutException):
        return no_answer(spec)
    return connection_lost(spec, _first(fault, OSError) or fault, reached=not isinstance(fault, httpx.ConnectError))


_E = TypeVar("_E", bound=BaseException)


def _first(error: BaseException, kind: type[_E]) -> _E | None:
    return next((one for one in _chain(error) if isinstance(one, kind)), None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and what it came from: litellm wraps the provider's, which wraps the HTTP client's."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _text(error: Exception) -> str:
    """The server's message, without litellm's repeated prefixes and without the JSON around it."""
    text = _SUFFIX.sub("", _PREFIX.sub("", str(getattr(error, "message", None) or error)))
    return " ".join((message_in(_STATUS_CODE.sub("", text)) or text).split())

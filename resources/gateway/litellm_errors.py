"""What a failed call means: litellm's exceptions, which differ by provider and repeat themselves, as one `CallError`."""

from __future__ import annotations

import ast
import json
import re
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import httpx

from dtef_pipeline.asking.addresses import shown
from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.retries import retry_after
from resources.gateway.transport import CallError, Scope

# Servers send these when the same call may well succeed a little later.
_PASSING_STATUSES = frozenset({408, 409, 425, 429})
# No valid key, no money, not allowed, no such model: true of every further call to the model as well.
_MODEL_STATUSES = frozenset({401, 402, 403, 404})
_PROMPT_STATUSES = frozenset({400, 403, 413, 422, 451})

_TOO_LONG = re.compile(r"context.{0,10}(length|window|size|limit)|maximum context|(prompt|input) is too long", re.I)
_BLOCKED = re.compile(
    r"content[_ -]?(filter|policy|management)|safety system|usage policy|moderation|flagged|responsibleai", re.I
)
# A 429 for one request with more tokens than a whole minute allows.
_TOO_LARGE = re.compile(r"request too large", re.I)
# A 429 that no waiting mends ...
_NO_MONEY = re.compile(r"insufficient[_ ](quota|credits?|balance|funds)|credit balance|out of credits", re.I)
_MAYBE_NO_MONEY = re.compile(r"exceeded your current quota|billing|payment|credits", re.I)
# ... unless the same words come with a time to wait: Gemini speaks of quota and billing at every rate limit.
_WAITABLE = re.compile(r"resource_exhausted|per minute|retry (in|after)|try again in", re.I)
_RETRY_DELAY = re.compile(r'retryDelay"?\s*:\s*"?([\d.]+)s')

# As in "litellm.RateLimitError: RateLimitError: OpenAIException - the message".
_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?: Error)?(?:: | - ))+")
# As in "Cannot connect to host 127.0.0.1:1 ssl:<ssl.SSLContext object at 0x7f78259ca570>".
_OBJECT = re.compile(r" (?:ssl:)?<[\w.]+ object at 0x[0-9a-f]+>")
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
        return CallError(f"{spec.name}: no connection{_to(spec)}: {_cause(cause)}", Scope.PASSING, reached=False)
    if answered is None and status in (200, 500):
        return CallError(f"{spec.name}: unreadable answer: {_text(error)}", Scope.PASSING)
    if not isinstance(status, int):
        return CallError(f"{spec.name}: {type(error).__name__}: {_text(error)}", Scope.REQUEST)
    headers = answered.response.headers if answered else getattr(error, "litellm_response_headers", None) or {}
    return _status_error(spec, error, status, headers)


def _status_error(spec: ModelSpec, error: Exception, status: int, headers: Mapping[str, str]) -> CallError:
    words = f"{getattr(error, 'message', error)} {getattr(error, 'body', '')}"
    wait = _asked_wait(headers, words)
    message = f"{spec.name}: HTTP {status}: {_text(error)}"
    if blame := _blame_of_prompt(error, status, words):
        return CallError(f"{spec.name}: {blame} (HTTP {status}): {_text(error)}", Scope.REQUEST, of_prompt=True)
    # litellm knows some refused keys that come as another status than 401.
    refused = getattr(error, "status_code", None) == 401
    if refused or status in _MODEL_STATUSES or (status == 429 and _out_of_money(words, wait)):
        return CallError(message, Scope.MODEL)
    if status in _PASSING_STATUSES or status >= 500:
        return CallError(message, Scope.PASSING, rate_limited=status == 429, retry_after=wait)
    return CallError(message, Scope.REQUEST)


def _blame_of_prompt(error: Exception, status: int, words: str) -> str | None:
    """Why this prompt gets no response, whoever asks: it is too long, or a filter stopped it."""
    kind = type(error).__name__
    if kind == "ContextWindowExceededError" or (status in _PROMPT_STATUSES and _TOO_LONG.search(words)):
        return "the prompt is too long for the model"
    if status == 429 and _TOO_LARGE.search(words):
        return "the prompt is larger than the rate limit"
    if kind == "ContentPolicyViolationError" or (status in _PROMPT_STATUSES and _BLOCKED.search(words)):
        return "stopped by the provider's content filter"
    return None


def _out_of_money(words: str, wait: float | None) -> bool:
    if _NO_MONEY.search(words):
        return True
    return wait is None and bool(_MAYBE_NO_MONEY.search(words)) and not _WAITABLE.search(words)


def _asked_wait(headers: Mapping[str, str], words: str) -> float | None:
    """Seconds to wait by the Retry-After header, else by the delay that Gemini writes into the body."""
    asked = retry_after(headers, datetime.now(UTC))
    if asked is None and (delay := _RETRY_DELAY.search(words)):
        asked = float(delay.group(1))
    return asked


def _network_error(spec: ModelSpec, fault: httpx.TransportError) -> CallError:
    if refused := _first(fault, ssl.SSLCertVerificationError):
        return CallError(f"{spec.name}: the server's certificate is not trusted{_to(spec)}: {refused}", Scope.MODEL)
    if isinstance(fault, httpx.ConnectTimeout):
        return CallError(f"{spec.name}: no connection in time{_to(spec)}", Scope.PASSING, reached=False)
    if isinstance(fault, httpx.TimeoutException):
        return CallError(f"{spec.name}: no answer within {spec.timeout:g} s", Scope.PASSING)
    cause = _cause(_first(fault, OSError) or fault)
    return CallError(
        f"{spec.name}: connection lost or refused{_to(spec)}: {cause}",
        Scope.PASSING,
        reached=not isinstance(fault, httpx.ConnectError),
    )


def _to(spec: ModelSpec) -> str:
    """The address that was asked, where it is none of a provider's."""
    return f" ({shown(spec.api_base)})" if spec.api_base else ""


def _cause(error: BaseException) -> str:
    return _OBJECT.sub("", str(error)) or type(error).__name__


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
    return " ".join((_message_in(text) or text).split())


def _message_in(text: str) -> str | None:
    """`no luck` of `{"error": {"message": "no luck"}}`, which some calls quote as Python writes it."""
    text = _STATUS_CODE.sub("", text)
    start = text.find("{")
    if start not in (0, 2):  # 2: the bytes of a body, b'{...}'
        return None
    try:
        body: Any = json.JSONDecoder().raw_decode(text, start)[0]
    except ValueError:
        try:
            body = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return None
    inner = body.get("error", body) if isinstance(body, dict) else None
    found = inner.get("message") if isinstance(inner, dict) else inner
    return found if isinstance(found, str) and found else None

"""Errors of failed HTTP calls to models, as one `CallError` with its effect on this and further calls, for every client."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dtef_pipeline.asking.models import ModelSpec, redact_address
from resources.gateway.transport import CallError, Scope
from resources.retry_after import retry_after

# Statuses of temporary failures.
_PASSING_STATUSES = frozenset({408, 409, 425, 429})
# Statuses of an overloaded server that did not start the call. After other server errors the model may have been at work.
_NOT_TAKEN = frozenset({503, 529})
# Statuses that apply to every further call to the model: no valid key, no credit, not allowed, no such model.
_MODEL_STATUSES = frozenset({401, 402, 403, 404})
_PROMPT_STATUSES = frozenset({400, 403, 413, 422, 451})

_TOO_LONG = re.compile(
    r"context.{0,10}(length|window|size|limit)|maximum context|(prompt|input) is too long|maximum (model|input) length"
    r"|input tokens exceed|`inputs` tokens|maximum number of tokens allowed",
    re.I,
)
_BLOCKED = re.compile(
    r"content[_ -]?(filter|policy|management)|safety system|usage policy|moderation|flagged|responsibleai", re.I
)
# A 429 for a single request with more tokens than the limit per minute.
_TOO_LARGE = re.compile(r"request too large", re.I)
# A 429 for which waiting does not help ...
_NO_MONEY = re.compile(r"insufficient[_ ](quota|credits?|balance|funds)|credit balance|out of credits", re.I)
_MAYBE_NO_MONEY = re.compile(r"exceeded your current quota|billing|payment|credits", re.I)
# ... unless the message has a time to wait: Gemini mentions quota and billing in every 429.
_WAITABLE = re.compile(r"resource_exhausted|per minute|retry (in|after)|try again in", re.I)
# The quotation marks may be escaped, in JSON inside JSON.
_RETRY_DELAY = re.compile(r'retryDelay\\*"?\s*:\s*\\*"?([\d.]+)s')

# As in "Cannot connect to host 127.0.0.1:1 ssl:<ssl.SSLContext object at 0x7f78259ca570>".
_OBJECT = re.compile(r" ssl:default| (?:ssl:)?<[\w.]+ object at 0x[0-9a-f]+>")


def make_status_error(
    spec: ModelSpec,
    status: int,
    detail: str,
    *,
    words: str,
    headers: Mapping[str, str],
    too_long: bool = False,
    is_blocked: bool = False,
    is_refused: bool = False,
) -> CallError:
    """Return the error for an HTTP status other than success.

    Args:
        detail: the server's message, for people.
        words: the whole reply, searched for the cause.
        headers: of the response; names in any case.
        too_long: the client knows that the prompt is too long.
        is_blocked: the client knows that a content filter stopped the prompt.
        is_refused: the client knows that the key was refused, regardless of status.
    """
    wait = retry_after(headers, datetime.now(UTC))
    if wait is None and (delay := _RETRY_DELAY.search(words)):  # in Gemini's body
        wait = float(delay.group(1))
    message = f"{spec.name}: HTTP {status}: {detail}"
    if blame := _find_prompt_fault(status, words, too_long, is_blocked):
        return CallError(f"{spec.name}: {blame} (HTTP {status}): {detail}", Scope.REQUEST, of_prompt=True)
    if is_refused or status in _MODEL_STATUSES or (status == 429 and _is_out_of_money(words, wait)):
        return CallError(message, Scope.MODEL)
    if status in _PASSING_STATUSES or status >= 500:
        is_billed = status == 408 or (status >= 500 and status not in _NOT_TAKEN)
        return CallError(message, Scope.PASSING, rate_limited=status == 429, retry_after=wait, billed=is_billed)
    return CallError(message, Scope.REQUEST)


def make_certificate_error(spec: ModelSpec, cause: BaseException) -> CallError:
    """Return the error for a rejected server certificate, which all further calls will meet."""
    return CallError(f"{spec.name}: the server's certificate is not trusted{format_address(spec)}: {cause}", Scope.MODEL)


def make_connection_timeout(spec: ModelSpec) -> CallError:
    """Return the error for a server that accepts no connection."""
    return CallError(f"{spec.name}: no connection in time{format_address(spec)}", Scope.PASSING, reached=False)


def make_answer_timeout(spec: ModelSpec) -> CallError:
    """Return the error for a response that does not arrive within the model's `timeout`."""
    return CallError(f"{spec.name}: no answer within {spec.timeout:g} s", Scope.PASSING, billed=True)


def make_connection_error(spec: ModelSpec, fault: BaseException, *, reached: bool) -> CallError:
    """Return the error for a lost or (`reached` False) failed connection."""
    message = f"{spec.name}: connection lost or refused{format_address(spec)}: {describe_cause(fault)}"
    return CallError(message, Scope.PASSING, reached=reached, billed=reached)


def make_unreadable_error(spec: ModelSpec, reason: str) -> CallError:
    """Return the error for a success status without a valid response."""
    return CallError(f"{spec.name}: unreadable answer: {reason}", Scope.PASSING, billed=True)


def make_no_choices_error(spec: ModelSpec) -> CallError:
    """Return the error for a response without choices."""
    return CallError(f"{spec.name}: an answer without choices", Scope.PASSING, billed=True)


def format_address(spec: ModelSpec) -> str:
    """Return the server's address unless it is a provider's."""
    return f" ({redact_address(spec.api_base)})" if spec.api_base else ""


def describe_cause(error: BaseException) -> str:
    """Return the exception's message without memory addresses, or its type without one."""
    return _OBJECT.sub("", str(error)) or type(error).__name__


def extract_message(text: str) -> str | None:
    """Return `no luck` from `{"error": {"message": "no luck"}}`, also in Python's notation, as some clients quote it, or None."""
    start = text.find("{")
    if start not in (0, 2):  # 2: the bytes of a body, b'{...}'
        return None
    try:
        body: Any = json.JSONDecoder().raw_decode(text, start)[0]
    except RecursionError:
        return None
    except ValueError:
        try:
            body = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
    inner = body.get("error", body) if isinstance(body, dict) else None
    detail = inner.get("message") or inner.get("detail") if isinstance(inner, dict) else inner
    return detail if isinstance(detail, str) and detail else None


def _find_prompt_fault(status: int, words: str, too_long: bool, is_blocked: bool) -> str | None:
    """Return why this prompt never gets a response (too long, or stopped by a filter), or None."""
    if too_long or (status in _PROMPT_STATUSES and _TOO_LONG.search(words)):
        return "the prompt is too long for the model"
    if status == 429 and _TOO_LARGE.search(words):
        return "the prompt is larger than the rate limit"
    if is_blocked or (status in _PROMPT_STATUSES and _BLOCKED.search(words)):
        return "stopped by the provider's content filter"
    return None


def _is_out_of_money(words: str, wait: float | None) -> bool:
    if _NO_MONEY.search(words):
        return True
    return wait is None and bool(_MAYBE_NO_MONEY.search(words)) and not _WAITABLE.search(words)

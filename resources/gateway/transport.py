"""The interface to models, hosted (through litellm) or local: replies, errors of calls, parameters, and the removal of API keys."""

from __future__ import annotations

import ast
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

from dtef_pipeline.asking.embeddings import decode_vectors, encode_stored_vectors
from dtef_pipeline.asking.models import ModelSpec, redact_address
from dtef_pipeline.asking.request import EMBEDDER, Request
from resources.gateway.prices import NO_BILL, Bill
from resources.retry_after import retry_after


@dataclass(frozen=True, slots=True)
class Reply:
    """A provider's reply, before it becomes a `Response`."""

    text: str
    finish_reason: str | None
    served_model: str | None
    bill: Bill = NO_BILL
    fingerprint: str | None = None
    reasoning: str | None = None
    host: str | None = None
    """The host of the model, if a gateway of several hosts reports it (OpenRouter's `provider`)."""


class Scope(Enum):
    """The scope of a failed call."""

    PASSING = "worth another attempt"
    REQUEST = "this request will never be answered"
    MODEL = "no request to this model will be answered"


class CallError(Exception):
    """A call that got no response."""

    def __init__(
        self,
        message: str,
        scope: Scope,
        *,
        rate_limited: bool = False,
        retry_after: float | None = None,
        of_prompt: bool = False,
        reached: bool = True,
        billed: bool = False,
        bill: Bill | None = None,
    ) -> None:
        """Args:
        message: for people; it may still contain secrets.
        scope: of the failure.
        rate_limited: the server answers, but not so many calls at once (429).
        retry_after: seconds that the server asks to wait.
        of_prompt: only this prompt is at fault (filtered, too long).
        reached: a server was connected; False if no connection could be made.
        billed: the provider may charge for it, as the model may have worked.
        bill: the usage that the server stated, if any.
        """
        super().__init__(message)
        self.message, self.scope, self.retry_after = message, scope, retry_after
        self.rate_limited, self.of_prompt, self.reached = rate_limited, of_prompt, reached
        self.billed, self.bill = billed, bill


CONNECT_TIMEOUT_S = 10.0
"""Seconds to connect. A response may take the model's whole `timeout`."""
GRACE_S = 0.5
"""Seconds added to a client's own time limits, so that its clearer message comes first."""
_REFUSES_STOP = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9])")
"""OpenAI's reasoning models, which reject requests with stop sequences."""
_OFF = frozenset({"0", "false", "no", "off"})


def find_settings_problem(spec: ModelSpec, environ: Mapping[str, str]) -> str | None:
    """Return what is wrong with the environment for this model (certificate checks switched off, no certificates, a key not set), or None."""
    # LiteLLM reads this variable itself, from the environment of the process.
    if os.environ.get("SSL_VERIFY", "").strip().lower() in _OFF:
        return "SSL_VERIFY turns certificate checks off, and keys go over this line; name your CA file in SSL_CERT_FILE instead"
    is_plain = (spec.api_base or "").startswith("http:")
    if (file := environ.get("SSL_CERT_FILE")) and not Path(file).is_file() and not is_plain:
        return f"SSL_CERT_FILE names {file}, and there is no such file"
    if spec.api_key_env and not environ.get(spec.api_key_env, "").strip():
        return f"environment variable {spec.api_key_env} is not set"
    return None


def build_messages(request: Request) -> list[dict[str, str]]:
    """Return the conversation in the chat-completions format."""
    return [{"role": message.role, "content": message.text} for message in request.conversation]


def build_sampling(request: Request) -> dict[str, Any]:
    """Return the model's parameters, with the prompt's response limit and stop sequences."""
    sampling = build_sampling_body(request.model)
    if request.max_tokens is not None:
        sampling["max_tokens"] = request.max_tokens
    if request.stop and not _REFUSES_STOP.search(request.model.model):
        sampling["stop"] = list(request.stop)
    return sampling


def build_sampling_body(spec: ModelSpec) -> dict[str, Any]:
    """Return the model's parameters as in a request body, with the host as OpenRouter takes it, without fallbacks."""
    host = {} if spec.provider is None else {"provider": {"order": [spec.provider], "allow_fallbacks": False}}
    return {**spec.sampling, **host}


def build_response_format(schema: str) -> dict[str, Any]:
    """Return the parameter for responses that follow a JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": json.loads(schema)}}


def build_embedding_input(request: Request) -> dict[str, Any]:
    """Return the parameters for a batch of texts, which are the request's messages."""
    return {"input": [message.text for message in request.messages], "encoding_format": "float"}


_THOUGHT_FIRST = re.compile(r"<(?:budget:)?think(?:ing)?>(.*?)</(?:budget:)?think(?:ing)?>(.*)", re.DOTALL)
# Other servers' words for the reason why a response ended.
_ENDED_BY = {
    **dict.fromkeys(["stop", "eos", "eos_token", "stop_sequence", "end_turn"], "stop"),
    **dict.fromkeys(["length", "max_tokens"], "length"),
    **dict.fromkeys(["content_filter", "content_filtered", "safety", "refusal", "guardrail_intervened"], "content_filter"),
}


def build_reply(request: Request, answer: Mapping[str, Any], bill: Bill) -> Reply:
    """Return the reply of a server's answer in the chat-completions or embeddings format. Raises `CallError`, with the bill."""
    try:
        parts = _read_embeddings(request, answer) if request.role == EMBEDDER else _read_choice(request.model, answer)
    except CallError as error:
        # The usage that an answer reports counts, even if it is faulty otherwise.
        error.bill = bill.unless_empty
        raise
    return Reply(**parts, served_model=_get_text_or_none(answer.get("model")), bill=bill)


def _read_embeddings(request: Request, answer: Mapping[str, Any]) -> dict[str, Any]:
    data = answer.get("data")
    try:
        entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
        vectors = decode_vectors(entries, len(request.messages))
    except ValueError as error:
        raise make_unreadable_error(request.model, str(error)) from None
    return {"text": encode_stored_vectors(vectors), "finish_reason": None}


def _read_choice(spec: ModelSpec, answer: Mapping[str, Any]) -> dict[str, Any]:
    choices = answer.get("choices")
    if not choices:
        raise CallError(f"{spec.name}: an answer without choices", Scope.PASSING, billed=True)
    try:
        message, finish_reason = choices[0]["message"], choices[0].get("finish_reason") or "stop"
        text, reasoning = _split_reasoning(message)
        refusal = message.get("refusal") or (message.get("provider_specific_fields") or {}).get("refusal")
    except (KeyError, TypeError, AttributeError, IndexError):
        raise make_unreadable_error(spec, f"a choice of {json.dumps(choices)}") from None
    finish_reason = _ENDED_BY.get(str(finish_reason).lower(), str(finish_reason))
    # A tool call, a filter or a spent token budget is the model's reply: another request would cost again and end the same.
    if text is None and finish_reason == "error":
        raise CallError(f"{spec.name}: an answer without content (finish reason error)", Scope.PASSING, billed=True)
    return {
        "text": str(refusal or "") if text is None else text,
        "finish_reason": finish_reason,
        "fingerprint": _get_text_or_none(answer.get("system_fingerprint")),
        "reasoning": reasoning,
        "host": _get_text_or_none(answer.get("provider")),
    }


def _split_reasoning(message: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the response and the reasoning, which servers send in a separate field or before the response."""
    text = message.get("content")
    if isinstance(text, Sequence) and not isinstance(text, str):
        text = "".join(part["text"] for part in text if part.get("type", "text") == "text")
    if text is not None and not isinstance(text, str):
        raise TypeError
    for name in ("reasoning_content", "reasoning"):
        if name in message:
            return text, _get_text_or_none(message[name])
    if text and (thought := _THOUGHT_FIRST.match(text)):
        return thought[2], thought[1]
    return text, None


def _get_text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


class Transport(ABC):
    """One way to reach models."""

    @abstractmethod
    def problem(self, spec: ModelSpec) -> str | None:
        """Return what is missing to call this model at all, or None."""

    @abstractmethod
    async def ask(self, request: Request) -> Reply:
        """Make one attempt. Raises `CallError`, whose message may still contain secrets."""

    async def open(self) -> None:
        """Prepare, so that this time counts neither as a call's latency nor against its time limit."""
        return

    async def close(self) -> None:
        """Release, at a run's end, what belongs to the running event loop."""
        return


_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_API_KEY_NAME = re.compile(r"API_KEY\Z", re.IGNORECASE)
_SECRET_SHAPE = re.compile(
    r"\b(?:sk|pk|gsk|xai|key)-[\w*-]{8,}|\bAIza[\w-]{20,}|(?<=Bearer )[^\s\"',;]+|(?<=[?&]key=)[^&\s]+|(?<=://)[^/\s@]+(?=@)"
)
_SHORTEST_SECRET = 6
_LONGEST_MESSAGE = 500


class Scrubber:
    """A redactor of API keys in messages: values of key-like environment variables, and text shaped like a key."""

    def __init__(self, environ: Mapping[str, str], specs: Iterable[ModelSpec]) -> None:
        self._environ = environ
        self._key_names = set[str | None]()
        self.know(specs)

    def know(self, specs: Iterable[ModelSpec]) -> None:
        """Add models whose keys are removed too."""
        named = self._key_names = self._key_names | {spec.api_key_env for spec in specs}
        self._secrets = _values(self._environ, lambda name: name in named or bool(_SECRET_NAME.search(name)))
        self._api_keys = _values(self._environ, lambda name: name in named or bool(_API_KEY_NAME.search(name)))

    def __call__(self, message: str) -> str:
        for secret in self._secrets:
            message = message.replace(secret, "[key]")
        message = _SECRET_SHAPE.sub("[key]", message)
        return message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 1] + "…"

    def response(self, text: str) -> str:
        """Return a model's unchanged text, except for API keys in use, should a server ever echo one."""
        for key in self._api_keys:
            text = text.replace(key, "[key]")
        return text


def _values(environ: Mapping[str, str], secret: Callable[[str], bool]) -> list[str]:
    values = {value.strip() for name, value in environ.items() if secret(name)}
    # Longest first, because one key may be the beginning of another.
    return sorted((value for value in values if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)


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

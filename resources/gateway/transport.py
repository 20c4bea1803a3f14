"""The gateway's interface to models, hosted (through litellm) or local, and the removal of API keys from messages."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Request
from resources.gateway.bills import NO_BILL, Bill


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
    """Return what is wrong with the environment for this model (certificate checks switched off, a key not set), or None."""
    # LiteLLM reads this variable itself, from the environment of the process.
    if os.environ.get("SSL_VERIFY", "").strip().lower() in _OFF:
        return "SSL_VERIFY turns certificate checks off, and keys go over this line; name your CA file in SSL_CERT_FILE instead"
    if spec.api_key_env and not environ.get(spec.api_key_env, "").strip():
        return f"environment variable {spec.api_key_env} is not set"
    return None


def find_certificates(environ: Mapping[str, str]) -> str | None:
    """Return the environment's file of certificates, or None if it does not exist."""
    named = environ.get("SSL_CERT_FILE")
    return named if named and Path(named).is_file() else None


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


def resolve_empty_text(spec: ModelSpec, refusal: object, finish_reason: str | None) -> str:
    """Return the text of a reply without content: its refusal, or nothing. Raises `CallError` if it reports that the server failed.

    A tool call, a filter or a spent token budget is the model's reply: another request would cost again and end the same.
    """
    if finish_reason == "error":
        raise CallError(f"{spec.name}: an answer without content (finish reason {finish_reason})", Scope.PASSING, billed=True)
    return str(refusal) if refusal else ""


def get_text_or_none(value: object) -> str | None:
    """Return the value if it is text, else None."""
    return value if isinstance(value, str) else None


class Transport(Protocol):
    """One way to reach models."""

    def problem(self, spec: ModelSpec) -> str | None:
        """Return what is missing to call this model at all, or None."""

    async def ask(self, request: Request) -> Reply:
        """Make one attempt. Raises `CallError`, whose message may still contain secrets."""

    async def open(self) -> None:
        """Prepare, so that this time counts neither as a call's latency nor against its time limit."""

    async def close(self) -> None:
        """Release, at a run's end, what belongs to the running event loop."""


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

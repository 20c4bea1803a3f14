"""Calls to models through litellm, which is imported (3 seconds) only when needed; failures become a `CallError`."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import httpx

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import EMBEDDER, Request
from resources.gateway.litellm_module import load_litellm
from resources.gateway.prices import COST_HEADER, Bill, build_own_price, find_usage, parse_bill, price, read_bill
from resources.gateway.transport import (
    CONNECT_TIMEOUT_S,
    GRACE_S,
    CallError,
    Reply,
    Scope,
    Transport,
    build_embedding_input,
    build_messages,
    build_reply,
    build_response_format,
    build_sampling,
    describe_cause,
    extract_message,
    find_settings_problem,
    format_address,
    make_answer_timeout,
    make_certificate_error,
    make_connection_error,
    make_connection_timeout,
    make_status_error,
    make_unreadable_error,
)

_log = logging.getLogger("dtef.gateway")

_LOG_PATIENCE_S = 5.0
# As in "litellm.RateLimitError: RateLimitError: OpenAIException - the message".
_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?: Error)?(?:: | - ))+")
# As in "Error code: 401 - {'error': {'message': 'no luck'}}".
_STATUS_CODE = re.compile(r"^Error code: \d{3} - ")
_NO_DETAIL = "Connection error"
_SUFFIX = re.compile(r"\.? Handle with `litellm\.\w+`\.?")
_E = TypeVar("_E", bound=BaseException)


UNKNOWN_PROVIDER = "LiteLLM knows no such provider; write PROVIDER/MODEL, as in openai/gpt-4.1-mini"
_WITHOUT_ADDRESS = ("custom", "oobabooga", "petals", "triton", "vllm")
"""Providers of litellm that are the user's own servers: without an address each call would fail and be retried for minutes."""


def find_unknown_provider(spec: ModelSpec) -> str | None:
    """Return what is wrong with the provider of a model without `api_base`, or None. Loads litellm, which takes seconds."""
    provider, _, name = spec.model.partition("/")
    if provider in _WITHOUT_ADDRESS and "://" not in name:
        return f"{provider} needs the address of your server: write openai/{name} with its api_base in the models file"
    litellm = load_litellm()
    try:
        litellm.get_llm_provider(spec.model)
    except litellm.exceptions.BadRequestError:
        return UNKNOWN_PROVIDER
    return None


class LitellmTransport(Transport):
    """One attempt at one request with litellm, without litellm's retries, caches or network look-ups."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._takes: dict[str, bool] = {}

    def problem(self, spec: ModelSpec) -> str | None:
        problem = find_settings_problem(spec, self._environ)
        return problem if problem or spec.api_key_env or spec.api_base else self._find_provider_problem(spec)

    def _find_provider_problem(self, spec: ModelSpec) -> str | None:
        if problem := find_unknown_provider(spec):
            return problem
        missing = load_litellm().validate_environment(spec.model)["missing_keys"]
        # Other settings (AWS, Vertex, Ollama addresses) may come from sources besides the environment, which LiteLLM finds itself.
        keys = [key for key in missing if key.endswith("_API_KEY")]
        absent = keys and not any(self._environ.get(key) for key in keys)
        return f"environment variable {' or '.join(keys)} is not set" if absent else None

    async def ask(self, request: Request) -> Reply:
        litellm = load_litellm()
        if request.role == EMBEDDER:
            call = litellm.aembedding(**self._build_embedding_arguments(request))
        else:
            call = litellm.acompletion(**self._build_arguments(litellm, request))
        completion = await call_in_time(request, call)
        answer = completion.model_dump(warnings=False)
        for choice in answer.get("choices") or ():
            # LiteLLM moves thinking to this field, or keeps it in the text of providers that it does not know to think.
            choice["message"].setdefault("reasoning_content", None)
        return build_reply(request, answer, _compute_bill(litellm, request, completion, answer.get("usage")))

    def _build_embedding_arguments(self, request: Request) -> dict[str, Any]:
        arguments = {**self.connection(request.model), **build_embedding_input(request)}
        if request.model.api_base:
            arguments["allowed_openai_params"] = ["encoding_format"]
        return arguments

    def _build_arguments(self, litellm: Any, request: Request) -> dict[str, Any]:
        spec, sampling = request.model, build_sampling(request)
        if request.response_schema is not None and self._is_schema_supported(litellm, spec):
            sampling["response_format"] = build_response_format(request.response_schema)
        arguments = {
            **self.connection(spec),
            "messages": build_messages(request),
            **sampling,
        }
        if spec.provider is not None:
            arguments["extra_body"] = {"provider": arguments.pop("provider")}
        if spec.api_base:
            # LiteLLM has no list of parameters for such a server, so all are sent, and the server decides.
            arguments["allowed_openai_params"] = [key for key in sampling if key != "provider"]
        return arguments

    def connection(self, spec: ModelSpec) -> dict[str, Any]:
        """Return the connection arguments of every litellm call."""
        arguments = {
            "model": spec.model,
            "timeout": httpx.Timeout(spec.timeout, connect=min(spec.timeout, CONNECT_TIMEOUT_S)),
            "max_retries": 0,
            "num_retries": 0,
            "drop_params": True,
        }
        if spec.api_base:
            arguments["api_base"] = spec.api_base
            # Without a key, LiteLLM would send the provider's own key (OPENAI_API_KEY) to such a server.
            arguments["api_key"] = "none"
        if spec.api_key_env:
            arguments["api_key"] = self._environ[spec.api_key_env].strip()
        return arguments

    def _is_schema_supported(self, litellm: Any, spec: ModelSpec) -> bool:
        """Return whether the response can follow a schema; if not, log it once per model. Assumed of a server at its own address."""
        if spec.api_base:
            return True
        if spec.variant not in self._takes:
            self._takes[spec.variant] = bool(litellm.supports_response_schema(model=spec.model))
            if not self._takes[spec.variant]:
                _log.warning("%s: takes no JSON schema as far as litellm knows, so only the prompt asks it for JSON", spec.name)
        return self._takes[spec.variant]

    async def open(self) -> None:
        """Import litellm, so that these seconds add to no call's latency."""
        load_litellm()

    async def close(self) -> None:
        """Release litellm's objects of this loop: HTTP clients (a later loop may get the same id) and log tasks."""
        litellm = load_litellm()
        worker = litellm.litellm_core_utils.logging_worker.GLOBAL_LOGGING_WORKER
        # Also takes log records of an earlier event loop, with which `stop` alone would fail.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOG_PATIENCE_S):
                await worker.flush()
        cached = litellm.in_memory_llm_clients_cache.cache_dict
        suffix = f"-{id(asyncio.get_running_loop())}"
        for key in [key for key in cached if str(key).endswith(suffix)]:
            client = cached.pop(key)
            close = getattr(client, "close", None) or getattr(client, "aclose", None)
            if close is not None and asyncio.iscoroutinefunction(close):
                await close()
        await worker.stop()


async def call_in_time(request: Request, call: Awaitable[Any]) -> Any:
    """Return the result of a litellm call. Raises `CallError` for any exception, with its response's bill, and for a call that takes too
    long.
    """
    try:
        # The client's timeout bounds the silence between bytes; ours bounds the whole call, so that a slow trickle ends, too.
        async with asyncio.timeout(request.model.timeout + GRACE_S):
            return await call
    except TimeoutError:
        raise make_answer_timeout(request.model) from None
    except Exception as error:
        fault = call_error(request.model, error)
        fault.bill = read_bill(request, *read_error_usage(error)).unless_empty
        raise fault from None


def _compute_bill(litellm: Any, request: Request, completion: Any, usage: object) -> Bill:
    """Return the provider's bill, else one by the model's own prices, else by litellm's list."""
    spec = request.model
    headers = (getattr(completion, "_hidden_params", None) or {}).get("additional_headers") or {}
    header = headers.get(f"llm_provider-{COST_HEADER}")
    if request.role == EMBEDDER:
        return read_bill(request, usage, header)
    bill = parse_bill(usage, build_own_price(spec), header)
    if bill.cost_usd is not None or usage is None or spec.api_base:
        return bill
    return bill._replace(cost_usd=_compute_listed_cost(litellm, spec, completion))


def _compute_listed_cost(litellm: Any, spec: ModelSpec, completion: Any) -> float | None:
    """Return US dollars by litellm's list, which prices cached prompt tokens, or None if it lacks the model."""
    try:
        cost = float(litellm.completion_cost(completion_response=completion, model=spec.model))
        return None if cost == 0 and price(spec) is None else cost
    except Exception:  # LiteLLM raises many types for a model without prices, including ValueError
        return None


def call_error(spec: ModelSpec, error: Exception) -> CallError:
    """Return the error for this call and further ones. Its message names the model and quotes the server."""
    http_error = _find_first(error, httpx.HTTPStatusError)
    if http_error is None and (fault := _find_first(error, httpx.TransportError)):
        return _make_network_error(spec, fault)
    status = http_error.response.status_code if http_error else getattr(error, "status_code", None)
    if http_error is None and _extract_text(error).rstrip(".") == _NO_DETAIL:
        # The client's own message ("Connection error.") is uninformative; the cause has the details.
        cause = list(_iterate_chain(error))[-1]
        return CallError(
            f"{spec.name}: no connection{format_address(spec)}: {describe_cause(cause)}", Scope.PASSING, reached=False
        )
    if http_error is None and status in (200, 500):
        return make_unreadable_error(spec, _extract_text(error))
    if not isinstance(status, int):
        return CallError(f"{spec.name}: {type(error).__name__}: {_extract_text(error)}", Scope.REQUEST, billed=True)
    headers = http_error.response.headers if http_error else getattr(error, "litellm_response_headers", None) or {}
    kind = type(error).__name__
    return make_status_error(
        spec,
        status,
        _extract_text(error),
        words=f"{getattr(error, 'message', error)} {getattr(error, 'body', '')}",
        headers=headers,
        too_long=kind == "ContextWindowExceededError",
        is_blocked=kind == "ContentPolicyViolationError",
        # LiteLLM recognizes some refused keys that arrive with another status than 401.
        is_refused=getattr(error, "status_code", None) == 401,
    )


def read_error_usage(error: Exception) -> tuple[object, object]:
    """Return the `usage` in the body of an error's HTTP response and the cost in its headers, or None."""
    for link in _iterate_chain(error):
        response = getattr(link, "response", None)
        if not isinstance(response, httpx.Response):
            continue
        # LiteLLM invents some responses; the one that its client read is the server's.
        with suppress(httpx.ResponseNotRead):
            usage, header = find_usage(response.content), response.headers.get(COST_HEADER)
            if usage is not None or header is not None:
                return usage, header
    return None, None


def _make_network_error(spec: ModelSpec, fault: httpx.TransportError) -> CallError:
    if cause := _find_first(fault, ssl.SSLCertVerificationError):
        return make_certificate_error(spec, cause)
    if isinstance(fault, httpx.ConnectTimeout):
        return make_connection_timeout(spec)
    if isinstance(fault, httpx.TimeoutException):
        return make_answer_timeout(spec)
    return make_connection_error(spec, _find_first(fault, OSError) or fault, reached=not isinstance(fault, httpx.ConnectError))


def _find_first(error: BaseException, kind: type[_E]) -> _E | None:
    return next((link for link in _iterate_chain(error) if isinstance(link, kind)), None)


def _iterate_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and its causes: litellm wraps the provider's, which wraps the HTTP client's."""
    ids: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in ids:
        ids.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _extract_text(error: Exception) -> str:
    """Return the server's message without litellm's repeated prefixes and without JSON around it."""
    text = _SUFFIX.sub("", _PREFIX.sub("", str(getattr(error, "message", None) or error)))
    return " ".join((extract_message(_STATUS_CODE.sub("", text)) or text).split())

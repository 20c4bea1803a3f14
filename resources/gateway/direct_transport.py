"""Calls to models at their own OpenAI-compatible address, without litellm.

A response takes about a fifth of the time that it takes through litellm, and about an eighth of the processor time
(docs/explanation/gateway.md, Speed). litellm, whose import takes seconds, is not imported.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import ssl
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi

from dtef_pipeline.asking.models import OPENAI, ModelSpec
from dtef_pipeline.asking.request import EMBEDDER, Request
from resources.gateway.prices import COST_HEADER, find_usage, read_bill
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
    extract_message,
    find_settings_problem,
    make_answer_timeout,
    make_certificate_error,
    make_connection_error,
    make_connection_timeout,
    make_status_error,
    make_unreadable_error,
)

# OpenAI's model names that take other parameters (max_completion_tokens, no temperature); LiteLLM translates these. A gateway for several
# vendors adds the vendor to the name (openai/openai/gpt-5). With `responses/` LiteLLM uses another path of the server. LiteLLM itself
# translates every name that contains `gpt-5`. A user's own model with such a name (my-gpt-5-finetune) takes the parameters of the models file,
# and would lose its temperature.
_TRANSLATED = re.compile(r"openai/(?:responses/|(?:(?:openai|azure)/)?(?:o\d|(?:ft:)?gpt-[5-9]))")


def is_direct(spec: ModelSpec) -> bool:
    """Return whether the model is called without litellm: as its `transport` says, else if it has its own address and is not an OpenAI
    model whose parameters litellm translates. It is then sent what litellm would send, except for names that only contain such a
    model's.
    """
    if spec.transport is not None:
        return spec.transport == "direct"
    return bool(spec.api_base) and spec.model.startswith(OPENAI) and not _TRANSLATED.match(spec.model)


class DirectTransport(Transport):
    """One attempt at one request over HTTP. Sends and reads what litellm would."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    def problem(self, spec: ModelSpec) -> str | None:
        return find_settings_problem(spec, self._environ)

    async def ask(self, request: Request) -> Reply:
        spec = request.model
        address = _build_address(spec.api_base or "", "/embeddings" if request.role == EMBEDDER else "/chat/completions")
        body = json.dumps(_build_body(request), ensure_ascii=False, separators=(",", ":")).encode()
        session = self._sessions[asyncio.get_running_loop()]
        limits = aiohttp.ClientTimeout(total=spec.timeout + GRACE_S, sock_connect=min(spec.timeout, CONNECT_TIMEOUT_S))
        call = session.post(address, data=body, headers=self._build_headers(spec), timeout=limits, proxy=find_proxy(address))
        try:
            async with call as response:
                content = await response.read()
        except Exception as error:
            raise _convert_error(spec, error) from None
        cost_header = response.headers.get(COST_HEADER)
        try:
            if response.status // 100 != 2:
                raise _make_refusal(spec, response, content)
            answer = parse_object(spec, content)
        except CallError as error:
            error.bill = read_bill(request, find_usage(content), cost_header).unless_empty
            raise
        return build_reply(request, answer, read_bill(request, answer.get("usage"), cost_header))

    def _build_headers(self, spec: ModelSpec) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json", "user-agent": "dtef-pipeline"}
        if "@" not in urlsplit(spec.api_base or "").netloc:
            # Some servers require any key, so one without a key gets a placeholder.
            key = self._environ[spec.api_key_env].strip() if spec.api_key_env else "none"
            headers["authorization"] = f"Bearer {key}"
        return headers

    async def open(self) -> None:
        """Open the session, so that no call's latency includes it."""
        self._sessions[asyncio.get_running_loop()] = open_session(self._environ)

    async def close(self) -> None:
        """Close the connections."""
        if session := self._sessions.pop(asyncio.get_running_loop(), None):
            await session.close()


def _build_body(request: Request) -> dict[str, Any]:
    model = {"model": request.model.model.removeprefix(OPENAI)}
    if request.role == EMBEDDER:
        return {**model, **build_embedding_input(request)}
    body = {**model, "messages": build_messages(request), **build_sampling(request)}
    if request.response_schema is not None:
        body["response_format"] = build_response_format(request.response_schema)
    return body


@lru_cache(maxsize=256)
def _build_address(api_base: str, path: str) -> str:
    """Return the endpoint: the path follows that of the address, before its query."""
    parts = urlsplit(api_base)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}{path}", fragment=""))


# Servers (uvicorn, llama.cpp) close a connection after 5 s without use. A connection that is being closed must not be used again.
_KEPT_OPEN_S = 4.0
_ADDRESSES_KEPT_S = 60
# More than is ever shown, because keys are removed before a message is shortened.
_MAX_ERROR_CHARACTERS = 10_000


def open_session(environ: Mapping[str, str]) -> aiohttp.ClientSession:
    """Open a session of the running event loop. The gateway limits concurrent calls, so it does not."""
    # aiohttp would log addresses at this level, and they may contain a password.
    logging.getLogger("aiohttp").setLevel(logging.WARNING)
    named = environ.get("SSL_CERT_FILE", "")
    context = ssl.create_default_context(cafile=named if Path(named).is_file() else certifi.where())
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_OPEN_S, ttl_dns_cache=_ADDRESSES_KEPT_S, ssl=context)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())


@lru_cache(maxsize=256)
def find_proxy(url: str) -> str | None:
    """Return the environment's proxy for an address, or None. (aiohttp would look it up in another thread at each call.)"""
    parts = urlsplit(url)
    named = getproxies()
    proxy = named.get(parts.scheme) or named.get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _make_refusal(spec: ModelSpec, response: aiohttp.ClientResponse, content: bytes) -> CallError:
    words = content.decode("utf-8", "replace")
    message = " ".join((extract_message(words.strip()) or words)[:_MAX_ERROR_CHARACTERS].split()) or str(response.reason)
    return make_status_error(spec, response.status, message, words=words, headers=response.headers)


def _convert_error(spec: ModelSpec, error: Exception) -> CallError:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return make_connection_timeout(spec)
        case TimeoutError():
            return make_answer_timeout(spec)
        case aiohttp.ClientConnectorCertificateError():
            return make_certificate_error(spec, error.certificate_error)
        case aiohttp.InvalidURL():  # it may contain a password
            return CallError(f"{spec.name}: its address, or that of the proxy, cannot be read", Scope.MODEL)
        case aiohttp.ClientConnectorError():
            return make_connection_error(spec, error, reached=False)
        case aiohttp.ClientResponseError():
            return make_unreadable_error(spec, error.message or type(error).__name__)
        case aiohttp.ClientError() | OSError():
            return make_connection_error(spec, error, reached=True)
        case _:
            return CallError(f"{spec.name}: {type(error).__name__}: {error}", Scope.REQUEST, billed=True)


def quote_content(content: bytes) -> str:
    """Return the beginning of a reply, in one line."""
    return " ".join(content[:_MAX_ERROR_CHARACTERS].decode("utf-8", "replace").split()) or "it is empty"


def parse_object(spec: ModelSpec, content: bytes) -> dict[str, Any]:
    """Return the JSON object of a reply. Raises `CallError` if it is none, or is an error sent as a success."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        raise make_unreadable_error(spec, quote_content(content)) from None
    if not isinstance(answer, dict):
        raise make_unreadable_error(spec, quote_content(content))
    if error := answer.get("error"):
        words = content.decode("utf-8", "replace").strip()
        message = extract_message(words) or quote_content(content)
        code = error.get("code") if isinstance(error, dict) else None
        if isinstance(code, int) and 400 <= code <= 599:
            raise make_status_error(spec, code, message, words=words, headers={})
        raise make_unreadable_error(spec, message)
    return answer

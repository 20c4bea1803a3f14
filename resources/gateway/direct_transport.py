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
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi

from dtef_pipeline.asking.embeddings import decode_vectors, encode_stored_vectors
from dtef_pipeline.asking.models import OPENAI, ModelSpec
from dtef_pipeline.asking.request import Request
from resources.gateway.prices import COST_HEADER, NO_BILL, Bill, build_own_price, find_usage, parse_bill, read_embedding_bill
from resources.gateway.transport import (
    CONNECT_TIMEOUT_S,
    GRACE_S,
    CallError,
    Reply,
    Scope,
    build_messages,
    build_response_format,
    build_sampling,
    extract_message,
    find_certificates,
    find_settings_problem,
    get_text_or_none,
    make_answer_timeout,
    make_certificate_error,
    make_connection_error,
    make_connection_timeout,
    make_no_choices_error,
    make_status_error,
    make_unreadable_error,
    resolve_empty_text,
)

# OpenAI's model names that take other parameters (max_completion_tokens, no temperature); LiteLLM translates these. A gateway for several
# vendors adds the vendor to the name (openai/openai/gpt-5). With `responses/` LiteLLM uses another path of the server. LiteLLM itself
# translates every name that contains `gpt-5`. A user's own model with such a name (my-gpt-5-finetune) takes the parameters of the models file,
# and would lose its temperature.
_TRANSLATED = re.compile(r"openai/(?:responses/|(?:(?:openai|azure)/)?(?:o\d|(?:ft:)?gpt-[5-9]))")
_THOUGHT_FIRST = re.compile(r"<(?:budget:)?think(?:ing)?>(.*?)</(?:budget:)?think(?:ing)?>(.*)", re.DOTALL)
# Other servers' words for the reason why a response ended.
_ENDED_BY = {
    **dict.fromkeys(["stop", "eos", "eos_token", "stop_sequence", "end_turn"], "stop"),
    **dict.fromkeys(["length", "max_tokens"], "length"),
    **dict.fromkeys(["content_filter", "content_filtered", "safety", "refusal", "guardrail_intervened"], "content_filter"),
}


def is_direct(spec: ModelSpec) -> bool:
    """Return whether the model is called without litellm: as its `transport` says, else if it has its own address and is not an OpenAI
    model whose parameters litellm translates. It is then sent what litellm would send, except for names that only contain such a
    model's.
    """
    if spec.transport is not None:
        return spec.transport == "direct"
    return bool(spec.api_base) and spec.model.startswith(OPENAI) and not _TRANSLATED.match(spec.model)


class DirectTransport:
    """One attempt at one request over HTTP. Sends and reads what litellm would."""

    PATH = "/chat/completions"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    def problem(self, spec: ModelSpec) -> str | None:
        if (
            (file := self._environ.get("SSL_CERT_FILE"))
            and not find_certificates(self._environ)
            and "https:" in (spec.api_base or "")
        ):
            return f"SSL_CERT_FILE names {file}, and there is no such file"
        return find_settings_problem(spec, self._environ)

    async def ask(self, request: Request) -> Reply:

        spec = request.model
        body = json.dumps(self._build_body(request), ensure_ascii=False, separators=(",", ":")).encode()
        session = self._sessions[asyncio.get_running_loop()]
        answer = await post(session, spec, _build_address(spec.api_base or "", self.PATH), self._build_headers(spec), body)
        cost_header = answer.headers.get(COST_HEADER)
        try:
            refuse_status(spec, answer)
            reply = parse_object(spec, answer.content)
            return self._build_reply(spec, reply, request, self._read_bill(spec, reply.get("usage"), cost_header))
        except CallError as error:
            # The usage that a reply reports counts, even if the reply is faulty otherwise.
            error.bill = self._read_bill(spec, find_usage(answer.content), cost_header).unless_empty
            raise

    def _read_bill(self, spec: ModelSpec, usage: object, header: str | None) -> Bill:
        return parse_bill(usage, build_own_price(spec), header)

    def _build_headers(self, spec: ModelSpec) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json", "user-agent": "dtef-pipeline"}
        if "@" not in urlsplit(spec.api_base or "").netloc:
            # Some servers require any key, so one without a key gets a placeholder.
            key = self._environ[spec.api_key_env].strip() if spec.api_key_env else "none"
            headers["authorization"] = f"Bearer {key}"
        return headers

    def _build_body(self, request: Request) -> dict[str, Any]:
        body = {
            "model": request.model.model.removeprefix(OPENAI),
            "messages": build_messages(request),
            **build_sampling(request),
        }
        if request.response_schema is not None:
            body["response_format"] = build_response_format(request.response_schema)
        return body

    def _build_reply(self, spec: ModelSpec, answer: dict[str, Any], request: Request, bill: Bill = NO_BILL) -> Reply:
        choices = answer.get("choices")
        if not choices:
            raise make_no_choices_error(spec)
        try:
            message, finish_reason = choices[0]["message"], choices[0].get("finish_reason") or "stop"
            text, reasoning = _split_reasoning(message)
        except (KeyError, TypeError, AttributeError, IndexError):
            raise make_unreadable_error(spec, f"a choice of {json.dumps(choices)}") from None
        finish_reason = _ENDED_BY.get(str(finish_reason).lower(), str(finish_reason))
        if text is None:
            text = resolve_empty_text(spec, message.get("refusal"), finish_reason)
        return Reply(
            text=text,
            finish_reason=finish_reason,
            served_model=get_text_or_none(answer.get("model")),
            fingerprint=get_text_or_none(answer.get("system_fingerprint")),
            reasoning=reasoning,
            host=get_text_or_none(answer.get("provider")),
            bill=bill,
        )

    async def open(self) -> None:
        """Import the client and open the session, so that no call's latency includes it."""

        self._sessions[asyncio.get_running_loop()] = open_session(self._environ)

    async def close(self) -> None:
        """Close the connections."""
        if session := self._sessions.pop(asyncio.get_running_loop(), None):
            await session.close()


@lru_cache(maxsize=256)
def _build_address(api_base: str, path: str) -> str:
    """Return the endpoint: the path follows that of the address, before its query."""
    parts = urlsplit(api_base)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}{path}", fragment=""))


def _split_reasoning(message: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the response and the reasoning, which servers send in a separate field or before the response."""
    text = message.get("content")
    if isinstance(text, Sequence) and not isinstance(text, str):
        text = "".join(part["text"] for part in text if part.get("type", "text") == "text")
    if text is not None and not isinstance(text, str):
        raise TypeError
    for name in ("reasoning_content", "reasoning"):
        if name in message:
            return text, get_text_or_none(message[name])
    if text and (thought := _THOUGHT_FIRST.match(text)):
        return thought[2], thought[1]
    return text, None


class DirectEmbedding(DirectTransport):
    """One attempt at one batch over HTTP. The request's messages are the texts."""

    PATH = "/embeddings"

    def _build_body(self, request: Request) -> dict[str, Any]:
        texts = [message.text for message in request.messages]
        return {"model": request.model.model.removeprefix(OPENAI), "input": texts, "encoding_format": "float"}

    def _read_bill(self, spec: ModelSpec, usage: object, header: str | None) -> Bill:
        return read_embedding_bill(spec, usage, header)

    def _build_reply(self, spec: ModelSpec, answer: dict[str, Any], request: Request, bill: Bill = NO_BILL) -> Reply:
        data = answer.get("data")
        try:
            entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
            vectors = decode_vectors(entries, len(request.messages))
        except ValueError as error:
            raise make_unreadable_error(spec, str(error)) from None
        return Reply(
            text=encode_stored_vectors(vectors),
            finish_reason=None,
            served_model=get_text_or_none(answer.get("model")),
            bill=bill,
        )


# Servers (uvicorn, llama.cpp) close a connection after 5 s without use. A connection that is being closed must not be used again.
_KEPT_OPEN_S = 4.0
_ADDRESSES_KEPT_S = 60
# More than is ever shown, because keys are removed before a message is shortened.
_MAX_ERROR_CHARACTERS = 10_000


def open_session(environ: Mapping[str, str]) -> aiohttp.ClientSession:
    """Open a session of the running event loop. The gateway limits concurrent calls, so it does not."""
    # aiohttp would log addresses at this level, and they may contain a password.
    logging.getLogger("aiohttp").setLevel(logging.WARNING)
    context = ssl.create_default_context(cafile=find_certificates(environ) or certifi.where())
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


class HttpReply(NamedTuple):
    """A server's reply of any status."""

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes


async def post(session: aiohttp.ClientSession, spec: ModelSpec, url: str, headers: Mapping[str, str], body: bytes) -> HttpReply:
    """Return the server's reply. Raises `CallError` if there is none."""
    limits = aiohttp.ClientTimeout(total=spec.timeout + GRACE_S, sock_connect=min(spec.timeout, CONNECT_TIMEOUT_S))
    try:
        async with session.post(url, data=body, headers=headers, timeout=limits, proxy=find_proxy(url)) as response:
            return HttpReply(response.status, str(response.reason), response.headers, await response.read())
    except Exception as error:
        raise _convert_error(spec, error) from None


def refuse_status(spec: ModelSpec, answer: HttpReply) -> None:
    """Raise `CallError` for every status but success."""
    if answer.status // 100 != 2:
        words = answer.content.decode("utf-8", "replace")
        message = " ".join((extract_message(words.strip()) or words)[:_MAX_ERROR_CHARACTERS].split()) or answer.reason
        raise make_status_error(spec, answer.status, message, words=words, headers=answer.headers)


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

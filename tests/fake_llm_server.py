"""A language-model server on loopback that speaks the chat-completions protocol, counts what it answered, and misbehaves
on demand.

In a test:

    with FakeLLM(reply=lambda call: "[60, 40]", fault=at_first(Fault("status", status=429, retry_after="1"))) as server:
        ...  # api_base = server.base_url
        assert server.answered == 1
"""

from __future__ import annotations

import base64
import json
import random
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Literal, Self

from tests.counted_clients import CountedClients
from tests.waiting import wait_until

DEFAULT_REPLY = "[40.0, 30.0, 20.0, 10.0]"


class EndedBy(str):
    """A reply that did not end by itself: its `finish_reason` is `length` or `content_filter`."""

    finish_reason: str

    def __new__(cls, finish_reason: str, text: str) -> Self:
        made = super().__new__(cls, text)
        made.finish_reason = finish_reason
        return made


@dataclass(frozen=True)
class Call:
    """One request as it arrived."""

    body: dict[str, Any]
    headers: dict[str, str]
    attempt: int
    """1 the first time exactly this body arrives, 2 the second time, ..."""
    arrived_at: float = 0.0
    """Monotonic seconds."""
    path: str = ""
    """As it was asked for, with its query."""

    @property
    def user(self) -> str:
        """The last user text; of a call for embeddings all its texts."""
        if "input" in self.body:
            return "\n".join(self.body["input"])
        return next((m["content"] for m in reversed(self.body["messages"]) if m["role"] == "user"), "")

    @property
    def key(self) -> str | None:
        return self.headers.get("authorization", "").removeprefix("Bearer ") or None


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one call."""

    kind: Literal[
        "status", "reset", "hang", "drip", "truncated", "wrong_type", "empty_choices", "no_content", "content_filter", "body"
    ]
    status: int = 500
    retry_after: str | None = None
    message: str = "planned fault"
    code: str | None = None
    """The provider's own name of the error, as in `insufficient_quota`."""
    seconds: float = 30.0
    """How long `hang` and `drip` take."""
    body: bytes = b""
    """What `body` sends, as a success, and `status` in place of its error."""


def vector_of(text: str) -> list[float]:
    """Eight numbers between -1 and 1 that depend on the text alone, and that 32 bits hold exactly."""
    rng = random.Random(text)
    return [rng.randrange(-1024, 1025) / 1024 for _ in range(8)]


def embeddings_answer(call: Call, *, as_base64: bool = False, shuffled: bool = False) -> dict[str, Any]:
    """Embeddings as OpenAI's servers send them. `shuffled`: out of order, as `index` tells."""
    data = []
    for index, text in enumerate(call.body["input"]):
        vector: Any = vector_of(text)
        if as_base64:
            vector = base64.b64encode(struct.pack("<8f", *vector)).decode()
        data.append({"object": "embedding", "index": index, "embedding": vector})
    if shuffled:
        random.Random(0).shuffle(data)
    tokens = sum(len(text.split()) for text in call.body["input"])
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": f"{call.body['model']}-served", "usage": usage}


Reply = Callable[[Call], str]
FaultPlan = Callable[[Call], Fault | None]


def at_first(*faults: Fault) -> FaultPlan:
    """Each prompt meets the faults one after the other, then is answered."""
    return lambda call: faults[call.attempt - 1] if call.attempt <= len(faults) else None


def always(fault: Fault) -> FaultPlan:
    return lambda call: fault


def at_random(rate: float, *faults: Fault, seed: int = 0) -> FaultPlan:
    """A share of the calls fails; which ones depends on the prompt and the attempt alone."""

    def plan(call: Call) -> Fault | None:
        chance = random.Random(f"{seed}/{call.user}/{call.attempt}")
        return chance.choice(faults) if chance.random() < rate else None

    return plan


@dataclass
class FakeLLM:
    """The server; a context manager. Everything it was asked is in `calls`, prompts it answered in `answers`."""

    reply: Reply = lambda call: DEFAULT_REPLY
    fault: FaultPlan = lambda call: None
    embeddings: Callable[[Call], dict[str, Any]] = embeddings_answer
    """What is answered at /v1/embeddings."""
    latency: float = 0.0
    certificate: Path | None = None
    """A PEM file with certificate and key: the server speaks HTTPS."""
    calls: list[Call] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    """How often each user text was answered in full."""
    peak: int = 0
    """The largest number of calls in progress at once."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._attempts: Counter[str] = Counter()
        self._busy = 0
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        self._server = CountedClients(("127.0.0.1", 0), _handler(self))
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        scheme = "http" if self.certificate is None else "https"
        return f"{scheme}://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def answered(self) -> int:
        return self.answers.total()

    def arrived(self, body: dict[str, Any], headers: dict[str, str], path: str) -> Call:
        with self._lock:
            identity = json.dumps(body, sort_keys=True)
            self._attempts[identity] += 1
            call = Call(body, headers, self._attempts[identity], time.monotonic(), path)
            self.calls.append(call)
            self._busy += 1
            self.peak = max(self.peak, self._busy)
        return call

    @property
    def busy(self) -> int:
        """Calls in progress now."""
        return self._busy

    @property
    def connections(self) -> int:
        """How many there were so far."""
        return self._server.connections

    def await_nobody(self) -> None:
        """Until no client is connected any more: then also what one that was killed had sent before is counted."""
        assert wait_until(lambda: not self._server.has_clients), "a client stays connected"

    def left(self) -> None:
        with self._lock:
            self._busy -= 1

    def count(self, call: Call) -> None:
        with self._lock:
            self.answers[call.user] += 1

    def wait(self, seconds: float) -> None:
        """Sleep, but not beyond the end of the server."""
        if seconds > 0:
            self._stopping.wait(seconds)


def _handler(fake: FakeLLM) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            call = fake.arrived(body, {k.lower(): v for k, v in self.headers.items()}, self.path)
            try:
                fake.wait(fake.latency)
                self._answer(call, fake.fault(call))
            finally:
                fake.left()

        def _answer(self, call: Call, fault: Fault | None) -> None:
            if fault is None:
                fake.count(call)
                self._send(200, json.dumps(self._good(call)).encode())
            elif fault.kind == "status":
                headers = {"retry-after": fault.retry_after} if fault.retry_after is not None else {}
                error = {"error": {"message": fault.message, "type": fault.code or "fault", "code": fault.code or fault.status}}
                self._send(fault.status, fault.body or json.dumps(error).encode(), headers)
            elif fault.kind == "reset":
                self._reset()
            elif fault.kind == "hang":
                fake.wait(fault.seconds)
                self.close_connection = True
            else:
                self._malformed(call, fault)

        def _good(self, call: Call) -> dict[str, Any]:
            return fake.embeddings(call) if self.path.endswith("/embeddings") else completion(call, fake.reply(call))

        def _malformed(self, call: Call, fault: Fault) -> None:
            good = self._good(call)
            if fault.kind == "empty_choices":
                self._send(200, json.dumps({**good, "choices": []}).encode())
            elif fault.kind in ("no_content", "content_filter"):
                reason = "content_filter" if fault.kind == "content_filter" else "stop"
                choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": None}}
                self._send(200, json.dumps({**good, "choices": [choice]}).encode())
            elif fault.kind == "truncated":
                self._send(200, json.dumps(good).encode()[:-40])
            elif fault.kind == "body":
                self._send(200, fault.body)
            elif fault.kind == "wrong_type":
                self._send(200, b"<html>gateway</html>", {"content-type": "text/html"})
            else:
                self._drip(json.dumps(good).encode(), fault.seconds)

        def _drip(self, payload: bytes, seconds: float) -> None:
            self.wfile.write(self._head(200, len(payload), {}))
            for byte in payload:
                self.wfile.write(bytes([byte]))
                fake.wait(seconds / len(payload))

        def _reset(self) -> None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()

        def _send(self, status: int, payload: bytes, headers: dict[str, str] | None = None) -> None:
            self.wfile.write(self._head(status, len(payload), headers or {}) + payload)

        def _head(self, status: int, length: int, headers: dict[str, str]) -> bytes:
            lines = {"content-type": "application/json", "content-length": str(length), **headers}
            rest = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
            return f"HTTP/1.1 {status} X\r\n{rest}\r\n".encode()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def completion(call: Call, text: str) -> dict[str, Any]:
    """A chat completion as OpenAI's servers send it."""
    prompt_tokens = sum(len(m["content"].split()) for m in call.body["messages"])
    tokens = len(text.split())
    ended = text.finish_reason if isinstance(text, EndedBy) else "stop"
    return {
        "id": f"chatcmpl-{call.attempt}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": f"{call.body['model']}-served",
        "system_fingerprint": "fp_fake",
        "choices": [{"index": 0, "finish_reason": ended, "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": tokens, "total_tokens": prompt_tokens + tokens},
    }

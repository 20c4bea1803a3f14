"""What each way of failing means, and what is sent and read, by a real server: directly, and through litellm."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Request
from resources.gateway.direct_transport import DirectTransport, is_direct
from resources.gateway.litellm_errors import call_error
from resources.gateway.litellm_module import load_litellm
from resources.gateway.litellm_transport import LitellmTransport
from resources.gateway.transport import CallError, Reply, Scope
from tests.conftest import ROOT
from tests.fake_llm_server import FakeLLM, Fault, always
from tests.resources.gateway.gateway_setup import KEY, model, requests

Way = dict[str, str]


def send(request: Request) -> Reply:
    """One attempt, with the clients opened and closed as a run does."""

    async def once() -> Reply:
        transport = (DirectTransport if is_direct(request.model) else LitellmTransport)({"M_KEY": KEY})
        await transport.open()
        try:
            return await transport.ask(request)
        finally:
            await transport.close()

    return asyncio.run(once())


def ask(**settings: Any) -> Reply:
    return send(requests(model(None, **settings))[0])


def failure(fault: Fault, **settings: Any) -> CallError:
    with FakeLLM(fault=always(fault)) as server, pytest.raises(CallError) as caught:
        ask(api_base=server.base_url, **settings)
    return caught.value


WAYS = [{"model": "openai/m"}, {"model": "openai/m", "transport": "litellm"}, {"model": "hosted_vllm/m"}]
"""Directly, and by both of litellm's ways to a server of one's own, which fail differently."""
every_way = pytest.mark.parametrize("way", WAYS, ids=["direct", "litellm", "litellm-hosted"])


@every_way
class TestStatuses:
    @pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
    def test_a_status_that_may_pass(self, way: Way, status: int) -> None:
        error = failure(Fault("status", status=status, message="busy"), **way)
        assert error.scope is Scope.PASSING
        assert error.rate_limited is (status == 429)
        assert error.message == f"m: HTTP {status}: busy"

    @pytest.mark.parametrize("status", [401, 402, 403, 404])
    def test_a_status_that_concerns_the_whole_model(self, way: Way, status: int) -> None:
        error = failure(Fault("status", status=status, message="no entry"), **way)
        assert (error.scope, error.message) == (Scope.MODEL, f"m: HTTP {status}: no entry")

    @pytest.mark.parametrize("status", [400, 413, 422])
    def test_a_status_that_concerns_the_request(self, way: Way, status: int) -> None:
        error = failure(Fault("status", status=status, message="temperature is not a number"), **way)
        assert (error.scope, error.of_prompt) == (Scope.REQUEST, False)
        assert error.message == f"m: HTTP {status}: temperature is not a number"

    @pytest.mark.parametrize("asked", ["7", "7.5"])
    def test_retry_after_arrives(self, way: Way, asked: str) -> None:
        error = failure(Fault("status", status=429, retry_after=asked), **way)
        assert error.retry_after == float(asked)
        error = failure(Fault("status", status=503, retry_after=asked), **way)
        assert error.retry_after == float(asked)

    @pytest.mark.parametrize("kind", ["truncated", "wrong_type", "reset"])
    def test_a_broken_answer_may_pass(self, way: Way, kind: Any) -> None:
        error = failure(Fault(kind), **way)
        assert (error.scope, error.rate_limited) == (Scope.PASSING, False)
        assert "HTTP" not in error.message
        assert error.message.startswith("m: connection lost" if kind == "reset" else "m: unreadable answer: ")

    def test_silence_ends_at_the_timeout(self, way: Way) -> None:
        error = failure(Fault("hang"), **way, timeout=0.3)
        assert (error.scope, error.message) == (Scope.PASSING, "m: no answer within 0.3 s")

    def test_nobody_listening_may_pass(self, way: Way) -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            address = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
            with pytest.raises(CallError, match=r": .*Connect call failed") as caught:
                ask(**way, api_base=address)
        assert caught.value.scope is Scope.PASSING
        assert caught.value.message.startswith(f"m: connection lost or refused ({address}): ")


@every_way
@pytest.mark.parametrize("status", [400, 402, 429, 500, 503])
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_usage_that_a_refusal_states_is_its_bill(way: Way, status: int, is_inside: bool) -> None:
    """It was not read: a refused call counted as free, and one that the server broke off with what it may have cost at most."""
    error = {"message": "no luck", "type": "fault", "code": "fault"}
    usage = {"usage": {"prompt_tokens": 1000, "completion_tokens": 7, "total_tokens": 1007, "cost": 0.25}}
    body = {"error": {**error, **usage}} if is_inside else {"error": error, **usage}
    found = failure(Fault("status", status=status, body=json.dumps(body).encode()), **way)
    assert found.bill is not None
    assert (found.bill.prompt_tokens, found.bill.completion_tokens, found.bill.cost_usd) == (1000, 7, 0.25)
    assert found.message == f"m: HTTP {status}: no luck"


@every_way
def test_a_refusal_that_states_no_usage_has_no_bill(way: Way) -> None:
    assert failure(Fault("status", status=500), **way).bill is None


@every_way
class TestWords:
    """Providers say with one status what means different things."""

    @pytest.mark.parametrize(
        "message",
        ["This model's maximum context length is 8192 tokens, you gave 9000", "prompt is too long: 9000 tokens > 8192 maximum"],
    )
    def test_a_prompt_that_is_too_long_is_its_own_fault(self, way: Way, message: str) -> None:
        error = failure(Fault("status", status=400, message=message), **way)
        assert (error.scope, error.of_prompt) == (Scope.REQUEST, True)
        assert error.message == f"m: the prompt is too long for the model (HTTP 400): {message}"

    @pytest.mark.parametrize(
        ("status", "message"),
        [
            (400, "The response was filtered due to the prompt triggering Azure OpenAI's content management policy"),
            (400, "Output blocked by content filtering policy"),
            (403, "Your chosen model requires moderation and your input was flagged"),
        ],
    )
    def test_a_content_filter_concerns_the_prompt(self, way: Way, status: int, message: str) -> None:
        error = failure(Fault("status", status=status, message=message), **way)
        assert (error.scope, error.of_prompt) == (Scope.REQUEST, True)
        assert "content filter" in error.message

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ("insufficient_quota", "You exceeded your current quota, please check your plan and billing details."),
            (None, "You exceeded your current quota, please check your plan and billing details."),
            (None, "Your credit balance is too low to access the API"),
        ],
    )
    def test_a_429_for_want_of_money_concerns_the_model(self, way: Way, code: str | None, message: str) -> None:
        assert failure(Fault("status", status=429, message=message, code=code), **way).scope is Scope.MODEL

    @pytest.mark.parametrize(
        ("message", "wait"),
        [
            ("RESOURCE_EXHAUSTED: You exceeded your current quota, please check your plan and billing details", None),
            ('You exceeded your current quota, check billing. {"retryDelay": "23s"}', 23.0),
            ("Rate limit reached on tokens per minute. Visit billing to learn more. Please try again in 6ms.", None),
        ],
    )
    def test_a_429_that_speaks_of_billing_beside_a_wait_is_a_rate_limit(
        self, way: Way, message: str, wait: float | None
    ) -> None:
        error = failure(Fault("status", status=429, message=message), **way)
        assert (error.scope, error.rate_limited, error.retry_after) == (Scope.PASSING, True, wait)

    def test_a_429_for_one_request_larger_than_the_minutes_limit_concerns_the_request(self, way: Way) -> None:
        message = "Request too large for m on tokens per min (TPM): Limit 10000, Requested 12000"
        error = failure(Fault("status", status=429, message=message), **way)
        assert (error.scope, error.of_prompt) == (Scope.REQUEST, True)

    def test_a_400_that_repeats_the_words_of_the_prompt_is_no_rate_limit(self, way: Way) -> None:
        error = failure(
            Fault("status", status=400, message="cannot parse 'Should there be a rate limit on 429 things?'"), **way
        )
        assert error.scope is Scope.REQUEST


class TestConnecting:
    def test_a_client_that_only_says_connection_error_is_told_with_its_cause_and_the_address_without_secrets(self) -> None:
        """A port that does not exist was an "unreadable answer: Connection error." that named no address."""
        error = Exception("litellm.InternalServerError: InternalServerError: OpenAIException - Connection error.")
        error.__cause__ = ValueError("Port out of range 0-65535")
        found = call_error(model(None, api_base="http://me:hush@h:8000/v1"), error)
        assert found.message == "m: no connection (http://[...]@h:8000/v1): Port out of range 0-65535"
        assert (found.scope, found.reached) == (Scope.PASSING, False)

    @pytest.mark.parametrize("way", WAYS[:2])
    def test_a_server_that_takes_no_connection_is_not_waited_for_as_long_as_an_answer(
        self, way: Way, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in ("litellm_transport", "direct_client"):
            monkeypatch.setattr(f"resources.gateway.{module}.CONNECT_TIMEOUT_S", 0.3)
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            fillers = [socket.socket() for _ in range(4)]
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(deaf.getsockname())
            address = f"http://127.0.0.1:{deaf.getsockname()[1]}/v1"
            with pytest.raises(CallError, match=f"m: no connection in time .{address}."):
                ask(**way, api_base=address, timeout=300)
            for filler in fillers:
                filler.close()


@pytest.fixture(scope="module")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run(
        [*command, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    both = folder / "both.pem"
    both.write_text(key.read_text() + certificate.read_text())
    return both


class TestCertificates:
    @every_way
    def test_a_self_signed_server_is_refused_and_never_gets_the_key(self, way: Way, self_signed: Path) -> None:
        with FakeLLM(certificate=self_signed) as server, pytest.raises(CallError, match="certificate is not trusted") as caught:
            ask(**way, api_base=server.base_url)
        assert caught.value.scope is Scope.MODEL
        assert server.calls == []

    def test_checks_that_are_switched_off_in_the_environment_are_a_problem(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSL_VERIFY", "False")
        assert "SSL_VERIFY turns certificate checks off" in str(LitellmTransport({"M_KEY": KEY}).problem(model(None)))
        monkeypatch.setenv("SSL_VERIFY", "True")
        assert LitellmTransport({"M_KEY": KEY}).problem(model(None)) is None

    def test_nothing_in_the_code_switches_checks_off(self) -> None:
        sources = [path for package in ("dtef_pipeline", "resources", "assets") for path in (ROOT / package).rglob("*.py")]
        switches = ("ssl_verify", "verify=False", "CERT_NONE", "_create_unverified_context")
        assert [path.name for path in sources if any(switch in path.read_text("utf-8") for switch in switches)] == []


class TestAnswers:
    SCHEMA = '{"type": "object", "properties": {"distribution": {"type": "array"}}}'

    @every_way
    def test_a_schema_is_sent_to_a_server_of_ones_own(self, way: Way) -> None:
        with FakeLLM() as server:
            spec = model(server, **way)
            (request,) = requests(spec, response_schema=self.SCHEMA)
            send(request)
        (call,) = server.calls
        assert call.body["response_format"] == {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": json.loads(self.SCHEMA)},
        }

    def test_a_hosted_model_gets_a_schema_if_litellm_knows_that_it_takes_one_and_else_one_line_says_so(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        transport, litellm = LitellmTransport({}), load_litellm()
        sent = {}
        for name in ("openai/gpt-4.1-mini", "openai/gpt-3.5-turbo-instruct"):
            spec = ModelSpec(name=name, model=name)
            for request in requests(spec, 2, response_schema=self.SCHEMA):
                sent[name] = "response_format" in transport._arguments(litellm, request)
        assert sent == {"openai/gpt-4.1-mini": True, "openai/gpt-3.5-turbo-instruct": False}
        assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["openai/gpt-3.5-turbo-instruct"]

    @every_way
    @pytest.mark.parametrize(("own", "asked", "sent"), [(256, 1256, 1256), (2048, 1256, 2048), (None, 1256, None)])
    def test_a_long_answer_gets_room(self, way: Way, own: int | None, asked: int, sent: int | None) -> None:
        with FakeLLM() as server:
            (request,) = requests(model(server, **way, max_tokens=own), answer_tokens=asked)
            send(request)
        assert server.calls[0].body.get("max_tokens") == sent

    @every_way
    def test_thinking_in_front_of_the_answer_is_kept_apart(self, way: Way) -> None:
        with FakeLLM(reply=lambda call: "<think>60 or so</think>[60, 40]") as server:
            reply = ask(**way, api_base=server.base_url)
        assert (reply.text, reply.reasoning) == ("[60, 40]", "60 or so")

    @every_way
    def test_the_providers_fingerprint_is_kept(self, way: Way) -> None:
        with FakeLLM() as server:
            assert ask(**way, api_base=server.base_url).fingerprint == "fp_fake"

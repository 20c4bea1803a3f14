"""What each way of failing means, and what is sent and read, by a real server: directly, and through litellm."""

from __future__ import annotations

import email.utils
import json
import socket
import subprocess
import time
from pathlib import Path

import pytest

from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.litellm_module import load_litellm
from resources.gateway.litellm_transport import LitellmTransport, call_error
from resources.gateway.transport import CallError, Scope
from tests.conftest import ROOT
from tests.fake_llm_server import FakeLLM, Fault
from tests.resources.gateway.gateway_setup import KEY, failures, model, replies, requests, send

Setting = dict[str, str]
WAYS: dict[str, Setting] = {
    "direct": {"model": "openai/m"},
    "litellm": {"model": "openai/m", "transport": "litellm"},
    "litellm-hosted": {"model": "hosted_vllm/m"},
}
"""Directly, and by both of litellm's ways to a server of one's own, which fail differently."""


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Setting:
    return WAYS[request.param]


STATUSES = {
    **dict.fromkeys((408, 409, 425, 429, 500, 502, 503, 504, 529), Scope.PASSING),
    **dict.fromkeys((401, 402, 403, 404), Scope.MODEL),
    **dict.fromkeys((400, 413, 422), Scope.REQUEST),
}
LONG = "This model's maximum context length is 8192 tokens, you gave 9000"
PER_MINUTE = "Rate limit reached on tokens per minute. Visit billing to learn more. Please try again in 6ms."
QUOTA = "You exceeded your current quota, please check your plan and billing details."
WORDS = [
    (400, LONG, None, (Scope.REQUEST, True, None)),
    (400, "prompt is too long: 9000 tokens > 8192 maximum", None, (Scope.REQUEST, True, None)),
    (400, "The prompt triggers Azure OpenAI's content management policy", None, (Scope.REQUEST, True, None)),
    (400, "Output blocked by content filtering policy", None, (Scope.REQUEST, True, None)),
    (403, "Your chosen model requires moderation and your input was flagged", None, (Scope.REQUEST, True, None)),
    (429, "Request too large for m on tokens per min: Limit 10000, Requested 12000", None, (Scope.REQUEST, True, None)),
    (429, QUOTA, "insufficient_quota", (Scope.MODEL, False, None)),
    (429, QUOTA, None, (Scope.MODEL, False, None)),
    (429, "Your credit balance is too low to access the API", None, (Scope.MODEL, False, None)),
    (429, f"RESOURCE_EXHAUSTED: {QUOTA}", None, (Scope.PASSING, False, None)),
    (429, f'{QUOTA} {{"retryDelay": "23s"}}', None, (Scope.PASSING, False, 23.0)),
    (429, PER_MINUTE, None, (Scope.PASSING, False, None)),
    (400, "cannot parse 'Should there be a rate limit on 429 things?'", None, (Scope.REQUEST, False, None)),
]
"""Providers say with one status what means different things: its status, message and code; whom it concerns, whether the prompt is to blame,
and how long to wait."""


class TestFaults:
    def test_a_status_says_whom_the_failure_concerns(self, way: Setting) -> None:
        found = failures([Fault("status", status=status, message="busy") for status in STATUSES], **way)
        assert {status: one.scope for status, one in zip(STATUSES, found, strict=True)} == STATUSES
        assert [one.message for one in found] == [f"m: HTTP {status}: busy" for status in STATUSES]
        assert [status for status, one in zip(STATUSES, found, strict=True) if one.rate_limited] == [429]
        assert not any(one.of_prompt or one.bill for one in found)

    def test_the_words_of_a_refusal_say_more_than_its_status(self, way: Setting) -> None:
        found = failures([Fault("status", status=status, message=said, code=code) for status, said, code, _ in WORDS], **way)
        told = [(one.scope, one.of_prompt, one.retry_after) for one in found]
        assert told == [wanted for *_, wanted in WORDS]
        assert found[0].message == f"m: the prompt is too long for the model (HTTP 400): {LONG}"

    def test_retry_after_arrives(self, way: Setting) -> None:
        date = email.utils.formatdate(time.time() + 100, usegmt=True)
        asked = [(429, "7"), (429, "7.5"), (503, "7"), (429, date)]
        found = failures([Fault("status", status=status, retry_after=seconds) for status, seconds in asked], **way)
        *seconds, until = [one.retry_after for one in found]
        assert seconds == [7, 7.5, 7]
        assert 60 < (until or 0) <= 101

    def test_a_broken_answer_may_pass(self, way: Setting) -> None:
        found = failures([Fault("reset"), Fault("truncated"), Fault("wrong_type")], **way)
        assert {(one.scope, one.rate_limited) for one in found} == {(Scope.PASSING, False)}
        assert found[0].message.startswith("m: connection lost")
        assert all(one.message.startswith("m: unreadable answer: ") for one in found[1:])

    def test_silence_ends_at_the_timeout(self, way: Setting) -> None:
        (error,) = failures([Fault("hang")], **way, timeout=0.3)
        assert (error.scope, error.message) == (Scope.PASSING, "m: no answer within 0.3 s")

    def test_nobody_listening_may_pass(self, way: Setting) -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            address = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
            (error,) = send(requests(model(None, **way, api_base=address)))
        assert isinstance(error, CallError)
        assert error.scope is Scope.PASSING
        assert error.message.startswith(f"m: connection lost or refused ({address}): ")
        assert "Connect call failed" in error.message

    def test_a_usage_that_a_refusal_states_is_its_bill(self, way: Setting) -> None:
        """It was not read: a refused call counted as free, and one that the server broke off with what it may have cost at most."""
        error = {"message": "no luck", "type": "fault", "code": "fault"}
        usage = {"usage": {"prompt_tokens": 1000, "completion_tokens": 7, "total_tokens": 1007, "cost": 0.25}}
        bodies = [json.dumps(body).encode() for body in ({"error": {**error, **usage}}, {"error": error, **usage})]
        found = failures([Fault("status", status=status, body=body) for status in (400, 429, 500) for body in bodies], **way)
        for one in found:
            assert one.bill is not None
            assert (one.bill.prompt_tokens, one.bill.completion_tokens, one.bill.cost_usd) == (1000, 7, 0.25)


class TestConnecting:
    def test_a_client_that_only_says_connection_error_is_reported_with_its_cause_and_the_address_without_secrets(self) -> None:
        """A port that does not exist was an "unreadable answer: Connection error." that named no address."""
        error = Exception("litellm.InternalServerError: InternalServerError: OpenAIException - Connection error.")
        error.__cause__ = ValueError("Port out of range 0-65535")
        found = call_error(model(None, api_base="http://me:hush@h:8000/v1"), error)
        assert found.message == "m: no connection (http://[...]@h:8000/v1): Port out of range 0-65535"
        assert (found.scope, found.reached) == (Scope.PASSING, False)

    @pytest.mark.parametrize("name", ["direct", "litellm"])
    def test_a_server_that_takes_no_connection_is_not_waited_for_as_long_as_an_answer(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in ("litellm_transport", "direct_transport"):
            monkeypatch.setattr(f"resources.gateway.{module}.CONNECT_TIMEOUT_S", 0.3)
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            fillers = [socket.socket() for _ in range(4)]
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(deaf.getsockname())
            address = f"http://127.0.0.1:{deaf.getsockname()[1]}/v1"
            (error,) = send(requests(model(None, **WAYS[name], api_base=address, timeout=300)))
            for filler in fillers:
                filler.close()
        assert f"m: no connection in time ({address})" in str(error)


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
    def test_a_self_signed_server_is_refused_and_never_gets_the_key(self, way: Setting, self_signed: Path) -> None:
        with FakeLLM(certificate=self_signed) as server:
            (error,) = send(requests(model(server, **way)))
        assert isinstance(error, CallError)
        assert "certificate is not trusted" in error.message
        assert error.scope is Scope.MODEL
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

    def test_a_schema_and_room_for_a_long_answer_are_sent_to_a_server_of_ones_own(self, way: Setting) -> None:
        with FakeLLM(reply=lambda call: "<think>60 or so</think>[60, 40]") as server:
            asked = requests(model(server, **way), response_schema=self.SCHEMA)
            for own in (256, 2048, None):
                asked += requests(model(server, **way, max_tokens=own), answer_tokens=1256)
            first, *_ = replies(asked)
        rooms = [call.body.get("max_tokens") for call in server.calls if "response_format" not in call.body]
        assert sorted(rooms, key=str) == [1256, 2048, None]
        (form,) = [call.body["response_format"] for call in server.calls if "response_format" in call.body]
        assert form["json_schema"] == {"name": "answer", "strict": True, "schema": json.loads(self.SCHEMA)}
        # Thinking in front of the answer is kept apart.
        assert (first.text, first.reasoning, first.fingerprint) == ("[60, 40]", "60 or so", "fp_fake")

    def test_a_hosted_model_gets_a_schema_if_litellm_knows_that_it_takes_one_and_else_one_line_says_so(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        transport, litellm = LitellmTransport({}), load_litellm()
        sent = {}
        for name in ("openai/gpt-4.1-mini", "openai/gpt-3.5-turbo-instruct"):
            spec = ModelSpec(name=name, model=name)
            for request in requests(spec, 2, response_schema=self.SCHEMA):
                sent[name] = "response_format" in transport._build_arguments(litellm, request)
        assert sent == {"openai/gpt-4.1-mini": True, "openai/gpt-3.5-turbo-instruct": False}
        assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["openai/gpt-3.5-turbo-instruct"]

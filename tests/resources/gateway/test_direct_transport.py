"""Directly and through litellm the same is sent and read, each failure means the same, and nothing that a server says is taken for granted."""

from __future__ import annotations

import email.utils
import json
import socket
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.models import ModelSpec, load_models
from dtef_pipeline.asking.request import Message, Request
from dtef_pipeline.errors import ConfigError
from resources.gateway.direct_transport import DirectTransport, find_proxy, is_direct, parse_object
from resources.gateway.litellm_module import load_litellm
from resources.gateway.litellm_transport import LitellmTransport, call_error
from resources.gateway.prices import NO_BILL
from resources.gateway.queues import find_provider
from resources.gateway.transport import CallError, Reply, Scope, Scrubber, build_reply, extract_message
from resources.responses.store import ResponseStore
from tests.conftest import ROOT
from tests.fake_llm_server import FakeLLM, Fault
from tests.resources.gateway.gateway_setup import KEY, failures, gateway, met, model, replies, requests, send

SCHEMA = '{"type": "object", "properties": {"distribution": {"type": "array"}}}'
TALK = (
    Message("system", "be brief"),
    Message("user", "who?"),
    Message("assistant", "me"),
    Message("tool", "42"),
    Message("user", "so?"),
)


def sent_requests(server: FakeLLM, transport: str) -> list[Request]:
    every = {
        "temperature": 0.7,
        "top_p": 0.9,
        "seed": 7,
        "reasoning_effort": "low",
        "presence_penalty": 0.5,
        "frequency_penalty": -0.5,
    }
    settings: list[dict[str, Any]] = [
        {},
        {"temperature": None, "max_tokens": None},
        every,
        {"model": "openai/Qwen/Qwen3-8B-Instruct", "api_key_env": None},
        {"model": "openai/gpt-oss-120b", "api_base": server.base_url + "/"},
        {"model": "openai/gpt-4o-mini"},
    ]
    specs = [model(server, transport=transport, **given) for given in settings]
    asked = [request for spec in specs for request in requests(spec)]
    asked += requests(specs[0], response_schema=SCHEMA, answer_tokens=999)
    asked.append(Request("p", None, "no system text: “naïve” \u2028 漢字", specs[0], 0, "base"))
    asked.append(Request.build_request(TALK, specs[0], 0, "base"))
    return asked


def test_both_send_the_same_to_the_same_place_with_the_same_key() -> None:
    sent = []
    for transport in ("direct", "litellm"):
        with FakeLLM() as server:
            replies(sent_requests(server, transport))
        sent.append(sorted((json.dumps(call.body, sort_keys=True), call.key) for call in server.calls))
        if transport == "direct":
            assert {call.headers["user-agent"] for call in server.calls} == {"dtef-pipeline"}
    assert sent[0] == sent[1]


def answer(**changed: Any) -> bytes:
    message = {"role": "assistant", "content": "[60, 40]"} | changed.pop("message", {})
    choice = {"index": 0, "finish_reason": "stop", "message": message} | changed.pop("choice", {})
    usage = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}
    base = {"id": "x", "object": "chat.completion", "created": 1, "model": "served", "choices": [choice], "usage": usage}
    return json.dumps(base | changed).encode()


def bodies(sent: list[bytes]) -> list[Fault]:
    return [Fault("body", body=body) for body in sent]


ANSWERS = [
    answer(),
    answer(system_fingerprint="fp_1"),
    answer(message={"content": "<think>a\nb</think>\n[60, 40]"}),
    answer(message={"content": "<thinking>hm</thinking>[60, 40]"}),
    answer(message={"content": " <think>not in front</think>[60, 40]"}),
    answer(message={"content": "[60, 40]", "reasoning_content": "because"}),
    answer(message={"content": "<think>kept</think>[60, 40]", "reasoning": "because"}),
    answer(message={"content": "", "reasoning_content": None}),
    answer(message={"content": None, "refusal": "I will not"}),
    answer(message={"content": None}, choice={"finish_reason": "length"}),
    answer(message={"content": None}, choice={"finish_reason": "SAFETY"}),
    answer(choice={"finish_reason": "eos_token"}),
    answer(choice={"finish_reason": "MAX_TOKENS"}),
    answer(choice={"finish_reason": None, "logprobs": None}, prompt_logprobs=None, service_tier=None),
    answer(usage={"prompt_tokens": 10.0, "completion_tokens": 4, "total_tokens": 14}),
    answer(usage={"prompt_tokens": "10", "completion_tokens": "4", "total_tokens": "14"}),
]


def test_both_read_the_same() -> None:
    prices = {"input_price": 2, "output_price": 10}
    directly, by_litellm = (met(bodies(ANSWERS), transport=way, **prices) for way in ("direct", "litellm"))
    assert directly == by_litellm
    assert all(isinstance(one, Reply) and one.bill.cost_usd == pytest.approx(60e-6) for one in directly)


OF_OPENAI = ["gpt-5", "gpt-5-mini", "o1", "o3-mini", "azure/gpt-5.1", "openai/gpt-5", "openai/o3", "ft:gpt-5-mini:me::1"]
OF_OTHERS = ["gpt-4o", "m", "gpt-oss-20b", "openai/gpt-oss-20b", "olmo-2", "Qwen/o1-open", "ft:gpt-4.1-mini:me::1"]


def test_a_model_whose_parameters_litellm_translates_is_left_to_it() -> None:
    """It would send `max_completion_tokens` for `max_tokens`, and no temperature."""
    litellm, given = load_litellm(), {"temperature": 0.5, "max_tokens": 9}
    for name in OF_OPENAI + OF_OTHERS:
        spec = ModelSpec(name="m", model=f"openai/{name}", api_base="http://h/v1")
        mapped = litellm.OpenAIConfig().map_openai_params(dict(given), {}, name, drop_params=True)
        assert is_direct(spec) == (mapped == given) == (name in OF_OTHERS), name


class TestSwitch:
    def test_each_way_is_taken_where_it_belongs(self) -> None:
        assert is_direct(model(None, api_base="http://h/v1"))
        assert not is_direct(model(None, api_base="http://h/v1", transport="litellm"))
        assert is_direct(model(None, model="openai/gpt-5", api_base="http://h/v1", transport="direct"))
        assert not is_direct(model(None))
        for name in ("hosted_vllm/m", "openai/responses/gpt-4.1"):
            assert not is_direct(model(None, model=name, api_base="http://h/v1"))
        # A model of one's own that is called as one of OpenAI's gets its parameters as they are.
        for name in ("my-gpt-5-finetune", "Qwen/gpt-5-distilled", "gpt-4-and-gpt-5-merged", "Qwen/o1"):
            assert is_direct(model(None, model=f"openai/{name}", api_base="http://h/v1"))

    @pytest.mark.parametrize("settings", ["model: openai/m", "model: ollama/m, api_base: http://h/v1"])
    def test_a_model_of_a_provider_cannot_be_asked_directly(self, settings: str) -> None:
        with pytest.raises(ConfigError, match=r"transport: direct is for a model openai/\.\.\. with an api_base"):
            load_models(f"models:\n  m: {{{settings}, transport: direct}}\n")

    def test_how_a_model_is_asked_is_no_part_of_what_was_bought(self) -> None:
        ways = [model(None, api_base="http://h/v1", transport=way) for way in (None, "direct", "litellm")]
        assert len({request.key for way in ways for request in requests(way)}) == 1

    def test_neither_a_replay_nor_what_is_asked_directly_nor_a_price_of_the_file_imports_litellm(self) -> None:
        run = """
            import sys, tempfile
            from resources.gateway import Gateway
            from resources.gateway.prices import price
            from resources.responses.store import ResponseStore
            from tests.fake_llm_server import FakeLLM
            from dtef_pipeline.asking.models import ModelSpec
            from dtef_pipeline.asking.request import Request
            with FakeLLM() as server, tempfile.TemporaryDirectory() as folder:
                spec = ModelSpec(name="m", model="openai/m", api_base=server.base_url, input_price=1, output_price=1)
                price(spec)
                asked = [Request(str(number), None, f"question {number}", spec, 0, "base") for number in range(5)]
                with ResponseStore(folder + "/r.sqlite") as store:
                    assert Gateway(store).answer(asked).failures == {}
                    assert Gateway(store, environ={}).answer(asked).replayed == 5
            print(sorted({"litellm", "openai"} & set(sys.modules)))
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(run)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.stdout == "[]\n", done.stderr


class TestAddresses:
    def test_a_password_in_the_address_takes_the_place_of_the_key_and_a_query_stays_at_its_end(self, server: FakeLLM) -> None:
        address = server.base_url.replace("//", "//me:pass@")
        replies(requests(model(server, api_base=f"{address}?version=2")))
        (call,) = server.calls
        assert (call.headers["authorization"], call.path) == ("Basic bWU6cGFzcw==", "/v1/chat/completions?version=2")

    @pytest.mark.parametrize(("variable", "scheme"), [("http_proxy", "http://"), ("all_proxy", "")])
    def test_the_proxy_of_the_environment_is_used(self, scheme: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
        find_proxy.cache_clear()
        with FakeLLM() as proxy:
            monkeypatch.setenv(variable, proxy.base_url.removesuffix("/v1").replace("http://", scheme))
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            assert replies(requests(model(None, api_base="http://models.invalid:9/v1")))[0].text
            assert find_proxy("http://127.0.0.1:9/v1") is None
        find_proxy.cache_clear()

    def test_a_provider_is_named_with_the_host_of_its_own_and_without_a_password(self) -> None:
        named = {
            find_provider(model(None, model=name, api_base=base))
            for name, base in [("openai/a", "http://me:pass@h:8000/v1"), ("openai/b", "http://h:8000/v1/"), ("openai/c", None)]
        }
        assert named == {"openai/h:8000", "openai"}


KEYS = st.sampled_from(
    ["choices", "message", "content", "finish_reason", "usage", "prompt_tokens", "error", "refusal", "reasoning", "x"]
)
NO_ANSWERS: list[tuple[bytes, str]] = [
    (b"", "unreadable answer: it is empty"),
    (b"<html>gateway</html>", "unreadable answer: <html>gateway</html>"),
    (b"[1]", "unreadable answer: [1]"),
    (b"[" * 100_000, "unreadable answer: [[["),
    (b'{"error": {"message": "out of memory"}}', "unreadable answer: out of memory"),
    (answer(error="out of memory"), "unreadable answer: out of memory"),
    (b'{"error": {"message": "slow down", "code": 429}}', "HTTP 429: slow down"),
    (b'{"error": {"message": "overloaded", "code": 503}}', "HTTP 503: overloaded"),
    (answer(choices=None), "an answer without choices"),
    (answer(choices=[]), "an answer without choices"),
    (answer(choices={"a": 1}), "unreadable answer: a choice of"),
    (answer(choices=[None]), "unreadable answer: a choice of"),
    (answer(choices=[{"message": "hello"}]), "unreadable answer: a choice of"),
    (answer(message={"content": 7}), "unreadable answer: a choice of"),
    (answer(choices=[{"message": {"content": None}, "finish_reason": "error"}]), "an answer without content"),
]
NO_USAGES: list[Any] = [
    *(None, {}, [], {"prompt_tokens": -1}, {"prompt_tokens": True}),
    *({"prompt_tokens": text, "completion_tokens": 1} for text in ("", "nine", "-9", "9.5", "٩", "9" * 5000)),
]


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=4)


class TestHostileServers:
    def test_what_is_no_answer_may_pass_and_is_quoted(self) -> None:
        found = failures(bodies([body for body, _ in NO_ANSWERS]))
        for (_, said), error in zip(NO_ANSWERS, found, strict=True):
            assert error.scope is Scope.PASSING
            assert error.message.startswith(f"m: {said}")
        assert [error.rate_limited for error in found].count(True) == 1

    def test_an_error_that_comes_as_a_success_means_what_its_code_says(self) -> None:
        found = failures(bodies([json.dumps({"error": {"message": "no", "code": code}}).encode() for code in (401, 400)]))
        assert [error.scope for error in found] == [Scope.MODEL, Scope.REQUEST]

    def test_tokens_that_are_no_counts_are_unknown_and_so_is_the_cost(self) -> None:
        found = met(bodies([answer(usage=usage) for usage in NO_USAGES]), input_price=1, output_price=1)
        assert [isinstance(one, Reply) and (one.text, one.bill.prompt_tokens, one.bill.cost_usd) for one in found] == [
            ("[60, 40]", None, None)
        ] * len(NO_USAGES)

    def test_a_key_that_a_server_repeats_is_taken_out_wherever_it_stands(self) -> None:
        """A message was shortened before keys were taken out of it, so that most of one could stay."""
        faults = [Fault("status", status=400, message=f"{'x' * before} {KEY} is no good") for before in range(270, 520, 7)]
        scrub = Scrubber({"M_KEY": KEY}, [model(None)])
        assert not [error for error in failures(faults) if KEY[:5] in scrub(error.message)]

    def test_a_nest_of_brackets_as_an_error_is_an_error_like_others(self) -> None:
        """It ended the whole run."""
        assert extract_message('{"a":' * 60_000) is None

    def test_text_in_parts_is_put_together(self) -> None:
        parts = [{"type": "text", "text": "[60,"}, {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": " 40]"}]
        (reply,) = met(bodies([answer(message={"content": parts})]))
        assert isinstance(reply, Reply)
        assert reply.text == "[60, 40]"

    @given(
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), _nested, max_leaves=12)
        | st.binary(max_size=40)
    )
    def test_whatever_a_server_sends_is_an_answer_or_a_failed_call(self, sent: Any) -> None:
        spec = model(None, api_base="http://h/v1")
        (request,) = requests(spec)
        content = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        with suppress(CallError):
            assert isinstance(build_reply(request, parse_object(spec, content), NO_BILL).text, str)


def test_connections_are_kept_and_used_again(store: ResponseStore, server: FakeLLM) -> None:
    asked = gateway(store).answer(requests(model(server, max_concurrency=4), 60))
    assert (asked.n_sent, asked.failures) == (60, {})
    assert 1 <= server.connections <= 8


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
        for transport in (DirectTransport, LitellmTransport):
            assert transport({"M_KEY": KEY}).problem(model(None)) is None
            problem = transport({"M_KEY": KEY, "SSL_CERT_FILE": "/nowhere/ca.pem"}).problem(model(None))
            assert problem == "SSL_CERT_FILE names /nowhere/ca.pem, and there is no such file"

    def test_nothing_in_the_code_switches_checks_off(self) -> None:
        sources = [path for package in ("dtef_pipeline", "resources", "assets") for path in (ROOT / package).rglob("*.py")]
        switches = ("ssl_verify", "verify=False", "CERT_NONE", "_create_unverified_context")
        assert [path.name for path in sources if any(switch in path.read_text("utf-8") for switch in switches)] == []


class TestAnswers:
    def test_a_schema_and_room_for_a_long_answer_are_sent_to_a_server_of_ones_own(self, way: Setting) -> None:
        with FakeLLM(reply=lambda call: "<think>60 or so</think>[60, 40]") as server:
            asked = requests(model(server, **way), response_schema=SCHEMA)
            for own in (256, 2048, None):
                asked += requests(model(server, **way, max_tokens=own), answer_tokens=1256)
            first, *_ = replies(asked)
        rooms = [call.body.get("max_tokens") for call in server.calls if "response_format" not in call.body]
        assert sorted(rooms, key=str) == [1256, 2048, None]
        (form,) = [call.body["response_format"] for call in server.calls if "response_format" in call.body]
        assert form["json_schema"] == {"name": "answer", "strict": True, "schema": json.loads(SCHEMA)}
        # Thinking in front of the answer is kept apart.
        assert (first.text, first.reasoning, first.fingerprint) == ("[60, 40]", "60 or so", "fp_fake")

    def test_a_hosted_model_gets_a_schema_if_litellm_knows_that_it_takes_one_and_else_one_line_says_so(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        transport, litellm = LitellmTransport({}), load_litellm()
        sent = {}
        for name in ("openai/gpt-4.1-mini", "openai/gpt-3.5-turbo-instruct"):
            spec = ModelSpec(name=name, model=name)
            for request in requests(spec, 2, response_schema=SCHEMA):
                sent[name] = "response_format" in transport._build_arguments(litellm, request)
        assert sent == {"openai/gpt-4.1-mini": True, "openai/gpt-3.5-turbo-instruct": False}
        assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["openai/gpt-3.5-turbo-instruct"]

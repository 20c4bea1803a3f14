"""The direct transport sends what litellm would send, reads what litellm would read, and takes nothing that a server says for granted."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.models import ModelSpec, load_models
from dtef_pipeline.asking.request import Message, Request
from dtef_pipeline.errors import ConfigError
from resources.gateway.direct_client import as_object, proxy_for
from resources.gateway.direct_transport import DirectTransport, is_direct
from resources.gateway.http_errors import message_in
from resources.gateway.litellm_module import load_litellm
from resources.gateway.litellm_transport import LitellmTransport
from resources.gateway.slots import provider_of
from resources.gateway.transport import CallError, Reply, Scope, Scrubber, Transport
from resources.responses.store import ResponseStore
from tests.conftest import ROOT
from tests.fake_llm_server import FakeLLM, Fault, always
from tests.resources.gateway.gateway_setup import KEY, gateway, model, requests

SCHEMA = '{"type": "object", "properties": {"distribution": {"type": "array"}}}'
TALK = (
    Message("system", "be brief"),
    Message("user", "who?"),
    Message("assistant", "me"),
    Message("tool", "42"),
    Message("user", "so?"),
)


def send(transport: Transport, asked: list[Request]) -> list[Reply]:
    """One attempt of each, one after the other."""

    async def all_of_them() -> list[Reply]:
        await transport.open()
        try:
            return [await transport.ask(request) for request in asked]
        finally:
            await transport.close()

    return asyncio.run(all_of_them())


def both(asked: list[Request]) -> tuple[list[Reply], list[Reply]]:
    return send(DirectTransport({"M_KEY": KEY}), asked), send(LitellmTransport({"M_KEY": KEY}), asked)


def sent_requests(server: FakeLLM) -> list[Request]:
    settings: list[dict[str, Any]] = [
        {},
        {"temperature": None, "max_tokens": None},
        {
            "temperature": 0.7,
            "top_p": 0.9,
            "seed": 7,
            "reasoning_effort": "low",
            "presence_penalty": 0.5,
            "frequency_penalty": -0.5,
        },
        {"model": "openai/Qwen/Qwen3-8B-Instruct", "api_key_env": None},
        {"model": "openai/gpt-oss-120b", "api_base": server.base_url + "/"},
        {"model": "openai/gpt-4o-mini"},
    ]
    asked = [request for given in settings for request in requests(model(server, **given))]
    asked += requests(model(server), response_schema=SCHEMA, answer_tokens=999)
    asked.append(Request("p", None, "no system text: “naïve” \u2028 漢字", model(server), 0, "base"))
    asked.append(Request.of_messages(TALK, model(server), 0, "base"))
    return asked


def test_both_send_the_same_to_the_same_place_with_the_same_key() -> None:
    with FakeLLM() as server:
        asked = sent_requests(server)
        both(asked)
    directly, by_litellm = server.calls[: len(asked)], server.calls[len(asked) :]
    assert [call.body for call in directly] == [call.body for call in by_litellm]
    assert [call.key for call in directly] == [call.key for call in by_litellm]
    assert {call.headers["user-agent"] for call in directly} == {"dtef-pipeline"}


def answer(**changed: Any) -> bytes:
    message = {"role": "assistant", "content": "[60, 40]"} | changed.pop("message", {})
    choice = {"index": 0, "finish_reason": "stop", "message": message} | changed.pop("choice", {})
    usage = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}
    base = {"id": "x", "object": "chat.completion", "created": 1, "model": "served", "choices": [choice], "usage": usage}
    return json.dumps(base | changed).encode()


@pytest.mark.parametrize(
    "body",
    [
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
        answer(message={"content": None}, choice={"finish_reason": "content_filter"}),
        answer(choice={"finish_reason": "length"}),
        answer(choice={"finish_reason": "eos_token"}),
        answer(choice={"finish_reason": "stop_sequence"}),
        answer(choice={"finish_reason": "max_tokens"}),
        answer(choice={"finish_reason": "MAX_TOKENS"}),
        answer(message={"content": None}, choice={"finish_reason": "SAFETY"}),
        answer(usage={"prompt_tokens": 10.0, "completion_tokens": 4, "total_tokens": 14}),
        answer(usage={"prompt_tokens": "10", "completion_tokens": "4", "total_tokens": "14"}),
        answer(choice={"finish_reason": None}),
        answer(choice={"logprobs": None, "stop_reason": None}, prompt_logprobs=None, service_tier=None),
    ],
)
def test_both_read_the_same(body: bytes) -> None:
    with FakeLLM(fault=always(Fault("body", body=body))) as server:
        (directly,), (by_litellm,) = both(requests(model(server, input_price=2, output_price=10)))
    assert directly.cost_usd == pytest.approx(60e-6)
    assert directly == by_litellm


OF_OPENAI = [
    "gpt-5",
    "gpt-5-mini",
    "o1",
    "o3-mini",
    "o4-mini",
    "azure/gpt-5.1",
    "openai/gpt-5",
    "openai/o3",
    "ft:gpt-5-mini:me::1",
]
OF_OTHERS = ["gpt-4o", "m", "gpt-oss-20b", "openai/gpt-oss-20b", "olmo-2", "Qwen/o1-open", "ft:gpt-4.1-mini:me::1"]


@pytest.mark.parametrize("name", OF_OPENAI + OF_OTHERS)
def test_a_model_whose_parameters_litellm_translates_is_left_to_it(name: str) -> None:
    """It would send `max_completion_tokens` for `max_tokens`, and no temperature."""
    litellm, spec = load_litellm(), ModelSpec(name="m", model=f"openai/{name}", api_base="http://h/v1")
    given = {"temperature": 0.5, "max_tokens": 9}
    mapped = litellm.OpenAIConfig().map_openai_params(dict(given), {}, name, drop_params=True)
    assert is_direct(spec) == (mapped == given) == (name in OF_OTHERS)


@pytest.mark.parametrize("name", ["my-gpt-5-finetune", "Qwen/gpt-5-distilled", "gpt-4-and-gpt-5-merged", "Qwen/o1"])
def test_a_model_of_ones_own_with_such_a_name_gets_its_parameters_as_they_are(name: str) -> None:
    """litellm took it for OpenAI's, and it was asked without its temperature."""
    with FakeLLM() as server:
        spec = model(server, model=f"openai/{name}", temperature=0.5, max_tokens=9)
        assert is_direct(spec)
        send(DirectTransport({"M_KEY": KEY}), requests(spec))
    assert {server.calls[0].body["temperature"], server.calls[0].body["max_tokens"]} == {0.5, 9}


@pytest.mark.parametrize(("name", "warned"), [("gpt-5-mini", True), ("m", False)])
def test_litellm_warns_that_a_server_of_ones_own_is_sent_no_temperature(
    caplog: pytest.LogCaptureFixture, store: ResponseStore, name: str, warned: bool
) -> None:
    with FakeLLM() as server:
        spec = model(server, model=f"openai/{name}", temperature=0.5, transport="litellm")
        asking = gateway(store)
        for sent in requests(spec, 2):
            asking.answer([sent])
    assert ("temperature" not in server.calls[0].body) == warned
    said = [line for line in caplog.messages if "takes no temperature" in line]
    assert len(said) == warned
    assert all(line.endswith("`temperature: null`, or `transport: direct` to send it") for line in said)


def test_what_litellm_asks_at_another_path_of_the_server_is_left_to_it() -> None:
    """`responses/gpt-4.1` was sent as the name of a model."""
    assert not is_direct(model(None, model="openai/responses/gpt-4.1", api_base="http://h/v1"))


class TestSwitch:
    def test_each_way_is_taken_where_it_belongs(self) -> None:
        assert is_direct(model(None, api_base="http://h/v1"))
        assert not is_direct(model(None, api_base="http://h/v1", transport="litellm"))
        assert is_direct(model(None, model="openai/gpt-5", api_base="http://h/v1", transport="direct"))
        assert not is_direct(model(None))
        assert not is_direct(model(None, model="hosted_vllm/m", api_base="http://h/v1"))

    @pytest.mark.parametrize("settings", ["model: openai/m", "model: ollama/m, api_base: http://h/v1"])
    def test_a_model_of_a_provider_cannot_be_asked_directly(self, settings: str) -> None:
        with pytest.raises(ConfigError, match=r"transport: direct is for a model openai/\.\.\. with an api_base"):
            load_models(f"models:\n  m: {{{settings}, transport: direct}}\n")

    def test_how_a_model_is_asked_is_no_part_of_what_was_bought(self) -> None:
        ways = [model(None, api_base="http://h/v1", transport=way) for way in (None, "direct", "litellm")]
        assert len({request.key for way in ways for request in requests(way)}) == 1

    def test_what_is_asked_directly_never_imports_litellm(self) -> None:
        run = """
            import sys, tempfile
            from resources.responses.store import ResponseStore
            from tests.resources.gateway.gateway_setup import gateway, model, requests
            from tests.fake_llm_server import FakeLLM
            with FakeLLM() as server, tempfile.TemporaryDirectory() as folder:
                with ResponseStore(folder + "/r.sqlite") as store:
                    assert gateway(store).answer(requests(model(server), 5)).failures == {}
            print(sorted({"litellm", "openai"} & set(sys.modules)))
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(run)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.stdout == "[]\n", done.stderr


class TestAddresses:
    def test_a_name_and_password_in_the_address_take_the_place_of_the_key(self) -> None:
        with FakeLLM() as server:
            send(DirectTransport({"M_KEY": KEY}), requests(model(server, api_base=server.base_url.replace("//", "//me:pass@"))))
        assert server.calls[0].headers["authorization"] == "Basic bWU6cGFzcw=="

    def test_a_query_in_the_address_stays_at_its_end(self) -> None:
        paths = []
        with FakeLLM(fault=lambda call: paths.append(call.path)) as server:
            send(DirectTransport({"M_KEY": KEY}), requests(model(server, api_base=f"{server.base_url}?version=2")))
        assert paths == ["/v1/chat/completions?version=2"]

    def test_a_provider_is_named_without_the_password_of_its_address(self) -> None:
        assert provider_of(model(None, api_base="http://me:pass@h:8000/v1")) == "openai/h:8000"

    def test_a_file_of_certificates_that_is_not_there_is_a_problem_of_https_alone(self) -> None:
        transport = DirectTransport({"M_KEY": KEY, "SSL_CERT_FILE": "/nowhere/ca.pem"})
        told = "SSL_CERT_FILE names /nowhere/ca.pem, and there is no such file"
        assert transport.problem(model(None, api_base="https://h/v1")) == told
        assert transport.problem(model(None, api_base="http://h/v1")) is None
        with FakeLLM() as server:
            assert send(transport, requests(model(server)))[0].text

    @pytest.mark.parametrize("scheme", ["http://", ""])
    @pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
    def test_the_proxy_of_the_environment_is_used(self, scheme: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
        proxy_for.cache_clear()
        with FakeLLM() as proxy:
            monkeypatch.setenv(variable, proxy.base_url.removesuffix("/v1").replace("http://", scheme))
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            spec = model(None, api_base="http://models.invalid:9/v1")
            assert send(DirectTransport({"M_KEY": KEY}), requests(spec))[0].text
            assert proxy_for("http://127.0.0.1:9/v1") is None
        proxy_for.cache_clear()


KEYS = st.sampled_from(
    ["choices", "message", "content", "finish_reason", "usage", "prompt_tokens", "error", "refusal", "reasoning", "x"]
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=4)


class TestHostileServers:
    @pytest.mark.parametrize(
        ("body", "said"),
        [
            (b"", "unreadable answer: it is empty"),
            (b"<html>gateway</html>", "unreadable answer: <html>gateway</html>"),
            (b"[1]", "unreadable answer: [1]"),
            (b"[" * 100_000, "unreadable answer: [[["),
            (b'{"error": {"message": "out of memory"}}', "unreadable answer: out of memory"),
            (answer(error="out of memory"), "unreadable answer: out of memory"),
            (b'{"error": {"message": "slow down", "code": 429}}', "HTTP 429: slow down"),
            (answer(choices=None), "an answer without choices"),
            (answer(choices=[]), "an answer without choices"),
            (answer(choices={"a": 1}), "unreadable answer: a choice of"),
            (answer(choices=[None]), "unreadable answer: a choice of"),
            (answer(choices=[{"message": "hello"}]), "unreadable answer: a choice of"),
            (answer(message={"content": 7}), "unreadable answer: a choice of"),
            (
                answer(choices=[{"message": {"content": None}, "finish_reason": "error"}]),
                "an answer without content (finish reason error)",
            ),
        ],
    )
    def test_what_is_no_answer_may_pass_and_is_quoted(self, body: bytes, said: str) -> None:
        with FakeLLM(fault=always(Fault("body", body=body))) as server, pytest.raises(CallError) as caught:
            send(DirectTransport({"M_KEY": KEY}), requests(model(server)))
        assert caught.value.scope is Scope.PASSING
        assert caught.value.message.startswith(f"m: {said}")

    @pytest.mark.parametrize(
        "usage",
        [None, {}, [], {"prompt_tokens": -1}, {"prompt_tokens": True}]
        + [{"prompt_tokens": text, "completion_tokens": 1} for text in ("", "nine", "-9", "9.5", "٩", "9" * 5000)],
    )
    def test_tokens_that_are_no_counts_are_unknown_and_so_is_the_cost(self, usage: Any) -> None:
        with FakeLLM(fault=always(Fault("body", body=answer(usage=usage)))) as server:
            (reply,) = send(DirectTransport({"M_KEY": KEY}), requests(model(server, input_price=1, output_price=1)))
        assert (reply.text, reply.prompt_tokens, reply.cost_usd) == ("[60, 40]", None, None)

    @pytest.mark.parametrize(
        ("code", "scope"), [(401, Scope.MODEL), (400, Scope.REQUEST), (503, Scope.PASSING), (429, Scope.PASSING)]
    )
    def test_an_error_that_comes_as_a_success_means_what_its_code_says(self, code: int, scope: Scope) -> None:
        body = json.dumps({"error": {"message": "no", "code": code}}).encode()
        with FakeLLM(fault=always(Fault("body", body=body))) as server, pytest.raises(CallError) as caught:
            send(DirectTransport({"M_KEY": KEY}), requests(model(server)))
        assert (caught.value.scope, caught.value.rate_limited) == (scope, code == 429)

    @pytest.mark.parametrize("before", range(270, 520, 7))
    def test_a_key_that_a_server_repeats_is_taken_out_wherever_it_stands(self, before: int) -> None:
        """A message was shortened before keys were taken out of it, so that most of one could stay."""
        fault = Fault("status", status=400, message=f"{'x' * before} {KEY} is no good")
        with FakeLLM(fault=always(fault)) as server, pytest.raises(CallError) as caught:
            send(DirectTransport({"M_KEY": KEY}), requests(spec := model(server)))
        shown = Scrubber({"M_KEY": KEY}, [spec])(caught.value.message)
        assert KEY[:5] not in shown

    def test_a_nest_of_brackets_as_an_error_is_an_error_like_others(self) -> None:
        """It ended the whole run."""
        assert message_in('{"a":' * 60_000) is None

    def test_text_in_parts_is_put_together(self) -> None:
        parts = [{"type": "text", "text": "[60,"}, {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": " 40]"}]
        with FakeLLM(fault=always(Fault("body", body=answer(message={"content": parts})))) as server:
            (reply,) = send(DirectTransport({"M_KEY": KEY}), requests(model(server)))
        assert reply.text == "[60, 40]"

    @given(
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), _nested, max_leaves=12)
        | st.binary(max_size=40)
    )
    def test_whatever_a_server_sends_is_an_answer_or_a_failed_call(self, sent: Any) -> None:
        spec = model(None, api_base="http://h/v1")
        transport, (request,) = DirectTransport({}), requests(spec)
        content = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        with suppress(CallError):
            assert isinstance(transport._reply(spec, as_object(spec, content), request).text, str)


def test_connections_are_kept_and_used_again(store: ResponseStore) -> None:
    with FakeLLM() as server:
        asked = gateway(store).answer(requests(model(server, max_concurrency=4), 60))
        assert (asked.asked, asked.failures) == (60, {})
        assert 1 <= server.connections <= 8

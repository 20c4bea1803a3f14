"""What a model is asked with is compared with what its provider is sent, before anything is asked."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import EMBEDDER, Message, Request
from dtef_pipeline.errors import GatewayError
from resources.gateway.budget import Accounts, Budget
from resources.gateway.litellm_module import load_litellm
from resources.gateway.model_checks import refuse_early
from resources.gateway.request_settings import (
    build_sent_body,
    describe_altered_settings,
    find_altered_settings,
    refuse_same_sent,
)
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM, completion
from tests.made.responses import response
from tests.resources.gateway.gateway_setup import gateway, model, requests

KEYS = {"OPENAI_API_KEY": "k", "MISTRAL_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
FREE = Accounts(Budget(), {})


def hosted(name: str, **settings: Any) -> ModelSpec:
    spec = ModelSpec(name="m", model=name, **settings)
    return spec.model_copy(update={"name": spec.variant})


@pytest.mark.parametrize(
    ("name", "settings", "altered"),
    [
        ("openai/gpt-4.1", {"reasoning_effort": "low"}, {"reasoning_effort": None}),
        ("openai/gpt-4.1", {"presence_penalty": 0.5, "frequency_penalty": 0.25, "seed": 3, "top_p": 0.9}, {}),
        ("openai/gpt-5.4-mini", {"reasoning_effort": "low"}, {"temperature": None}),
        ("openai/gpt-5.4-mini", {"reasoning_effort": "none"}, {}),
        ("mistral/mistral-small-2603", {"reasoning_effort": "low"}, {"reasoning_effort": "reasoning_effort: high"}),
        ("mistral/mistral-small-2603", {"reasoning_effort": "high", "seed": 3}, {}),
        ("mistral/mistral-small-2603", {"presence_penalty": 0.5}, {"presence_penalty": None}),
        ("deepseek/deepseek-v4-flash", {"reasoning_effort": "low"}, {"reasoning_effort": "thinking: {type: enabled}"}),
        ("deepseek/deepseek-v4-flash", {"reasoning_effort": "none"}, {}),
        ("anthropic/claude-haiku-4-5", {"seed": 3, "frequency_penalty": 1}, {"seed": None, "frequency_penalty": None}),
        ("xai/grok-4.20-0309-non-reasoning", {"reasoning_effort": "high"}, {"reasoning_effort": None}),
        ("openrouter/openai/gpt-4.1", {"reasoning_effort": "low", "provider": "azure"}, {}),
    ],
)
def test_every_setting_is_compared_with_what_is_sent(
    name: str, settings: dict[str, Any], altered: dict[str, str | None]
) -> None:
    """Only temperature, top_p and seed were compared, and gpt-4.1 was sent no reasoning effort without a word."""
    assert find_altered_settings(hosted(name, **settings)) == altered


def test_a_line_names_what_is_dropped_and_what_is_sent_in_its_place() -> None:
    dropped, changed = describe_altered_settings(
        [hosted("mistral/mistral-small-2603", presence_penalty=0.5, reasoning_effort="low")]
    )
    assert "takes no presence_penalty" in dropped
    assert "reasoning_effort=low is sent as reasoning_effort: high" in changed


@pytest.mark.parametrize("name", ["openai/gpt-4.1", "mistral/mistral-small-2603", "anthropic/claude-haiku-4-5"])
def test_what_is_compared_is_what_litellm_sends(name: str, server: FakeLLM) -> None:
    spec = hosted(name, temperature=0.25, seed=3, presence_penalty=0.5, reasoning_effort="low")

    async def ask(server: FakeLLM) -> None:
        with suppress(Exception):  # the answer need not be readable
            await load_litellm().acompletion(
                model=name,
                messages=[{"role": "user", "content": "x"}],
                api_base=server.base_url,
                api_key="k",
                drop_params=True,
                max_retries=0,
                **spec.sampling,
            )

    asyncio.run(ask(server))
    sent = {key: value for key, value in server.calls[0].body.items() if key not in ("model", "messages")}
    body = build_sent_body(spec)
    assert {**body, **body.get("extra_body", {})}.items() >= sent.items()


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("openai/gpt-4.1", {"reasoning_effort": "low"}, {"reasoning_effort": "high"}),
        ("openai/gpt-4.1", {}, {"reasoning_effort": "high"}),
        ("mistral/mistral-small-2603", {"reasoning_effort": "low"}, {"reasoning_effort": "high"}),
        ("deepseek/deepseek-v4-flash", {"reasoning_effort": "low"}, {"reasoning_effort": "high"}),
        ("anthropic/claude-haiku-4-5", {"presence_penalty": 0.5}, {}),
    ],
)
def test_two_models_that_send_the_same_are_refused_by_their_names(
    name: str, one: Any, other: Any, store: ResponseStore
) -> None:
    """Both were paid for, and ranked as two."""
    both = [hosted(name, **one), hosted(name, **other)]
    key = next(iter({**one, **other}))
    with pytest.raises(GatewayError, match=f"send the provider the same request.*{key}") as told:
        refuse_early(both, "base", FREE, store, {**KEYS, "DEEPSEEK_API_KEY": "k"})
    assert all(spec.name in str(told.value) for spec in both)


def test_two_models_that_differ_in_what_is_sent_are_asked() -> None:
    for name, efforts in (("mistral/mistral-small-2603", ("none", "high")), ("groq/openai/gpt-oss-20b", ("low", "high"))):
        both = [hosted(name, reasoning_effort=one) for one in efforts]
        refuse_same_sent(both, both)


def test_two_models_whose_responses_are_stored_are_read_though_they_sent_the_same(store: ResponseStore) -> None:
    both = [hosted("openai/gpt-4.1", reasoning_effort=one) for one in ("low", "high")]
    store.add([response(number, model_variant=spec.variant) for number, spec in enumerate(both)])
    refuse_early(both, "base", FREE, store, KEYS)


def test_the_gateway_refuses_two_that_send_the_same_before_it_asks(store: ResponseStore, server: FakeLLM) -> None:
    both = [
        model(server, name=one, model="openai/gpt-5-mini", transport="litellm", temperature=float(one)) for one in ("0", "2")
    ]
    with pytest.raises(GatewayError, match="takes no temperature"):
        gateway(store).answer([one for spec in both for one in requests(spec)])
    assert server.calls == []


def test_an_embedder_is_sent_no_settings(store: ResponseStore, server: FakeLLM) -> None:
    spec = model(server, model="openai/text-embedding-3-small", transport="litellm", max_tokens=None)
    asked = Request.build_request([Message("user", "x")], spec, 0, "base", role=EMBEDDER)
    said: list[str] = []
    gateway(store, tell=said.append).answer([asked])
    assert (said, len(server.calls)) == ([], 1)


def serve_from(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every response of the fake server says that this host served it."""
    monkeypatch.setattr("tests.fake_llm_server.completion", lambda call, text: {**completion(call, text), "provider": host})


class TestHosts:
    @pytest.mark.parametrize("way", ["direct", "litellm"])
    def test_the_host_is_recorded_and_can_be_pinned(
        self, store: ResponseStore, way: str, monkeypatch: pytest.MonkeyPatch, server: FakeLLM
    ) -> None:
        """Hosts of one model differ, and which served was nowhere to be read."""
        serve_from("DeepInfra", monkeypatch)
        spec = model(server, transport=way, provider="deepinfra/fp8")
        asked = requests(spec)
        assert not gateway(store).answer(asked).failures
        assert server.calls[0].body["provider"] == {"order": ["deepinfra/fp8"], "allow_fallbacks": False}
        assert store.responses([asked[0].key])["host"].to_pylist() == ["DeepInfra"]

    def test_an_openrouter_host_is_part_of_the_variant_and_changes_no_other(self) -> None:
        pinned = ModelSpec(name="m", model="openrouter/a/b", provider="deepinfra")
        assert pinned.variant == "openrouter/a/b[max_tokens=256,provider=deepinfra,temperature=0]"
        assert ModelSpec(name="m", model="openrouter/a/b").variant == "openrouter/a/b[max_tokens=256,temperature=0]"

    @pytest.mark.parametrize("settings", [{"model": "openai/gpt-4.1"}, {"model": "openrouter/a/b", "provider": "a b"}])
    def test_a_host_that_cannot_be_pinned_is_refused(self, settings: dict[str, str]) -> None:
        with pytest.raises(ValueError, match="provider"):
            ModelSpec.model_validate({"name": "m", "provider": "azure", **settings})

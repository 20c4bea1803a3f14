"""What is known before anything is asked: keys, prices, settings that a provider is not sent; and usage by the role of a model."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import EMBEDDER, Message, Request
from dtef_pipeline.errors import GatewayError, UnpricedModels
from resources.gateway import Gateway, model_checks
from resources.gateway.budget import Accounts, Usage
from resources.gateway.litellm_module import load_litellm
from resources.gateway.model_checks import (
    build_sent_body,
    describe_altered_settings,
    find_altered_settings,
    find_quick_problem,
    refuse_early,
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


TALK = (
    Message("system", "You play cards."),
    Message("user", "Your move?"),
    Message("assistant", "Pass."),
    Message("tool", "The other one bids."),
    Message("user", "And now?"),
)


def talk(spec: ModelSpec, *messages: Message, role: str = "candidate") -> Request:
    return Request.build_request(messages or TALK, spec, 0, "base", role=role)


def test_what_models_used_is_split_by_their_role(store: ResponseStore, server: FakeLLM) -> None:
    """The judge of an answer costs too, and is not what the candidate costs."""
    spec = model(server, input_price=1.0, output_price=1.0)
    asking = gateway(store)
    asking.answer(requests(spec, 3))
    judging = talk(spec, Message("user", "Is this answer right?"), role="judge")
    asking.answer([judging])
    candidate, judge = asking.usage_by_role["candidate"], asking.usage_by_role["judge"]
    assert (candidate.calls, judge.calls) == (3, 1)
    assert (candidate.tokens, judge.tokens) == (3 * 8, 8)
    assert candidate.cost_usd == pytest.approx(3 * judge.cost_usd)
    assert candidate.cost_usd + judge.cost_usd == pytest.approx(asking.accounts.run.spent.cost_usd)
    assert asking.usage_by_role.keys() == {"candidate", "judge"}
    assert store.responses([judging.key])["role"].to_pylist() == ["judge"]
    assert [(row["role"], row["responses"]) for row in store.summary().to_pylist()] == [("candidate", 3), ("judge", 1)]


def test_an_answer_of_unknown_price_is_not_counted_as_free(store: ResponseStore, server: FakeLLM) -> None:
    asking = gateway(store)
    asking.answer(requests(model(server), 2))
    assert asking.usage_by_role["candidate"] == Usage(calls=2, tokens=16, cost_usd=0.0, unpriced=2)


def test_the_whole_conversation_is_reserved_for() -> None:
    """Only a system and a user text were estimated: of a long conversation a budget would have seen nothing."""
    accounts = Accounts(Budget(max_tokens=10_000), {})
    short, long = (
        accounts.estimate(talk(ModelSpec(name="m", model="openai/m"), *TALK[:end]), None).tokens for end in (2, len(TALK))
    )
    spoken = sum(len(message.text.split()) for message in TALK[2:])
    assert long >= short + spoken


def test_the_local_model_says_that_it_holds_no_conversations(store: ResponseStore) -> None:
    spec = ModelSpec(name="local/smollm2-135m", model="local/smollm2-135m")
    pytest.importorskip("xllamacpp", reason="needs the extra `local`")
    request = Request("p", None, "", spec, 0, "base", ("Yes", "No"), messages=TALK)
    (failure,) = Gateway(store, environ={}).answer([request]).failures.values()
    assert "got 2 in messages of user, assistant, tool, user" in failure.message


def test_a_missing_key_is_reported_for_a_model_that_was_never_asked_in_the_snapshot(store: ResponseStore) -> None:
    spec = model(None)
    with pytest.raises(GatewayError, match="these models cannot be asked: m: environment variable M_KEY is not set"):
        refuse_early([spec], "base", FREE, store, {})
    refuse_early([spec], "base", FREE, store, {"M_KEY": "k"})


def test_stored_responses_may_be_all_that_is_wanted_so_no_key_is_asked_for(store: ResponseStore) -> None:
    spec = model(None)
    store.add([response(1, model_variant=spec.variant)])
    refuse_early([spec], "base", FREE, store, {})
    with pytest.raises(GatewayError, match="stored responses in snapshot base"):
        refuse_early([spec], "2026-01-31", FREE, store, {})


def test_a_model_with_stored_responses_alone_is_refused_with_their_snapshots(store: ResponseStore) -> None:
    spec = ModelSpec(name="stored/amber", model="stored/amber")
    store.add([response(1, model_variant=spec.variant)])
    with pytest.raises(GatewayError, match=r"stored/amber.*stored responses, in snapshot base"):
        gateway(store).answer(requests(spec, 1))


def test_a_price_that_is_in_no_list_is_reported_where_the_list_is_looked_at(store: ResponseStore) -> None:
    """A litellm string of a model that nobody knows was taken with a limit in dollars, and its run failed."""
    in_dollars = Accounts(Budget(max_cost_usd=1), {})
    unknown, known = (ModelSpec(name=name, model=f"openai/{name}") for name in ("no-such-model", "gpt-4.1"))
    key = {"OPENAI_API_KEY": "k"}
    refuse_early([unknown], "base", in_dollars, store, key)
    refuse_early([known], "base", in_dollars, store, key, look_up_prices=True)
    with pytest.raises(UnpricedModels, match="without a price of no-such-model") as told:
        refuse_early([unknown, known], "base", in_dollars, store, key, look_up_prices=True)
    assert told.value.names == ["no-such-model"]


@pytest.mark.parametrize(
    "spec", [model(None), model(None, api_base="http://h/v1", api_key_env=None), model(None, api_key_env=None)]
)
def test_the_quick_look_loads_no_litellm_where_a_key_or_an_address_is_named(
    spec: ModelSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resources.gateway.litellm_transport.load_litellm", lambda: pytest.fail("litellm was loaded"))
    assert find_quick_problem(spec, {"M_KEY": "k", "OPENAI_API_KEY": "k"}) is None


def test_the_key_of_a_bare_litellm_string_is_looked_for_too() -> None:
    assert (
        find_quick_problem(ModelSpec(name="m", model="openai/gpt-4.1"), {}) == "environment variable OPENAI_API_KEY is not set"
    )
    assert find_quick_problem(ModelSpec(name="m", model="nobody/gpt"), {}) is not None


def test_baselines_and_the_local_model_need_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_quick_problem(ModelSpec(name="u", model="baseline/uniform"), {}) is None
    monkeypatch.setattr(model_checks.LocalTransport, "problem", lambda self, spec: "the package is not installed")
    assert find_quick_problem(ModelSpec(name="l", model="local/smollm2-135m"), {}) == "the package is not installed"

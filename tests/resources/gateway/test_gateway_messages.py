"""What arrives at the server of a conversation, and how usage is split by the role a model was asked in."""

from __future__ import annotations

import pytest

from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Message, Request
from dtef_pipeline.errors import GatewayError, UnpricedModels
from resources.gateway import Gateway, model_checks
from resources.gateway.budget import Accounts, Usage
from resources.gateway.model_checks import find_quick_problem, refuse_early
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM
from tests.made.responses import response
from tests.resources.gateway.gateway_setup import gateway, model, requests

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


FREE = Accounts(Budget(), {})


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

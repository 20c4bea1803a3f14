"""What arrives at the server of a conversation, and how usage is split by the role a model was asked in."""

from __future__ import annotations

import pytest

from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Message, Request
from resources.gateway import Gateway
from resources.gateway.budget import Accounts, Usage
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM
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


def test_every_message_arrives_in_its_role_and_order(store: ResponseStore, server: FakeLLM) -> None:
    assert not gateway(store).answer([talk(model(server))]).failures
    (call,) = server.calls
    assert call.body["messages"] == [
        {"role": "system", "content": "You play cards."},
        {"role": "user", "content": "Your move?"},
        {"role": "assistant", "content": "Pass."},
        {"role": "tool", "content": "The other one bids."},
        {"role": "user", "content": "And now?"},
    ]


def test_what_models_used_is_split_by_their_role(store: ResponseStore, server: FakeLLM) -> None:
    """The judge of an answer costs too, and is not what the candidate costs."""
    spec = model(server, input_price=1.0, output_price=1.0)
    asking = gateway(store)
    asking.answer(requests(spec, 3))
    judging = talk(spec, Message("user", "Is this answer right?"), role="judge")
    asking.answer([judging])
    candidate, judge = asking.used["candidate"], asking.used["judge"]
    assert (candidate.calls, judge.calls) == (3, 1)
    assert (candidate.tokens, judge.tokens) == (3 * 8, 8)
    assert candidate.cost_usd == pytest.approx(3 * judge.cost_usd)
    assert candidate.cost_usd + judge.cost_usd == pytest.approx(asking.accounts.run.spent.cost_usd)
    assert asking.used.keys() == {"candidate", "judge"}
    assert store.responses([judging.key])["role"].to_pylist() == ["judge"]
    assert [(row["role"], row["responses"]) for row in store.summary().to_pylist()] == [("candidate", 3), ("judge", 1)]


def test_an_answer_of_unknown_price_is_not_counted_as_free(store: ResponseStore, server: FakeLLM) -> None:
    asking = gateway(store)
    asking.answer(requests(model(server), 2))
    assert asking.used["candidate"] == Usage(calls=2, tokens=16, cost_usd=0.0, unpriced=2)


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
    assert "answers one user message, no conversation; got user, assistant, tool, user" in failure.message

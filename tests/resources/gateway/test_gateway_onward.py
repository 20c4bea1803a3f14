"""Requests that follow from responses are asked at once, by `asking.episodes.play` over the gateway: nobody waits for another's slow model."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from dtef_pipeline.asking.calls import PlanFollowUps
from dtef_pipeline.asking.episodes import EpisodeResult, play
from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Failure, Message, Request, Response
from resources.gateway import Gateway
from resources.responses.store import ResponseStore
from tests.fake_llm_server import Call, FakeLLM, Fault
from tests.resources.gateway.gateway_setup import gateway, model

LENGTH = 5


@dataclass(frozen=True)
class Chat:
    """So many texts of a model, each after those before it."""

    spec: ModelSpec
    topic: str = "chess"

    def next(self, history: Sequence[Response]) -> Request | None:
        if len(history) == LENGTH:
            return None
        said = [Message("assistant", response.text) for response in history]
        first = Message("user", f"{self.topic} {self.spec.name}")
        messages = [first, *(part for one in said for part in (one, Message("user", "and then?")))]
        return Request.build_request(messages, self.spec, 0, "base")


@dataclass(frozen=True)
class Onward:
    gateway: Gateway

    def __call__(self, requests: Sequence[Request]) -> Mapping[str, Failure]:
        raise AssertionError("asked in waves")

    def ask_until_done(self, requests: Sequence[Request], then: PlanFollowUps) -> object:
        return self.gateway.answer(requests, follow_up=then)


def played(chats: Sequence[Chat], asks: Gateway) -> list[EpisodeResult]:
    return play(chats, Onward(asks), asks.store.responses)


def test_a_model_that_hangs_holds_up_nobody_else(store: ResponseStore) -> None:
    """All episodes waited for the slowest response in each turn."""
    others_are_done, in_time = threading.Event(), list[bool]()

    def reply(call: Call) -> str:
        if call.body["model"] == "slow":
            in_time.append(others_are_done.wait(60))
        elif len(call.body["messages"]) == 2 * LENGTH - 1:
            others_are_done.set()
        return f"text {len(call.body['messages'])}"

    with FakeLLM(reply) as server:
        quick, slow = model(server, name="quick", model="openai/quick"), model(server, name="slow", model="openai/slow")
        came = played([Chat(slow), Chat(quick), Chat(quick, "go")], gateway(store))
    assert in_time == [True] * LENGTH
    assert [len(one.responses) for one in came] == [LENGTH] * 3
    assert [one.text for one in came[1].responses] == [f"text {1 + 2 * turn}" for turn in range(LENGTH)]


def test_what_is_stored_is_replayed_and_what_is_shared_is_asked_once(store: ResponseStore, server: FakeLLM) -> None:
    spec = model(server)
    first = played([Chat(spec), Chat(spec)], gateway(store))
    assert len(server.calls) == LENGTH
    assert first[0].responses == first[1].responses
    again = played([Chat(spec), Chat(spec, "go")], gateway(store))
    assert again[0].responses == first[0].responses
    assert len(server.calls) == 2 * LENGTH


def test_an_episode_ends_with_the_request_that_fails_and_others_go_on(store: ResponseStore) -> None:
    def fault(call: Call) -> Fault | None:
        return Fault("status", status=400) if len(call.body["messages"]) == 3 and "chess" in str(call.body) else None

    with FakeLLM(fault=fault) as server:
        spec = model(server)
        cut, twin, whole = played([Chat(spec), Chat(spec), Chat(spec, "go")], gateway(store))
    assert [len(one.responses) for one in (cut, twin, whole)] == [1, 1, LENGTH]
    assert cut.failure is not None
    assert cut.failure == twin.failure
    assert (cut.failure.status, whole.failure) == ("error", None)


def test_what_has_begun_comes_to_its_end_before_a_budget_does(store: ResponseStore, server: FakeLLM) -> None:
    spec = model(server, max_concurrency=1)
    lines: list[str] = []
    asks = gateway(store, budget=Budget(max_calls=12 * LENGTH), tell=lines.append)
    came = played([Chat(spec, f"topic {number}") for number in range(80)], asks)
    assert len(server.calls) == 12 * LENGTH
    assert sum(len(one.responses) for one in came) == 12 * LENGTH
    assert all(one.failure is not None and one.failure.status == "budget" for one in came if len(one.responses) < LENGTH)
    # Turn by turn of all, 60 episodes would have begun, and none would be whole.
    assert sum(len(one.responses) == LENGTH for one in came) > 0
    assert len(lines) == 1


def test_an_error_in_what_follows_ends_the_asking(store: ResponseStore, server: FakeLLM) -> None:
    def broken(keys: Sequence[str], failures: Mapping[str, Failure]) -> list[Request]:
        raise ValueError("a game broke")

    request = Chat(model(server)).next([])
    assert request is not None
    with pytest.raises(ValueError, match="a game broke"):
        gateway(store).answer([request], follow_up=broken)

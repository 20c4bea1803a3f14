"""The gateway: every answer is stored, calls run at once within limits, what cannot be asked is reported first, and nobody waits in vain."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dtef_pipeline.asking.calls import PlanFollowUps
from dtef_pipeline.asking.episodes import EpisodeResult, play
from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Failure, Message, Request, Response
from dtef_pipeline.errors import GatewayError, WarehouseError
from resources.gateway import Gateway
from resources.gateway.gateway import Outcome
from resources.gateway.progress import ModelProgress
from resources.gateway.queues import Backoff
from resources.responses.store import ResponseStore
from tests.fake_llm_server import Call, FakeLLM, Fault, always, at_first, at_random
from tests.made.responses import stored
from tests.resources.gateway.gateway_setup import KEY, ask, gateway, model, requests


class TestAnswering:
    def test_the_prompt_and_its_settings_are_sent_and_the_answer_is_stored(self, store: ResponseStore, server: FakeLLM) -> None:
        (request,) = requests(model(server, seed=0, top_p=0.5, reasoning_effort="low"))
        assert gateway(store).answer([request]) == Outcome({}, n_sent=1, replayed=0)
        (call,) = server.calls
        assert call.body == {
            "model": "m",
            "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "question 0"}],
            "temperature": 0,
            "max_tokens": 256,
            "seed": 0,
            "top_p": 0.5,
            "reasoning_effort": "low",
        }
        assert call.key == KEY
        (row,) = store.responses([request.key]).to_pylist()
        assert (row["text"], row["finish_reason"], row["served_model"]) == ("[40.0, 30.0, 20.0, 10.0]", "stop", "m-served")
        assert (row["prompt_tokens"], row["completion_tokens"], row["attempts"], row["cost_usd"]) == (4, 4, 1, None)
        assert row["latency_s"] > 0
        assert row["model_variant"] == "openai/m[max_tokens=256,reasoning_effort=low,seed=0,temperature=0,top_p=0.5]"

    def test_a_server_without_a_key_never_gets_the_providers(
        self, store: ResponseStore, server: FakeLLM, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert not gateway(store).answer(requests(model(server, api_key_env=None))).failures
        assert KEY not in json.dumps(server.calls[0].headers)

    def test_a_rerun_replays_without_a_key_and_asks_only_the_difference(self, store: ResponseStore, server: FakeLLM) -> None:
        spec = model(server)
        gateway(store).answer(requests(spec, 5))
        assert gateway(store, environ={}).answer(requests(spec, 5)).replayed == 5
        assert gateway(store).answer(requests(spec, 8)) == Outcome({}, n_sent=3, replayed=5)
        assert gateway(store).answer([*requests(spec, 8, draw=1)] * 2) == Outcome({}, n_sent=8, replayed=0)
        assert gateway(store).answer(requests(spec, 8, snapshot="later")) == Outcome({}, n_sent=8, replayed=0)
        assert server.answered == stored(store) == 24

    def test_it_works_inside_a_running_event_loop(self, store: ResponseStore, server: FakeLLM) -> None:
        async def caller() -> Outcome:
            return gateway(store).answer(requests(model(server)))

        assert asyncio.run(caller()).n_sent == 1

    def test_a_baseline_is_not_for_asking(self, store: ResponseStore) -> None:
        with pytest.raises(ValueError, match="computed, not requested"):
            gateway(store).answer(requests(ModelSpec(name="u", model="baseline/uniform")))


class TestConcurrency:
    @pytest.mark.parametrize(("of_model", "overall", "peak"), [(3, 64, 3), (64, 2, 2)])
    def test_stays_within_both_limits(self, store: ResponseStore, of_model: int, overall: int, peak: int) -> None:
        with FakeLLM(latency=0.03) as server:
            spec = model(server, max_concurrency=of_model)
            gateway(store, max_concurrency=overall).answer(requests(spec, 12))
            assert server.peak == peak

    def test_a_model_at_several_temperatures_has_one_limit(self, store: ResponseStore) -> None:
        with FakeLLM(latency=0.03) as server:
            specs = [model(server, max_concurrency=3, temperature=degrees) for degrees in (0.0, 0.5, 1.0)]
            gateway(store).answer([request for spec in specs for request in requests(spec, 6)])
            assert server.peak == 3
            # None of the temperatures waits for the others to end.
            assert {call.body["temperature"] for call in server.calls[:6]} == {0.0, 0.5, 1.0}

    def test_progress_counts_every_model_in_the_callers_thread(self, store: ResponseStore, server: FakeLLM) -> None:
        seen: list[tuple[ModelProgress, ...]] = []
        threads = set()

        def progress(models: tuple[ModelProgress, ...]) -> None:
            seen.append(models)
            threads.add(threading.current_thread())

        spec = model(server)
        gateway(store).answer(requests(spec, 2))
        gateway(store).answer(requests(spec, 5), on_progress=progress)
        assert seen[0] == (ModelProgress("m", total=5, replayed=2, done=0, failed=0),)
        (last,) = seen[-1]
        assert (last.total, last.replayed, last.done, last.failed) == (5, 2, 3, 0)
        assert last.rate > 0
        assert last.cost_usd is None
        assert threads == {threading.current_thread()}


class TestFailures:
    def test_a_refused_key_ends_its_model_and_no_other(self, store: ResponseStore) -> None:
        def fault(call: Call) -> Fault | None:
            return Fault("status", status=401, message=f"bad key {call.key}") if call.key == KEY else None

        with FakeLLM(fault=fault) as server:
            bad = model(server, name="bad", model="openai/bad", max_concurrency=2)
            good = model(server, name="good", model="openai/good", api_key_env="GOOD_KEY")
            environ = {"M_KEY": KEY, "GOOD_KEY": "good-key-123456"}
            answers = gateway(store, environ=environ).answer([*requests(bad, 30), *requests(good, 30)])
            assert set(answers.failures) == {request.key for request in requests(bad, 30)}
            assert server.answered == stored(store) == 30
            assert len(server.calls) <= 32

    def test_a_store_that_cannot_be_written_stops_the_run(self, tmp_path: Path, server: FakeLLM) -> None:
        class FullDisk(ResponseStore):
            def add(self, responses: Any) -> None:
                raise WarehouseError("disk full")

        with FullDisk(tmp_path / "r.sqlite") as store, pytest.raises(WarehouseError, match="disk full"):
            gateway(store).answer(requests(model(server, max_concurrency=2), 50))
        assert len(server.calls) <= 4


class TestBeforeTheFirstCall:
    def test_missing_keys_are_one_error_that_names_every_model(self, store: ResponseStore, server: FakeLLM) -> None:
        named = model(server, name="one", model="openai/one", api_key_env="ONE_KEY")
        blank = model(server, name="two", model="openai/two", api_key_env="TWO_KEY")
        asked = [*requests(named), *requests(blank), *requests(model(server))]
        with pytest.raises(GatewayError, match=r"one: environment variable ONE_KEY is not set; two: .*TWO_KEY"):
            gateway(store, environ={"M_KEY": KEY, "TWO_KEY": " "}).answer(asked)
        assert server.calls == []


class TestRetries:
    @pytest.mark.parametrize("kind", ["hang", "drip"])
    def test_a_call_ends_at_its_timeout_and_is_tried_again(self, store: ResponseStore, kind: Any) -> None:
        started = time.monotonic()
        answers, server = ask(store, at_first(Fault(kind, seconds=30)), timeout=0.5)
        assert answers.failures == {}
        assert len(server.calls) == 2
        assert time.monotonic() - started < 20

    def test_a_wait_beyond_patience_is_a_failure(self, store: ResponseStore) -> None:
        answers, server = ask(store, always(Fault("status", status=429, retry_after="86400")))
        assert len(answers.failures) == len(server.calls) == 1

    def test_rate_limits_use_up_patience_and_not_the_retries(self, store: ResponseStore) -> None:
        limited = Fault("status", status=429)
        answers, _ = ask(store, at_first(*[limited] * 9), retries=0)
        assert answers.failures == {}
        assert store.responses([request.key for request in requests(model(None))])["attempts"].to_pylist() == [10]

    def test_patience_with_rate_limits_ends(self, store: ResponseStore) -> None:
        impatient = Backoff(first=0.01, longest=0.01, patience=0.05)
        with FakeLLM(fault=always(Fault("status", status=429, message="slow down"))) as server:
            answers = gateway(store, backoff=impatient).answer(requests(model(server)))
        (failure,) = answers.failures.values()
        assert "slow down" in failure.message
        assert failure.attempts == len(server.calls) > 1

    def test_waits_double_and_vary_within_their_half(self) -> None:
        backoff = Backoff(first=1, longest=10, rng=np.random.default_rng(1))
        waits = [[backoff.wait(attempt) for _ in range(50)] for attempt in (1, 2, 3, 9, 5000)]
        for full, drawn in zip((1, 2, 4, 10, 10), waits, strict=True):
            assert full / 2 <= min(drawn) < max(drawn) <= full

    def test_hundreds_of_prompts_through_a_fifth_of_faults_all_arrive(self, store: ResponseStore) -> None:
        faults = [
            Fault("status", status=429, retry_after="0"),
            Fault("status", status=429),
            Fault("status", status=500),
            Fault("status", status=503),
            Fault("reset"),
            Fault("truncated"),
            Fault("empty_choices"),
            Fault("wrong_type"),
        ]
        with FakeLLM(fault=at_random(0.2, *faults)) as server:
            wanted = requests(model(server, retries=20, max_concurrency=32), 200)
            assert gateway(store).answer(wanted) == Outcome({}, n_sent=200, replayed=0)
        rows = store.responses([request.key for request in wanted]).to_pylist()
        served = Counter(call.user for call in server.calls)
        assert stored(store) == len(rows) == server.answered == 200
        assert set(server.answers.values()) == {1}
        assert [row["attempts"] for row in rows] == [served[request.user] for request in wanted]
        assert served.total() > 220


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

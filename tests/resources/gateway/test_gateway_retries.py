"""A call that fails: what is tried again, how often and after which wait, and what ends at once."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

from resources.gateway.gateway import Outcome
from resources.gateway.retries import Backoff
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM, Fault, always, at_first, at_random
from tests.made.responses import stored
from tests.resources.gateway.gateway_setup import ask, gateway, model, requests


class TestRetries:
    @pytest.mark.parametrize(
        "fault",
        [
            Fault("status", status=429),
            Fault("status", status=500),
            Fault("empty_choices"),
        ],
        ids=lambda fault: f"{fault.kind}-{fault.status}",
    )
    def test_a_passing_fault_is_tried_again(self, store: ResponseStore, fault: Fault) -> None:
        answers, server = ask(store, at_first(fault, fault))
        assert answers.failures == {}
        (key,) = [request.key for request in requests(model(None))]
        assert store.responses([key])["attempts"].to_pylist() == [3]
        assert len(server.calls) == 3

    @pytest.mark.parametrize("kind", ["hang", "drip"])
    def test_a_call_ends_at_its_timeout_and_is_tried_again(self, store: ResponseStore, kind: Any) -> None:
        started = time.monotonic()
        answers, server = ask(store, at_first(Fault(kind, seconds=30)), timeout=0.5)
        assert answers.failures == {}
        assert len(server.calls) == 2
        assert time.monotonic() - started < 20

    def test_retries_end(self, store: ResponseStore) -> None:
        answers, server = ask(store, always(Fault("status", status=500, message="no luck")), retries=2)
        (failure,) = answers.failures.values()
        assert failure.attempts == len(server.calls) == 3
        assert "no luck" in failure.message
        assert stored(store) == 0

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
            assert gateway(store).answer(wanted) == Outcome({}, asked=200, replayed=0)
        rows = store.responses([request.key for request in wanted]).to_pylist()
        served = Counter(call.user for call in server.calls)
        assert stored(store) == len(rows) == server.answered == 200
        assert set(server.answers.values()) == {1}
        assert [row["attempts"] for row in rows] == [served[request.user] for request in wanted]
        assert served.total() > 220

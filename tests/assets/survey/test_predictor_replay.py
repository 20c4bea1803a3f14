"""Stored responses are replayed without a request being made of them: with the tables, failures and counts of the plain way."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.engine.asking import answer_calls
from assets.survey.predictor import Predictor, SegmentPredictions
from dtef_pipeline.asking.calls import STORED_COLUMNS, PlanFollowUps
from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Failure, Request, Response
from dtef_pipeline.asking.request_list import RequestList, RequestsOfModel
from resources.gateway import Gateway
from resources.gateway.gateway import Outcome
from resources.gateway.progress import ModelProgress
from resources.responses.store import ResponseStore
from resources.warehouse import Warehouse
from tests.assets.survey.predict_setup import put, settings_of_run

KEYS = ["S1/country:chile", "S1/country:kenya"]
ANSWER_AND_BATTERY_COLUMNS = ModelSpec(name="m", model="openai/m", api_base="http://127.0.0.1:9/v1")
OTHER = ModelSpec(name="theirs", model="openai/theirs", api_base="http://127.0.0.1:9/v1")
DRAWS = 2
AT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Two partitions of three questions each, at two context levels."""
    warehouse = Warehouse(tmp_path_factory.mktemp("house"))
    for key in KEYS:
        put(warehouse, key, *({"question_text": f"Question number {q}?"} for q in range(3)))
    return warehouse


def plain_requests(house: Warehouse) -> list[Request]:
    """What is asked, one after the other, each with a key of its own making."""
    found = []
    for key in KEYS:
        round_id, _, segment = key.partition("/")
        prompts = house.read("blueprints", round=round_id, segment=segment).to_pylist()
        for model in (ANSWER_AND_BATTERY_COLUMNS, OTHER):
            for row in prompts:
                seen = (row["prompt_id"], row["system"], row["user"], model)
                found += [Request(*seen, draw, "base", tuple(row["options"])) for draw in range(DRAWS)]
    return found


def response_to(request: Request, number: int) -> Response:
    return Response(
        request_key=request.key,
        prompt_id=request.prompt_id,
        model=request.model.name,
        model_variant=request.model.variant,
        draw=request.draw,
        snapshot="base",
        text=f"[{number}, 1, 2]",
        finish_reason=None if number % 3 else "stop",
        served_model="served",
        fingerprint=None,
        prompt_tokens=number,
        completion_tokens=None if number % 4 else 7,
        cost_usd=None if number % 5 else number / 64,
        latency_s=float(number % 2),
        attempts=1 + number % 3,
        answered_at=AT,
    )


def plain_row(request: Request, found: Mapping[str, dict[str, Any]], failures: Mapping[str, Failure]) -> dict[str, Any]:
    """What a row says of a request's response, by the words of the docs."""
    names = ("finish_reason", "served_model", "prompt_tokens", "completion_tokens", "cost_usd", "latency_s", "attempts")
    row = {"model": request.model.name, "draw": request.draw, "prompt_id": request.prompt_id, "request_key": request.key}
    if (response := found.get(request.key)) is not None:
        told = {**{name: response[name] for name in names}, "response": response["text"]}
        return row | told | {"call_status": "answered", "error": None, "answered_at": AT}
    failure = failures[request.key]
    told = {**dict.fromkeys(names), "attempts": failure.attempts, "response": None, "answered_at": None}
    return row | told | {"call_status": failure.status, "error": failure.message}


class Asked:
    """A gateway that may send nothing, and what it said."""

    def __init__(self, store: ResponseStore) -> None:
        self._gateway = Gateway(store, budget=Budget(max_calls=0))
        self.outcome: Outcome | None = None
        self.progress: tuple[ModelProgress, ...] = ()
        self.settled: list[str] = []

    def __call__(self, requests: Sequence[Request]) -> Mapping[str, Failure]:
        self.outcome = self._gateway.answer(requests, on_progress=self._show, follow_up=self._follow())
        return self.outcome.failures

    def _show(self, models: tuple[ModelProgress, ...]) -> None:
        self.progress = models

    def _follow(self) -> PlanFollowUps:
        def follow(settled: Sequence[str], _: Mapping[str, Failure]) -> Sequence[Request]:
            self.settled += settled
            return ()

        return follow


def replayed(house: Warehouse, store: ResponseStore, ask: Asked) -> list[dict[str, Any]]:
    segments = segments_of(house, store, KEYS, DRAWS)
    requests = [segment.requests() for segment in segments]
    stored, failures = answer_calls(requests, list(chain.from_iterable(one.keys() for one in segments)), ask, store.responses)
    return [row for one in segments for row in one.merge_with_stored(one.rows(stored, failures))["predictions"].to_pylist()]


def segments_of(house: Warehouse, store: ResponseStore, keys: Sequence[str], draws: int = 1) -> list[SegmentPredictions]:
    asked = (ANSWER_AND_BATTERY_COLUMNS, OTHER) if draws > 1 else (ANSWER_AND_BATTERY_COLUMNS,)
    stored = partial(store.responses, columns=STORED_COLUMNS)
    predictor = Predictor(house, settings_of_run(draws=draws), asked, stored, keys=keys)
    return [SegmentPredictions(predictor, key) for key in keys]


def by_key(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["request_key"]: row for row in rows}


@settings(max_examples=settings.default.max_examples // 4)
@given(share=st.sampled_from([0, 1, 2, 5, 100]), seed=st.integers(0, 1000))
def test_a_replay_is_that_of_plain_requests_whatever_is_stored(house: Warehouse, share: int, seed: int) -> None:
    requests = plain_requests(house)
    kept = [response_to(one, place) for place, one in enumerate(requests) if share and (place * 7919 + seed) % 100 < share * 20]
    with tempfile.TemporaryDirectory() as name, ResponseStore(Path(name) / "responses.sqlite") as store:
        store.add(kept)
        plainly, fast = Asked(store), Asked(store)
        failures = plainly(requests)
        rows = replayed(house, store, fast)
    expected = [plain_row(one, {one.request_key: asdict(one) for one in kept}, failures) for one in requests]
    got = by_key(rows)
    assert [{name: got[row["request_key"]][name] for name in row} for row in expected] == expected
    assert len(rows) == len(requests)
    assert fast.outcome == plainly.outcome
    assert counts(fast) == counts(plainly)
    assert sorted(fast.settled) == sorted(plainly.settled) == sorted({one.key for one in requests})


def counts(asked: Asked) -> list[tuple[Any, ...]]:
    return [(one.model, one.total, one.replayed, one.done, one.failed, one.stopped) for one in asked.progress]


def test_only_what_is_not_stored_is_made(house: Warehouse) -> None:
    made: list[str] = []

    def make(keys: Sequence[str]) -> list[Request]:
        made.extend(keys)
        return [Request(f"p{key}", None, "?", ANSWER_AND_BATTERY_COLUMNS, 0, "base", key=key) for key in keys]

    requests = RequestList([RequestsOfModel(ANSWER_AND_BATTERY_COLUMNS, ["a", "b", "c"], make)]).mark_stored({"a", "c", "d"})
    assert (len(requests), requests.keys, requests.list_missing_keys(), made) == (3, ["a", "b", "c"], ["b"], [])
    assert [one.key for one in requests.iterate_missing()] == made == ["b"]
    assert [one.key for one in requests] == ["a", "b", "c"]
    assert requests[1].key == "b"


def test_what_another_run_stored_meanwhile_is_replayed(house: Warehouse, tmp_path: Path) -> None:
    with ResponseStore(tmp_path / "responses.sqlite") as store:
        (segment,), asked = segments_of(house, store, KEYS[:1]), Asked(store)

        def ask(requests: Sequence[Request]) -> Mapping[str, Failure]:
            store.add(response_to(one, 0) for one in requests)
            return asked(requests)

        requests = segment.requests()
        stored, failures = answer_calls([requests], segment.keys(), ask, store.responses)
        assert asked.outcome == Outcome({}, n_sent=0, replayed=len(requests))
        assert set(segment.rows(stored, failures)["predictions"]["call_status"].to_pylist()) == {"answered"}

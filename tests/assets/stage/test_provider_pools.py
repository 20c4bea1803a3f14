"""Pools of Dagster: at most as many runs ask a provider at once as its pool allows, and no slot is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.stage.provider_pools import provider_pools
from dtef_pipeline.asking.models import ModelSpec
from tests.assets.conftest import Pipeline
from tests.made.models_file import write_models
from tests.waiting import wait_until

OPENAI = ModelSpec(name="a", model="openai/a")
ANTHROPIC = ModelSpec(name="b", model="anthropic/b")
BASELINE = ModelSpec(name="baseline/uniform", model="baseline/uniform")
PATIENCE_S = 500.0
"""Less than a test has: a step that never comes is to fail at its own assertion."""


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path_factory.mktemp("pools"))) as made:
        yield made


def a_run(instance: dg.DagsterInstance, status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED) -> dg.DagsterRun:
    return instance.run_storage.add_run(dg.DagsterRun(job_name="survey_pipeline", status=status))


class TestClaims:
    def test_a_limit_of_one_lets_in_one_run_of_a_provider_and_another_of_another_provider(
        self, instance: dg.DagsterInstance
    ) -> None:
        storage = instance.event_log_storage
        for pool in ("openai", "anthropic"):
            storage.set_concurrency_slots(pool, 1)
        first, second, other = (a_run(instance) for _ in range(3))
        said: list[str] = []
        entered = threading.Event()

        def ask() -> None:
            with provider_pools(instance, second, [OPENAI], said.append):
                entered.set()

        with provider_pools(instance, first, [OPENAI, BASELINE], said.append):
            thread = threading.Thread(target=ask)
            thread.start()
            with provider_pools(instance, other, [ANTHROPIC], said.append):
                line = "waiting for the pool openai: as many runs as its limit ask this provider now"
                assert wait_until(lambda: said == [line], PATIENCE_S)
                assert not entered.is_set()
                assert storage.get_concurrency_info("openai").active_run_ids == {first.run_id}
                assert storage.get_concurrency_info("anthropic").active_run_ids == {other.run_id}
        thread.join(PATIENCE_S)
        assert entered.is_set()
        for pool in ("openai", "anthropic"):
            assert storage.get_concurrency_info(pool).active_slot_count == 0
            assert storage.get_concurrency_info(pool).pending_steps == []

    def test_slots_of_a_run_that_ended_without_giving_them_back_are_free(self, instance: dg.DagsterInstance) -> None:
        instance.event_log_storage.set_concurrency_slots("openai", 1)
        killed = a_run(instance, dg.DagsterRunStatus.FAILURE)
        instance.event_log_storage.claim_concurrency_slot("openai", killed.run_id, "predictions[openai]")
        with provider_pools(instance, a_run(instance), [OPENAI], lambda _: None):
            assert killed.run_id not in instance.event_log_storage.get_concurrency_info("openai").active_run_ids

    def test_a_slot_that_is_given_back_while_a_run_joins_the_queue_is_taken(
        self, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Dagster assigns the slot to no run then: the queue was empty, and the run that joins it saw no free slot."""
        storage: Any = instance.event_log_storage
        storage.set_concurrency_slots("openai", 1)
        first, second = a_run(instance), a_run(instance)
        storage.claim_concurrency_slot("openai", first.run_id, "predictions[openai]")
        join = storage.add_pending_step

        def join_late(*claim: Any, **further: Any) -> None:
            storage.free_concurrency_slot_for_step(first.run_id, "predictions[openai]")
            join(*claim, **further)

        entered = threading.Event()

        def ask() -> None:
            with provider_pools(instance, second, [OPENAI], lambda _: None):
                entered.set()

        monkeypatch.setattr(storage, "add_pending_step", join_late)
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        assert entered.wait(PATIENCE_S)
        thread.join(PATIENCE_S)
        assert storage.get_concurrency_info("openai").active_slot_count == 0

    def test_an_interrupted_wait_leaves_nothing_behind(self, instance: dg.DagsterInstance) -> None:
        storage = instance.event_log_storage
        storage.set_concurrency_slots("anthropic", 1)
        storage.set_concurrency_slots("openai", 1)

        def interrupt(_: str) -> None:
            raise KeyboardInterrupt

        waiting = a_run(instance)
        with provider_pools(instance, a_run(instance), [OPENAI], lambda _: None):
            with pytest.raises(KeyboardInterrupt), provider_pools(instance, waiting, [OPENAI, ANTHROPIC], interrupt):
                pass
            waits = [step.run_id for step in storage.get_concurrency_info("openai").pending_steps]
            assert waiting.run_id not in waits
            assert storage.get_concurrency_info("anthropic").active_slot_count == 0


def test_predictions_respect_the_pools_of_their_models(done: Pipeline, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pools are entered, here for a run that is then stopped; `TestRuns` shows what that does to runs at once."""
    entered: list[str] = []

    def stop(_instance: object, _run: object, models: list[ModelSpec], _tell: object) -> None:
        entered.extend(model.name for model in models)
        raise RuntimeError("stopped before the first call")

    monkeypatch.setenv("DTEF_MODELS", str(write_models(state, ["fake"])))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up")
    monkeypatch.setattr("assets.engine.asking.provider_pools", stop)
    config = {"models": ["fake", "baseline/uniform"]}
    assert done.run(["predictions"], predictions=config).failures != ()
    assert entered == ["fake"]

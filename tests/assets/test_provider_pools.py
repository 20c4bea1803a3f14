from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import pytest
import yaml

from assets.launch import materialize
from assets.provider_pools import pool_of, provider_pools
from assets.resources import Store
from assets.rounds import known_keys
from dtef_pipeline.prediction.models import ModelSpec
from resources.known_models import known_models
from resources.settings import Settings
from tests.assets.conftest import write_survey
from tests.cli.commands import distribution, ok
from tests.fake_llm_server import Call, FakeLLM

OPENAI = ModelSpec(name="a", model="openai/a")
ANTHROPIC = ModelSpec(name="b", model="anthropic/b")
BASELINE = ModelSpec(name="baseline/uniform", model="baseline/uniform")
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path_factory.mktemp("pools"))) as made:
        yield made


def a_run(instance: dg.DagsterInstance, status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED) -> dg.DagsterRun:
    return instance.run_storage.add_run(dg.DagsterRun(job_name="round_pipeline", status=status))


def until(true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := true()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


class TestNames:
    @pytest.mark.parametrize(
        ("model", "base", "pool"),
        [
            ("openai/gpt-4.1", None, "openai"),
            ("anthropic/claude", None, "anthropic"),
            ("openai/mine", "http://127.0.0.1:8000/v1", "openai/127.0.0.1:8000"),
            ("openai/mine", "https://models.example.org/v1/", "openai/models.example.org"),
        ],
    )
    def test_a_pool_is_a_provider_at_its_host(self, model: str, base: str | None, pool: str) -> None:
        assert pool_of(ModelSpec(name="m", model=model, api_base=base)) == pool


class TestClaims:
    def test_a_pool_without_a_limit_holds_up_nobody(self, instance: dg.DagsterInstance) -> None:
        said: list[str] = []
        unlimited = ModelSpec(name="c", model="mistral/c")
        with (
            provider_pools(instance, a_run(instance), [unlimited], said.append),
            provider_pools(instance, a_run(instance), [unlimited], said.append),
        ):
            pass
        assert said == []

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
                assert until(lambda: said == ["waiting for the pool openai: as many runs as its limit ask this provider now"])
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


class TestRuns:
    """Runs of the asset at once, each with an instance of its own as in processes of their own."""

    def serve(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *servers: FakeLLM) -> None:
        """Each server as a model: fake0, fake1; of each provider one run at a time."""
        specs = {
            f"fake{number}": {"model": f"openai/fake{number}", "api_base": server.base_url, "max_concurrency": 2}
            for number, server in enumerate(servers)
        }
        (folder / "models.yaml").write_text(yaml.safe_dump({"models": specs}), encoding="utf-8")
        monkeypatch.setenv("DTEF_MODELS", str(folder / "models.yaml"))
        # Resources are made once a process, and another test may have used them with other models.
        monkeypatch.setattr(Store, "models", property(lambda store: known_models(Settings.from_environment())))
        with dg.DagsterInstance.get() as instance:
            for server in servers:
                instance.event_log_storage.set_concurrency_slots(f"openai/{server.base_url.split('/')[2]}", 1)

    def test_of_one_provider_ask_one_after_the_other_and_of_another_at_the_same_time(
        self, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ok("ingest", write_survey(state / "surveys.csv", ["T1"]))
        seen, go_on = threading.Event(), threading.Event()

        def held(call: Call) -> str:
            assert go_on.wait(PATIENCE_S)
            return distribution(call, 40)

        def of_the_other(call: Call) -> str:
            seen.set()
            return distribution(call, 40)

        def predict(model: str, snapshot: str) -> tuple[str, ...]:
            config = {"predictions": {"models": [model], "snapshot": snapshot}}
            with dg.DagsterInstance.get() as instance:
                return materialize(instance, ["predictions"], known_keys(instance), config).failures

        with FakeLLM(held) as one, FakeLLM(of_the_other) as other, dg.DagsterInstance.get() as instance:
            self.serve(state, monkeypatch, one, other)
            materialize(instance, ["blueprints"], known_keys(instance), {})
            with ThreadPoolExecutor() as pool:
                runs = [pool.submit(predict, "fake0", snapshot) for snapshot in ("a", "b")]

                def told() -> bool:
                    logs = [entry.user_message for run in instance.get_runs() for entry in instance.all_logs(run.run_id)]
                    return any("waiting for the pool" in message for message in logs)

                try:
                    assert until(told)
                    assert until(lambda: len(one.calls) == 2)
                    # While one holds its provider and one waits, a run of another provider goes through.
                    assert pool.submit(predict, "fake1", "c").result(PATIENCE_S) == ()
                    assert seen.is_set()
                    assert (len(one.calls), other.answered) == (2, 9)
                finally:
                    go_on.set()
                assert [run.result(PATIENCE_S) for run in runs] == [(), ()]
            assert one.peak == 2
            assert one.answered == 2 * 9

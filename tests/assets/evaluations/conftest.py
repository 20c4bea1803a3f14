"""A queue of evaluations that a test fills, ticks and runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.definitions import defs
from assets.evaluations.run_log import DagsterRunLog
from assets.stage.resources import Store
from dtef_pipeline.api.plans.games_plan import GAMES_PLANS, GamesManifest
from dtef_pipeline.cli.stage_runs import open_dagster_instance
from resources.evaluations.evaluation_store import QUEUE_TAG, EvaluationStore, Event
from resources.settings import Settings
from resources.warehouse import Warehouse
from tests.assets.games.conftest import REPLIES, SHOW_CARDS, League, write_made_models, write_made_scenarios
from tests.assets.ticks import run_request
from tests.fake_llm_server import FakeLLM

SENSOR = next(one for one in defs.sensors or [] if one.name == "evaluation_queue")
REPOSITORY = defs.get_repository_def()
OF_LEAGUE = {"persona_ids": ["calm"], "scenario_ids": [SHOW_CARDS], "models": ["legal"], "seeds": "1-4"}


class Queue:
    """What a test does to the queue."""

    def __init__(self, league: League, store: EvaluationStore) -> None:
        self.league, self.store, self.instance = league, store, league.instance
        self.cursor: str | None = None

    def submit(self, **changed: Any) -> str:
        """The queue id of a manifest of games."""
        manifest = GamesManifest.model_validate({**OF_LEAGUE, **changed})
        plan = GAMES_PLANS.plan(manifest, Settings.read_environment())
        return self.add(plan.build_plan_json(), plan.runs)

    def add(self, plan: Mapping[str, Any], asked: Any = ()) -> str:
        return self.store.submit("games", {}, plan, asked, "tester")[0].queue_id

    def tick(self) -> list[dg.RunRequest]:
        """The runs that a tick asks for."""
        with dg.build_sensor_context(
            self.instance, cursor=self.cursor, repository_def=REPOSITORY, resources={"store": Store()}
        ) as context:
            found = SENSOR(context)
        if isinstance(found, dg.SkipReason):
            return []
        self.cursor = found.cursor
        return list(found.run_requests or [])

    def run(self, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        return run_request(request, self.instance, str(request.job_name))

    def made_up(self, queue_id: str, status: dg.DagsterRunStatus, **tags: str) -> dg.DagsterRun:
        """A run of an evaluation in a state of Dagster's."""
        begins = status is dg.DagsterRunStatus.STARTED
        first = dg.DagsterRunStatus.STARTING if begins else status
        run = dg.DagsterRun(job_name="games_pipeline", status=first, tags={QUEUE_TAG: queue_id, **tags})
        kept = self.instance.run_storage.add_run(run)
        return self._begun(kept) if begins else kept

    def started_again(self, queue_id: str) -> dg.DagsterRun:
        """What Dagster's daemon makes of the newest run of an evaluation, when that has failed."""
        tags = {QUEUE_TAG: queue_id}
        (before, *_) = self.instance.get_runs(dg.RunsFilter(tags=tags))
        again = dg.DagsterRun(
            job_name="games_pipeline",
            status=dg.DagsterRunStatus.STARTING,
            tags={
                **tags,
                "dagster/parent_run_id": before.run_id,
                "dagster/root_run_id": before.run_id,
                "dagster/retry_number": "1",
            },
            parent_run_id=before.run_id,
            root_run_id=before.run_id,
        )
        return self._begun(self.instance.run_storage.add_run(again))

    def _begun(self, run: dg.DagsterRun) -> dg.DagsterRun:
        self.instance.report_dagster_event(dg.DagsterEvent("PIPELINE_START", run.job_name), run.run_id)
        return run

    def events(self, queue_id: str) -> list[Event]:
        found = self.store.events(queue_id)
        assert [one.seq for one in found] == list(range(1, len(found) + 1))
        return found

    def kinds(self, queue_id: str) -> list[str]:
        return [one.kind for one in self.events(queue_id)]


@pytest.fixture
def queue(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    write_made_scenarios(state, monkeypatch)
    with (
        FakeLLM(lambda call: REPLIES[call.body["model"]](call)) as server,
        open_dagster_instance() as instance,
        EvaluationStore(Settings.read_environment().responses_url, DagsterRunLog(instance)) as store,
    ):
        write_made_models(state, monkeypatch, server)
        yield Queue(League(instance, Warehouse(Settings.read_environment().warehouse), server), store)

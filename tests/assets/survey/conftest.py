"""The nightly schedule on a Dagster instance on disk, evaluated night after night."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from assets.survey.nightly import survey_nightly_schedule
from dtef_pipeline.cli.stage_runs import open_dagster_instance
from resources.warehouse import Warehouse
from tests.assets.conftest import Pipeline, write_survey
from tests.assets.ticks import run_request, tick
from tests.dtef_pipeline.cli.commands import use
from tests.fake_llm_server import FakeLLM
from tests.made.models_file import write_models
from tests.made_once import made_once

FIRST = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
NIGHT = "2026-03-01"
STEADY, MOVED = "[50, 30, 20]", "[5, 5, 90]"


class Nights:
    """A pipeline of two rounds that were run once, its panel, and the schedule evaluated night after night."""

    def __init__(self, pipeline: Pipeline, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.pipeline, self.folder, self.patch = pipeline, folder, patch

    def panel(self, **values: Any) -> None:
        (self.folder / "panel.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
        self.patch.setenv("DTEF_PANEL", str(self.folder / "panel.yaml"))

    def serve(self, server: FakeLLM) -> None:
        """Make the models `mine` and `beside` known: the server, without a wait between attempts."""
        settings = {"api_base": server.base_url, "retries": 0, "input_price": 1.0, "output_price": 1.0}
        self.patch.setenv("DTEF_MODELS", str(write_models(self.folder, ("mine", "beside"), **settings)))

    def ask(self, night: int = 0) -> dg.RunRequest | dg.SkipReason:
        result = tick(survey_nightly_schedule, self.pipeline.instance, FIRST + timedelta(days=night))
        assert isinstance(result, dg.RunRequest | dg.SkipReason)
        return result

    def request(self, night: int = 0) -> dg.RunRequest:
        asked = self.ask(night)
        assert isinstance(asked, dg.RunRequest), asked
        return asked

    def run(self, night: int = 0) -> dg.ExecuteInProcessResult:
        return run_request(self.request(night), self.pipeline.instance, "survey_nightly")

    def boards(self) -> dg.ExecuteInProcessResult:
        """The run that `survey_boards_after_run` asks for, as far as drift goes."""
        drift = dg.RunRequest(asset_selection=[dg.AssetKey("survey_drift")])
        return run_request(drift, self.pipeline.instance, "survey_roll_ups")

    def materialized(self, result: dg.ExecuteInProcessResult, asset: str = "scores") -> list[str | None]:
        logs = self.pipeline.instance.all_logs(result.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        return [entry.dagster_event.partition for entry in logs if entry.dagster_event.asset_key == dg.AssetKey(asset)]


@pytest.fixture(scope="session")
def registered(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """State of two rounds whose six stages were run once, with a Dagster instance on disk; to be copied, not changed."""
    return made_once(tmp_path_factory, "registered", lambda folder: register_finished(finished, folder))


def register_finished(finished: Path, folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        with open_dagster_instance() as instance:
            made = Pipeline(instance, Warehouse(folder / "warehouse"))
            made.register(write_survey(folder / "surveys.csv"))
        for table in (finished / "warehouse").iterdir():
            if table.name != "sources":
                shutil.copytree(table, folder / "warehouse" / table.name)


@pytest.fixture
def nights(state: Path, registered: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nights]:
    shutil.copytree(registered, state, dirs_exist_ok=True)
    with open_dagster_instance() as instance:
        yield Nights(Pipeline(instance, Warehouse(state / "warehouse")), state, monkeypatch)

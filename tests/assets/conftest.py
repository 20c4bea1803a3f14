"""A pipeline of one's own: a warehouse, a Dagster instance and a small survey of two rounds."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.engine.roll_up_names import ROLL_UP_NAMES
from assets.launch import LaunchResult, materialize
from assets.stage.file_notes import list_partitions
from assets.survey.rounds import ROUND_SEGMENT, register_round
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.adapters import read_survey, read_surveys
from dtef_pipeline.survey.identity import SPACE
from resources.sources import Sources
from resources.warehouse import Warehouse
from tests.assets.stage_names import STAGE_NAMES
from tests.made_once import made_once

ROUNDS, COUNTRIES, OPTIONS = ("T1", "T2"), ("Chile", "India", "Kenya"), ("Yes", "No", "Maybe")
GREEN, RED = "MATERIALIZED", "FAILED"


def write_survey(path: Path, rounds: Sequence[str] = ROUNDS, *, questions: int = 3, n: int = 40) -> Path:
    """A long table: every country answers every question of every round, each a little differently."""
    rows: list[dict[str, Any]] = []
    for r, round_id in enumerate(rounds):
        for q in range(questions):
            for c, country in enumerate(COUNTRIES):
                shares = (50 + q + 5 * c, 30 - 5 * c + r, 20 - q - r)
                at = {"round": round_id, "question_id": f"q{q}", "question": f"Question number {q}?", "n": n}
                rows += [
                    {**at, "option": option, "attribute": "country", "value": country, "percent": share}
                    for option, share in zip(OPTIONS, shares, strict=True)
                ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@dataclass
class Pipeline:
    """What a test does to the state, and sees of it."""

    instance: dg.DagsterInstance
    house: Warehouse

    @property
    def keys(self) -> list[str]:
        return list_partitions(self.instance, SPACE)

    def register(self, path: Path) -> None:
        for survey in read_surveys(path):
            register_round(self.instance, Sources(self.house, read_survey), survey, path, min_n=10)

    def run(
        self, names: Sequence[str] = STAGE_NAMES, keys: Sequence[str] | None = None, **config: dict[str, Any]
    ) -> LaunchResult:
        """Materialize stages, by default all six, for all partitions; `config` by asset name."""
        config.setdefault("predictions", {"models": ["baseline/uniform"]})
        return materialize(self.instance, names, self.keys if keys is None else keys, config)

    def roll_up(self) -> LaunchResult:
        return materialize(self.instance, ROLL_UP_NAMES, [], {})

    def status(self, asset: str) -> dict[str, str | None]:
        """MATERIALIZED, FAILED or None, by partition."""
        found = self.instance.get_status_by_partition(dg.AssetKey(asset), self.keys, ROUND_SEGMENT) or {}
        return {key: found[key].value if found.get(key) else None for key in self.keys}  # type: ignore[union-attr]

    def checks(self, outcome: LaunchResult) -> dict[str, bool]:
        """Whether each check of the runs passed, by name."""
        evaluations = self._events(outcome, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        return {event.asset_check_evaluation_data.check_name: event.asset_check_evaluation_data.passed for event in evaluations}

    def materializations(self, outcome: LaunchResult) -> list[Any]:
        events = self._events(outcome, dg.DagsterEventType.ASSET_MATERIALIZATION)
        return [event.step_materialization_data.materialization for event in events]

    def _events(self, outcome: LaunchResult, kind: dg.DagsterEventType) -> list[Any]:
        return [entry.dagster_event for run_id in outcome.run_ids for entry in self.instance.all_logs(run_id, of_type=kind)]

    def file(self, table: str, key: str, **levels: str) -> Path:
        round_id, segment = split_partition_key(key)
        return Path(self.house.folder(table, round=round_id, segment=segment, **levels), "part-0.parquet")

    def bytes(self) -> dict[str, bytes]:
        """Every Parquet file of the warehouse."""
        root = Path(self.house.root)
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.parquet"))}


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pipeline whose six stages were run once, with two baselines; to be copied, not changed."""
    return made_once(tmp_path_factory, "finished", run_once)


def run_once(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral(tempdir=str(folder / "dagster")) as instance:
        patch.setenv("DTEF_WAREHOUSE", str(folder / "warehouse"))
        patch.setenv("DTEF_RESPONSES", str(folder / "responses.sqlite"))
        patch.delenv("DTEF_MODELS", raising=False)
        made = Pipeline(instance, Warehouse(folder / "warehouse"))
        made.register(write_survey(folder / "surveys.csv"))
        assert made.run().failures == ()


@pytest.fixture
def pipeline(state: Path) -> Iterator[Pipeline]:
    """Rounds T1 and T2 registered, nothing materialized; a Dagster instance in memory."""
    with dg.DagsterInstance.ephemeral(tempdir=str(state)) as instance:
        made = Pipeline(instance, Warehouse(state / "warehouse"))
        made.register(write_survey(state / "surveys.csv"))
        yield made


@pytest.fixture
def done(pipeline: Pipeline, finished: Path) -> Pipeline:
    """As `pipeline`, with the tables of all six stages there already."""
    for folder in (finished / "warehouse").iterdir():
        if folder.name != "sources":
            shutil.copytree(folder, Path(pipeline.house.root) / folder.name)
    return pipeline


@pytest.fixture
def landing(pipeline: Pipeline, state: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from tests.assets.survey.landing_folder import Landing

    for key in pipeline.keys:
        pipeline.instance.delete_dynamic_partition(str(ROUND_SEGMENT.name), key)
    monkeypatch.setenv("DTEF_SURVEYS", str(state / "landing"))
    return Landing(pipeline, state / "landing")

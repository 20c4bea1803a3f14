"""A pipeline of one's own: a warehouse, a Dagster instance and a small survey of two rounds."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.launch import LaunchResult
from assets.survey.rounds import ROUND_SEGMENT, register_round
from dtef_pipeline.identity import split_partition_key
from dtef_pipeline.survey.adapters import read_survey, read_surveys
from resources.sources import Sources
from resources.warehouse import Warehouse
from tests.assets.family_state import STAGE_NAMES, FamilyState
from tests.dtef_pipeline.cli.commands import use
from tests.made_once import made_once

ROUNDS, COUNTRIES, OPTIONS = ("T1", "T2"), ("Chile", "India", "Kenya"), ("Yes", "No", "Maybe")


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


class Pipeline(FamilyState):
    """Surveys: rounds of segments."""

    family = "survey"

    def register(self, path: Path) -> None:
        for survey in read_surveys(path):
            register_round(self.instance, Sources(self.house, read_survey), survey, path, min_n=10)

    def run(
        self, names: Sequence[str] = STAGE_NAMES, keys: Sequence[str] | None = None, **config: dict[str, Any]
    ) -> LaunchResult:
        """Materialize stages, by default all six, for all partitions; `config` by asset name."""
        config.setdefault("predictions", {"models": ["baseline/uniform"]})
        return self.materialize(names, self.keys if keys is None else keys, config)

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
        use(folder, patch)
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

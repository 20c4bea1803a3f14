"""The state of a family in a test: its warehouse, a Dagster instance, and what runs of its assets left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg
import pyarrow as pa
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from assets.definitions import defs
from assets.engine.roll_up_names import FAMILY_ROLL_UPS
from assets.launch import LaunchResult, materialize
from assets.stage.file_notes import list_partitions
from dtef_pipeline.cli.stage_runs import open_dagster_instance
from dtef_pipeline.families import FAMILY_BY_NAME
from resources.warehouse import Warehouse
from tests.fake_llm_server import FakeLLM

GREEN, RED = "MATERIALIZED", "FAILED"
STAGE_NAMES = ["survey_responses", "blueprints", "predictions", "scores", "segment_results", "drift_checks"]
QA_STAGE_NAMES = ["qa_items", "qa_prompts", "qa_responses", "qa_judgements", "qa_executions", "qa_scores"]
GAMES_STAGE_NAMES = ["scenario_items", "episode_prompts", "episodes", "episode_scores"]
RUBRIC_STAGE_NAMES = [
    f"rubric_{name}" for name in ("blueprints", "responses", "judgements", "embeddings", "points", "scores", "summaries")
]
STAGES_OF = {"survey": STAGE_NAMES, "qa": QA_STAGE_NAMES, "games": GAMES_STAGE_NAMES, "rubric": RUBRIC_STAGE_NAMES}
"""By family, the names of the assets of its stages, in order."""


@dataclass
class FamilyState:
    """What a test does to the state, and sees of it."""

    instance: dg.DagsterInstance
    house: Warehouse
    family: ClassVar[str]

    @property
    def keys(self) -> list[str]:
        """The partitions."""
        return list_partitions(self.instance, FAMILY_BY_NAME[self.family].space)

    def materialize(self, names: Sequence[str], keys: Sequence[str], config: dict[str, dict[str, Any]]) -> LaunchResult:
        """Materialize these assets; `config` by asset name."""
        return materialize(self.instance, names, keys, config, family=self.family)

    def roll_up(self, *names: str, **config: dict[str, Any]) -> LaunchResult:
        """Materialize roll-ups, by default all."""
        return self.materialize(names or FAMILY_ROLL_UPS[self.family], [], config)

    def rows(self, table: str, key: str | None = None) -> list[dict[str, Any]]:
        return self.table(table, key).to_pylist()

    def table(self, table: str, key: str | None = None) -> pa.Table:
        """The rows of all partitions or of one; none where there is no file."""
        levels = {} if key is None else FAMILY_BY_NAME[self.family].space.levels(key)
        return self.house.read_or_empty(table, **levels)

    def status(self, asset: str) -> dict[str, str | None]:
        """MATERIALIZED, FAILED or None, by partition."""
        partitions = dg.DynamicPartitionsDefinition(name=FAMILY_BY_NAME[self.family].space.name)
        found = self.instance.get_status_by_partition(dg.AssetKey(asset), self.keys, partitions) or {}
        return {key: found[key].value if found.get(key) else None for key in self.keys}  # type: ignore[union-attr]

    def checks(self, outcome: LaunchResult) -> dict[str, bool]:
        """Whether each check of the runs passed, by name."""
        found = [
            event.asset_check_evaluation_data for event in self.events(outcome, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        ]
        return {one.check_name: one.passed for one in found}

    def materializations(self, outcome: LaunchResult) -> list[Any]:
        events = self.events(outcome, dg.DagsterEventType.ASSET_MATERIALIZATION)
        return [event.step_materialization_data.materialization for event in events]

    def events(self, outcome: LaunchResult, kind: dg.DagsterEventType) -> list[Any]:
        return [entry.dagster_event for run_id in outcome.run_ids for entry in self.instance.all_logs(run_id, of_type=kind)]

    def stale(self) -> dict[str, set[str]]:
        """Partitions that the UI calls stale, by each stage that has any.

        Dagster says so in public by GraphQL alone, which needs a server with the definitions; it answers by these names.
        """
        resolver = CachingStaleStatusResolver(self.instance, defs.resolve_asset_graph(), LoadingContextForTest(self.instance))
        found = {
            stage: {key for key in self.keys if resolver.get_status(dg.AssetKey(stage), key) == StaleStatus.STALE}
            for stage in STAGES_OF[self.family]
        }
        return {stage: keys for stage, keys in found.items() if keys}


@dataclass
class AskingState(FamilyState):
    """A folder, and a server that plays all who are asked."""

    folder: Path
    server: FakeLLM
    players: Any
    config: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By asset, for every run."""

    def run(
        self, names: Sequence[str] | None = None, keys: Sequence[str] | None = None, **config: dict[str, Any]
    ) -> LaunchResult:
        """Materialize stages, by default all, for all partitions; `config` by asset name, over that of every run."""
        names = STAGES_OF[self.family] if names is None else names
        given = {name: {**self.config.get(name, {}), **config.get(name, {})} for name in names}
        return self.materialize(names, self.keys if keys is None else keys, given)


@contextmanager
def opened_instance(folder: Path, *, on_disk: bool = False) -> Iterator[dg.DagsterInstance]:
    """A Dagster instance in memory, or one `on_disk` in DAGSTER_HOME, which other processes see."""
    with open_dagster_instance() if on_disk else dg.DagsterInstance.ephemeral(tempdir=str(folder)) as instance:
        yield instance

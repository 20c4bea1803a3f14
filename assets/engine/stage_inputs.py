"""A stage's inputs for one partition, and its tables' places in the warehouse."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.engine.asking import open_gateway
from assets.stage.partitions import load_store_models
from assets.stage.resources import Store, command_of
from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.family.run_settings import RunSettings
from dtef_pipeline.family.stage import Stage
from dtef_pipeline.keys import Space
from resources.gateway import Gateway
from resources.gateway.embedder import NOTHING_EMBEDDED, EmbeddingResult, embed
from resources.gateway.progress import RunProgress
from resources.warehouse import TABLES, make_empty_table


def is_first_snapshot_stage(stage: Stage) -> bool:
    """Return whether the stage is the first with rows by snapshot."""
    return "snapshot" in TABLES[stage.name].levels and not any(
        "snapshot" in TABLES[name].levels for name in stage.after if name in TABLES
    )


class Shared:
    """State shared by a stage's partitions."""

    def __init__(self) -> None:
        self.cache: dict[Hashable, Any] = {}
        self.exit_stack = ExitStack()

    def remember(self, name: Hashable, make: Callable[[], Any]) -> Any:
        if name not in self.cache:
            self.cache[name] = make()
        return self.cache[name]


class StageContext(Shared):
    """The same in a run."""

    def __init__(self, context: dg.AssetExecutionContext, store: Store, settings: RunSettings, keys: Sequence[str]) -> None:
        super().__init__()
        self.context, self.store, self.settings = context, store, settings
        command = command_of(context.run)
        self.keys = command.keys if command else keys

    def gateway(self, spec: ModelSpec) -> tuple[Gateway, RunProgress]:
        """Open the run's gateway, within its budgets, and its progress, until the stage ends."""
        return self.exit_stack.enter_context(open_gateway(self.context, self.store, self.settings, [spec], {}))


class StageInputs:
    """`dtef_pipeline.family.stage.Inputs` of a run. `snapshot`: of the tables with snapshots, by default all."""

    is_dry = False

    def __init__(self, store: Any, space: Space, key: str, snapshot: str | None = None, shared: Shared | None = None) -> None:
        self.outside, self.key, self.levels, self._of_stage = store, key, space.levels(key), shared or Shared()
        self._space = space
        self.metadata: dict[str, Any] = {}
        self.stage_config: Mapping[str, Any] = {}
        self._snapshot = {} if snapshot is None else {"snapshot": snapshot}

    @cached_property
    def models(self) -> Models:
        return load_store_models(self.outside)

    @property
    def all_keys(self) -> Sequence[str]:
        return self._shared.keys

    def at(self, key: str) -> "StageInputs":
        return StageInputs(self.outside, self._space, key, self._snapshot.get("snapshot"), self._of_stage)

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        return self.outside.warehouse.read(table, columns=columns, **self.place(table))

    def rows(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        return self.outside.warehouse.read_or_empty(table, columns=columns, **self.place(table))

    def earlier(self, table: str) -> pa.Table:
        rows = self.outside.warehouse.read_earlier(table, **self.place(table))
        return make_empty_table(table) if rows is None else rows

    @property
    def _shared(self) -> StageContext:
        assert isinstance(self._of_stage, StageContext), "a check and an estimate log and ask nothing"
        return self._of_stage

    def describe(self, **metadata: Any) -> None:
        self.metadata |= metadata

    def warn(self, line: str) -> None:
        self._shared.context.log.warning(f"{self.key}: {line}")

    def remember(self, name: Hashable, make: Callable[[], Any]) -> Any:
        return self._of_stage.remember(name, make)

    def enter(self, name: Hashable, open: Callable[[], AbstractContextManager[Any]]) -> Any:
        return self._of_stage.remember(name, lambda: self._of_stage.exit_stack.enter_context(open()))

    def embed(self, texts: Sequence[str], spec: ModelSpec, n_known: int) -> EmbeddingResult:
        if not texts:
            return NOTHING_EMBEDDED
        gateway, progress = self._shared.remember(spec.variant, lambda: self._shared.gateway(spec))
        return embed(texts, spec, gateway, n_known=n_known, on_progress=progress)

    def keep(self, tables: Mapping[str, pa.Table]) -> None:
        """Replace the partition's rows, the first table last, so that its readers find the others too.

        Without a snapshot, only snapshots with new rows are replaced.
        """
        for name in reversed(list(tables)):
            rows, place = tables[name], self.place(name)
            if set(place) == set(TABLES[name].levels):
                self.outside.warehouse.write(name, rows, **place)
                continue
            for label in pc.unique(rows["snapshot"]).to_pylist():
                label_rows = rows.filter(pc.equal(rows["snapshot"], label))
                self.outside.warehouse.write(name, label_rows, **place, snapshot=label)

    def place(self, table: str) -> dict[str, str]:
        """Return the levels of the partition in a table."""
        values = {**self.levels, **self._snapshot}
        return {level: values[level] for level in TABLES[table].levels if level in values}

"""What a stage reads of one partition, and where its tables lie in the warehouse."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from assets.stage.asked import models_of
from assets.stage.resources import Store
from dtef_pipeline.asking.models import Models
from dtef_pipeline.keys import Space
from resources.warehouse import TABLES


class StageInputs:
    """`dtef_pipeline.family.stage.Inputs` of a run. `snapshot`: of the tables that are kept by snapshot; None: of all."""

    def __init__(
        self, store: Store, space: Space, key: str, snapshot: str | None = None, shared: dict[Hashable, Any] | None = None
    ) -> None:
        self.outside, self.key, self.levels = store, key, space.levels(key)
        self._shared = {} if shared is None else shared
        self._snapshot = {} if snapshot is None else {"snapshot": snapshot}

    @cached_property
    def models(self) -> Models:
        return models_of(self.outside)

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        return self.outside.warehouse.read(table, columns=columns, **self.place(table))

    def rows(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        return self.outside.warehouse.read_or_empty(table, columns=columns, **self.place(table))

    def earlier(self, table: str) -> pa.Table | None:
        return self.outside.warehouse.read_earlier(table, **self.place(table))

    def remember(self, name: Hashable, make: Callable[[], Any]) -> Any:
        if name not in self._shared:
            self._shared[name] = make()
        return self._shared[name]

    def keep(self, tables: Mapping[str, pa.Table]) -> None:
        """Replace the partition's rows, of the first table last: whoever finds those finds the others too."""
        for name in reversed(list(tables)):
            self.outside.warehouse.write(name, tables[name], **self.place(name))

    def place(self, table: str) -> dict[str, str]:
        """The levels of the partition's rows in a table."""
        values = {**self.levels, **self._snapshot}
        return {level: values[level] for level in TABLES[table].levels if level in values}

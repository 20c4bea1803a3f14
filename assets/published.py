"""What the roll-ups have in common: one table a view, clean targets and all, in one configuration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa
from dagster import AssetExecutionContext, Config
from pydantic import Field

from assets.resources import Store
from dtef_pipeline.aggregation.boards import Evidence, load_evidence
from dtef_pipeline.aggregation.cells import TARGETS, BoardOptions
from dtef_pipeline.aggregation.resampling import RESAMPLES, SEED
from dtef_pipeline.aggregation.views import READ, Connection, held, hold, view
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.tables import METRICS
from resources.warehouse import TABLES

Make = Callable[[Connection, BoardOptions, Evidence | None], Mapping[str, pd.DataFrame]]
"""Makes frames, by the table's name, of a connection with the views READ."""


class BoardConfig(Config):
    """What boards rank by, and how sure they are."""

    metric: str = Field(default="js", description=f"Metric to rank by: {', '.join(METRICS)}.")
    resamples: int = Field(default=RESAMPLES, ge=0, description="Bootstrap resamples behind the intervals; 0: no intervals.")
    seed: int = Field(default=SEED, ge=0, description="Seed of all that is drawn.")

    def options(self, targets: str) -> BoardOptions:
        return BoardOptions(metric=self.metric, targets=targets, resamples=self.resamples, seed=self.seed)

    def recorded(self) -> dict[str, Any]:
        """As metadata."""
        return {"metric": self.metric, "resamples": self.resamples, "seed": self.seed}


@dataclass(slots=True)
class _Last:
    """What the run at hand reads: its roll-ups are made of the same scores and cells, which are read once."""

    run: str = ""
    connection: Connection | None = None
    evidence: dict[BoardOptions, Evidence] = field(default_factory=dict)

    def of(self, run: str, store: Store) -> Connection:
        """The tables that views are made of, for `held`."""
        if self.connection is None or run != self.run:
            self.forget()
            connection = store.warehouse.connect(only=READ)
            hold(connection)
            self.run, self.connection = run, connection
        return self.connection

    def forget(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.run, self.connection, self.evidence = "", None, {}

    def evidence_of(self, connection: Connection, options: BoardOptions) -> Evidence | None:
        """None where no intervals are wanted."""
        if options.resamples and options not in self.evidence:
            self.evidence[options] = load_evidence(connection, options)
        return self.evidence.get(options)


_last = _Last()


def publish(context: AssetExecutionContext, store: Store, config: BoardConfig, make: Make) -> dict[str, pa.Table]:
    """Write the tables that `make` returns by name; what was written. Raises WarehouseError before anything is scored."""
    if not store.warehouse.values("scores", "round"):
        raise WarehouseError("no scores yet: materialize the stages of a round first")
    tables = _last.of(context.run.run_id, store)

    frames: dict[str, list[pd.DataFrame]] = {}
    with held(tables) as connection:
        for targets in TARGETS:
            options = config.options(targets)
            for table, frame in make(connection, options, _last.evidence_of(connection, options)).items():
                frames.setdefault(table, []).append(frame.assign(targets=targets))
    written = {table: as_table(of_table, TABLES[table].schema) for table, of_table in frames.items()}
    for table, rows in written.items():
        store.warehouse.write(table, rows)
    store.warehouse.refresh_database()
    return written


def of_views(views: Mapping[str, str]) -> Make:
    """Makes tables, given by name, of views."""

    def make(connection: Connection, options: BoardOptions, evidence: Evidence | None) -> Mapping[str, pd.DataFrame]:
        return {table: view(connection, by, options, evidence) for table, by in views.items()}

    return make


def as_table(frames: Sequence[pd.DataFrame], schema: pa.Schema | None) -> pa.Table:
    filled = [frame for frame in frames if len(frame)]
    whole = pd.concat(filled, ignore_index=True) if filled else frames[0]
    if schema is not None:
        whole = whole[schema.names]
    return pa.Table.from_pandas(whole, schema=schema, preserve_index=False).replace_schema_metadata(None)


def clean(rows: pa.Table) -> pa.Table:
    return rows.filter(pa.compute.equal(rows["targets"], "clean"))

"""What the roll-ups of a family have in common: tables made of its scores, with clean targets and with all."""

from collections.abc import Callable, Mapping, Sequence

import duckdb
import pandas as pd
import pyarrow as pa

from assets.stage.resources import Store
from dtef_pipeline.boards.boards import Evidence, load_evidence
from dtef_pipeline.boards.cells import TARGETS, BoardOptions
from dtef_pipeline.errors import WarehouseError
from resources.warehouse import TABLES

Connection = duckdb.DuckDBPyConnection
Make = Callable[[Connection, BoardOptions, Evidence | None], Mapping[str, pd.DataFrame]]
"""Makes frames, by the table's name, of a connection with the tables that the roll-up is made of."""


def publish(store: Store, made_of: Sequence[str], options: Callable[[str], BoardOptions], make: Make) -> dict[str, pa.Table]:
    """Write the tables that `make` returns by name; what was written.

    `made_of`: the tables it reads, first the one that must be there. `options`: the board's options, by the targets.
    Raises WarehouseError before anything is scored.
    """
    first = TABLES[made_of[0]]
    if first.space and not store.warehouse.values(made_of[0], first.space.first):
        raise WarehouseError(f"no {made_of[0]} yet: materialize the stages of a {first.space.first} first")
    frames: dict[str, list[pd.DataFrame]] = {}
    with store.warehouse.connect(only=made_of) as connection:
        for chosen in map(options, TARGETS):
            evidence = _evidence(store, connection, chosen) if chosen.resamples else None
            for table, frame in make(connection, chosen, evidence).items():
                frames.setdefault(table, []).append(frame.assign(targets=chosen.targets))
    written = {table: as_table(of_table, TABLES[table].schema) for table, of_table in frames.items()}
    for table, rows in written.items():
        store.warehouse.write(table, rows)
    store.warehouse.refresh_database()
    return written


def _evidence(store: Store, connection: Connection, options: BoardOptions) -> Evidence:
    """The roll-ups of one run are made of the same cells, which are read once."""
    if options not in store.evidence:
        store.evidence[options] = load_evidence(connection, options)
    return store.evidence[options]


def as_table(frames: Sequence[pd.DataFrame], schema: pa.Schema | None) -> pa.Table:
    filled = [frame for frame in frames if len(frame)]
    whole = pd.concat(filled, ignore_index=True) if filled else frames[0]
    if schema is not None:
        whole = whole[schema.names]
    return pa.Table.from_pandas(whole, schema=schema, preserve_index=False).replace_schema_metadata(None)


def clean(rows: pa.Table) -> pa.Table:
    return rows.filter(pa.compute.equal(rows["targets"], "clean"))

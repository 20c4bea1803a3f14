"""Size, time and memory of a large site: 24 models, 7 rounds of 300 segments, 98 blueprints, 14,042 items and 20 scenarios.

Rows of the demo's warehouse are repeated under other names with other scores; then `dtef report` writes the site in a process of its own.
Run after `make demo`, with DTEF_WAREHOUSE set as the Makefile sets it:

    python -m benchmarks.large_site [--models 24] [--segments 300] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from dtef_pipeline.families import FAMILIES
from resources.settings import Settings
from resources.warehouse import TABLES, Warehouse

ROUNDS, BLUEPRINTS, ITEMS, SCENARIOS = 7, 98, 14_042, 20
_COMPARISONS = """
SELECT c.* REPLACE ('maker/model-' || a.range AS model, 'maker/model-' || a.range AS model_variant,
    'maker/model-' || b.range AS other_model, 'maker/model-' || b.range AS other_variant)
FROM (SELECT * FROM comparisons QUALIFY row_number() OVER (PARTITION BY family, first_level, context_level, targets, metric) = 1) c,
    range($1) a, range($2) b WHERE a.range < b.range"""
_SCORES = ("score", "js", "value", "coverage", "hybrid")


class Repeated(NamedTuple):
    """A column whose value `template` is repeated `times` times under other names; rows with other values are left out, but for `kept`."""

    column: str
    template: str
    times: int
    name: str
    """SQL of the new value; `{alias}.nth` counts the repetitions."""
    kept: str = "false"
    """SQL of rows that stay as they are."""


def repeated_columns(n_models: int, n_segments: int, n_mmlu: int) -> dict[str, tuple[Repeated, ...]]:
    """Return by family what is repeated. `n_mmlu`: items of the demo's MMLU suite."""
    baselines = "starts_with({alias_column}, 'baseline/') AND {alias_column} <> 'baseline/dirichlet'"

    def models(template: str, kept: str = "false") -> tuple[Repeated, ...]:
        return tuple(
            Repeated(column, template, n_models, "'maker/model-' || {alias}.nth", kept.format(alias_column=column))
            for column in ("model", "player")
        )

    n_items = -(-ITEMS // n_mmlu)
    return {
        "survey": (
            Repeated("round", "S1", ROUNDS, "'L' || {alias}.nth"),
            Repeated("segment", "country:japan", n_segments, "'country:land' || {alias}.nth"),
            *models("baseline/dirichlet", baselines),
        ),
        "rubric": (Repeated("blueprint", "demo-letters", BLUEPRINTS, "'made-' || {alias}.nth"), *models("stored/cobalt")),
        "qa": (
            Repeated("item_id", "", n_items, "item_id || '-' || {alias}.nth"),
            *models("local/smollm2-135m"),
        ),
        "games": (
            Repeated("scenario", "kuhn", SCENARIOS, "'kuhn-' || {alias}.nth"),
            *models("baseline/random", baselines.replace("dirichlet", "random")),
        ),
    }


def repeat_rows(connection: duckdb.DuckDBPyConnection, table: str, repeated: tuple[Repeated, ...], extra: str) -> pa.Table:
    """Return the rows of a table, repeated. `extra`: SQL of the rows that count."""
    columns = {row[0]: row[1] for row in connection.execute(f"DESCRIBE {table}").fetchall()}
    joins, filters, replaces = [], [extra], {}
    for number, entry in enumerate(one for one in repeated if one.column in columns):
        alias = f"d{number}"
        fits = f"{entry.column} = '{entry.template}'" if entry.template else f"{entry.column} IS NOT NULL"
        joins.append(f"LEFT JOIN (SELECT range AS nth FROM range({entry.times})) {alias} ON {fits}")
        filters.append(f"({fits} OR {entry.column} IS NULL OR {entry.kept})")
        replaces[entry.column] = f"CASE WHEN {fits} THEN {entry.name.format(alias=alias)} ELSE {entry.column} END"
    if "model" in replaces and "model_variant" in columns:
        replaces["model_variant"] = f"CASE WHEN {replaces['model']} = model THEN model_variant ELSE {replaces['model']} END"
    keys = ", ".join(replaces.values()) or "0"
    if "response" in columns:
        replaces["response"] = f"coalesce(response, 'Most of them agree. DISTRIBUTION: [40, 30, 20, 10] ' || hash({keys}))"
    for name in (name for name in _SCORES if columns.get(name) == "DOUBLE"):
        replaces[name] = f"greatest(0, least(1, {name} + hash({keys}) % 1000 / 5000.0 - 0.1))"
    replace = f" REPLACE ({', '.join(f'{sql} AS {name}' for name, sql in replaces.items())})" if replaces else ""
    rows = f"SELECT {table}.*{replace} FROM {table} {' '.join(joins)} WHERE {' AND '.join(filters)}"
    order = ", ".join(TABLES[table].levels) or "1"
    return connection.sql(f"SELECT * FROM ({rows}) ORDER BY {order}").to_arrow_table()


def list_parts(rows: pa.Table, levels: tuple[str, ...]) -> Iterator[tuple[dict[str, str], pa.Table]]:
    """Yield the rows of each partition of a table that is sorted by its levels."""
    if not levels or not len(rows):
        yield from [({}, rows)] if not levels else []
        return
    keys = rows.select(levels).to_pandas().astype(str)
    starts = [0, *np.flatnonzero((keys != keys.shift()).any(axis=1).to_numpy()[1:]) + 1, len(rows)]
    for start, end in pairwise(map(int, starts)):
        yield keys.iloc[start].to_dict(), rows.slice(start, end - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=24)
    parser.add_argument("--segments", type=int, default=300)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    folder = options.out or Path(tempfile.mkdtemp())
    # In a process of its own: a process begins with the memory of the one that starts it.
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        processes.submit(make_warehouse, folder / "warehouse", options.models, options.segments).result()
    environment = {**os.environ, "DTEF_WAREHOUSE": str(folder / "warehouse")}
    start = time.monotonic()
    report = subprocess.Popen(["dtef", "report", "--out", str(folder / "report")], env=environment, stdout=sys.stderr)
    _, status, usage = os.wait4(report.pid, 0)
    if status:
        sys.exit("dtef report has failed")
    files = [path for path in (folder / "report").rglob("*") if path.is_file()]
    print(f"seconds: {time.monotonic() - start:.0f}")
    print(f"memory: {usage.ru_maxrss / 1024:,.0f} MB")
    print(f"size: {sum(path.stat().st_size for path in files) / 1e6:,.0f} MB in {len(files):,} files, in {folder / 'report'}")


def make_warehouse(root: Path, n_models: int, n_segments: int) -> None:
    """Write the repeated rows of the warehouse of the environment into another."""
    source, target = Warehouse(Settings.read_environment().warehouse), Warehouse(root)

    def write(connection: duckdb.DuckDBPyConnection) -> None:
        (n_mmlu,) = connection.execute("SELECT count(*) FROM qa_items WHERE suite = 'demo-mmlu'").fetchone() or (1,)
        repeated = repeated_columns(n_models, n_segments, n_mmlu)
        for family in FAMILIES:
            for name in source.tables(family.all_tables):
                extra = "suite = 'demo-mmlu'" if name.startswith("qa_") else "true"
                write_rows(name, repeat_rows(connection, name, repeated[family.name], extra))
            for name in source.tables(["costs"]):
                write_rows(name, repeat_rows(connection, name, repeated[family.name], f"family = '{family.name}'"))
        write_rows("comparisons", connection.sql(_COMPARISONS, params=[n_models, n_models]).to_arrow_table())

    def write_rows(name: str, rows: pa.Table) -> None:
        spec = TABLES[name]
        for levels, part in list_parts(rows.cast(spec.schema) if spec.schema else rows, tuple(spec.levels)):
            target.write(name, part, **levels)
        print(f"{name}: {len(rows):,} rows", file=sys.stderr)

    source.query(write, only=source.tables(TABLES))


if __name__ == "__main__":
    main()

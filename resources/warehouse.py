"""Parquet between the stages, DuckDB to read it.

Layout: `<root>/<table>/round=GD4/segment=country%3Akenya[/snapshot=base]/part-0.parquet`. A file is written under a
temporary name in the same folder and renamed, so a reader sees the old rows or the new ones, never half of either.
Equal rows give equal bytes.
"""

from __future__ import annotations

import glob
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import duckdb
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from dtef_pipeline import tables
from dtef_pipeline.aggregation import published
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.identity import round_order


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table's columns and the folder levels above its files; a null schema is taken from the rows written."""

    schema: pa.Schema | None
    levels: tuple[str, ...]


SEGMENT, SNAPSHOT = ("round", "segment"), ("round", "segment", "snapshot")
TABLES: Mapping[str, TableSpec] = {
    "survey_responses": TableSpec(tables.SURVEY_RESPONSES, SEGMENT),
    "reference_scores": TableSpec(tables.REFERENCE_SCORES, SEGMENT),
    "survey_quarantine": TableSpec(tables.SURVEY_QUARANTINE, ("round",)),
    "survey_findings": TableSpec(tables.SURVEY_FINDINGS, ("round",)),
    "blueprints": TableSpec(tables.BLUEPRINTS, SEGMENT),
    "predictions": TableSpec(tables.PREDICTIONS, SNAPSHOT),
    "scores": TableSpec(tables.SCORES, SNAPSHOT),
    "segment_results": TableSpec(tables.SEGMENT_RESULTS, SNAPSHOT),
    "drift_checks": TableSpec(tables.DRIFT_CHECKS, SEGMENT),
    "model_drift": TableSpec(tables.MODEL_DRIFT, ()),
    "drift_series": TableSpec(tables.DRIFT_SERIES, ()),
    "leaderboard": TableSpec(None, ()),
    "breakdown_segment": TableSpec(None, ()),
    "breakdown_attribute": TableSpec(None, ()),
    "breakdown_question": TableSpec(None, ()),
    "breakdown_round": TableSpec(None, ()),
    "consistency": TableSpec(None, ()),
    "metric_ranks": TableSpec(None, ()),
    "comparisons": TableSpec(published.COMPARISONS, ()),
    "responsiveness": TableSpec(published.RESPONSIVENESS, ()),
    "gaps": TableSpec(published.GAPS, ()),
    "question_gaps": TableSpec(published.QUESTION_GAPS, ()),
    "reliability": TableSpec(published.RELIABILITY, ()),
    "costs": TableSpec(tables.COSTS, ()),
}
_FILE = "part-0.parquet"


class Warehouse:
    """The tables under one root, a folder or an object-store URL such as `s3://bucket/prefix`."""

    def __init__(self, root: str | Path) -> None:
        text = str(root)
        if "://" in text:
            self.fs, self.root = pafs.FileSystem.from_uri(text)
        else:
            self.fs, self.root = pafs.LocalFileSystem(), str(Path(text).absolute())

    @property
    def is_local(self) -> bool:
        return isinstance(self.fs, pafs.LocalFileSystem)

    def folder(self, table: str, **levels: str) -> str:
        """Folder of a table, or of one of its partitions; levels are given from the left, none skipped."""
        spec = _spec(table)
        given = [level for level in spec.levels if level in levels]
        if given != list(spec.levels[: len(levels)]) or len(given) != len(levels):
            raise WarehouseError(f"table {table} is kept by {spec.levels}; got {tuple(levels)}")
        return "/".join([self.root, table, *(f"{level}={quote(levels[level], safe='')}" for level in given)])

    def write(self, table: str, rows: pa.Table, **levels: str) -> int:
        """Replace one partition's rows; returns the bytes written. Raises WarehouseError when the columns differ."""
        spec = _spec(table)
        if spec.schema is not None and rows.schema.remove_metadata() != spec.schema:
            raise WarehouseError(f"{table}: columns differ from its schema: {_schema_difference(rows.schema, spec.schema)}")
        folder = self.folder(table, **levels)
        if len(levels) != len(spec.levels):
            raise WarehouseError(f"{table} is written by {spec.levels}; got {tuple(levels)}")
        self.fs.create_dir(folder, recursive=True)
        temporary = f"{folder}/.{uuid.uuid4().hex}.tmp"
        pq.write_table(rows, temporary, filesystem=self.fs, compression="zstd")
        self.fs.move(temporary, f"{folder}/{_FILE}")
        return int(self.fs.get_file_info(f"{folder}/{_FILE}").size)

    def exists(self, table: str, **levels: str) -> bool:
        return bool(self.fs.get_file_info(f"{self.folder(table, **levels)}/{_FILE}").type == pafs.FileType.File)

    def read(self, table: str, *, columns: Sequence[str] | None = None, **levels: str) -> pa.Table:
        """Rows of the partition, or of every partition below the levels given, in path order.

        Raises WarehouseError when nothing is there or a file cannot be read, naming it.
        """
        files = self._files(table, **levels)
        if not files:
            raise WarehouseError(f"no {table} {self._what(table, levels)}: nothing under {self.folder(table, **levels)}")
        return self._together(table, files, columns)

    def read_or_empty(self, table: str, *, columns: Sequence[str] | None = None, **levels: str) -> pa.Table:
        files = self._files(table, **levels)
        if files:
            return self._together(table, files, columns)
        schema = _spec(table).schema or pa.schema([])
        return schema.empty_table().select(list(columns)) if columns else schema.empty_table()

    def values(self, table: str, level: str, **levels: str) -> list[str]:
        """The values of the next folder level: rounds of a table, segments of a round, snapshots of a segment."""
        infos = self._list(self.folder(table, **levels), recursive=False)
        prefix = f"{level}="
        names = [unquote(info.base_name[len(prefix) :]) for info in infos if info.base_name.startswith(prefix)]
        return sorted(names, key=round_order) if level == "round" else sorted(names)

    def drop_segment(self, round_id: str, segment: str) -> None:
        """Remove a segment's rows from every table kept by segment."""
        for table, spec in TABLES.items():
            if spec.levels[:2] == SEGMENT:
                folder = self.folder(table, round=round_id, segment=segment)
                if self.fs.get_file_info(folder).type == pafs.FileType.Directory:
                    self.fs.delete_dir(folder)

    def rounds(self) -> list[str]:
        return self.values("survey_responses", "round")

    def segments(self, round_id: str) -> list[str]:
        return self.values("survey_responses", "segment", round=round_id)

    def connect(self, *, only: Iterable[str] | None = None) -> duckdb.DuckDBPyConnection:
        """An in-memory DuckDB connection with a view a table that exists."""
        connection = duckdb.connect()
        connection.execute("SET python_enable_replacements = false")  # a name is a view, never a variable of this process
        connection.execute("SET enable_progress_bar = false")  # it would stand in the output that other programs read
        for table in only or TABLES:
            if self.is_local:
                if sql := self._view_sql(table):
                    connection.execute(sql)
            elif self._files(table):
                connection.register(table, self.read(table))
        return connection

    def refresh_database(self) -> Path | None:
        """Write `dtef.duckdb` (views only) for other tools; replaced whole, so no reader is ever locked out."""
        if not self.is_local:
            return None
        target, temporary = Path(self.root) / "dtef.duckdb", Path(self.root) / f".{uuid.uuid4().hex}.duckdb"
        Path(self.root).mkdir(parents=True, exist_ok=True)
        with duckdb.connect(str(temporary)) as connection:
            for table in TABLES:
                if sql := self._view_sql(table):
                    connection.execute(sql)
        temporary.replace(target)
        return target

    def _view_sql(self, table: str) -> str | None:
        depth = len(_spec(table).levels)
        folder = Path(self.root) / table
        if next(folder.glob("/".join(["*"] * depth + [_FILE])), None) is None:
            return None
        pattern = "/".join([glob.escape(str(folder)), *["*"] * depth, _FILE]).replace("'", "''")
        return f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{pattern}', hive_partitioning = false)"

    def _files(self, table: str, **levels: str) -> list[str]:
        if len(levels) == len(_spec(table).levels):
            return [f"{self.folder(table, **levels)}/{_FILE}"] if self.exists(table, **levels) else []
        infos = self._list(self.folder(table, **levels), recursive=True)
        return sorted(info.path for info in infos if info.base_name == _FILE)

    def _list(self, folder: str, *, recursive: bool) -> list[pafs.FileInfo]:
        return list(self.fs.get_file_info(pafs.FileSelector(folder, recursive=recursive, allow_not_found=True)))

    def _together(self, table: str, files: Sequence[str], columns: Sequence[str] | None) -> pa.Table:
        tables = [self._read_file(file, columns) for file in files]
        schema = _spec(table).schema
        wanted = tables[0].schema if schema is None else pa.schema([schema.field(name) for name in columns or schema.names])
        for file, rows in zip(files, tables, strict=True):
            if rows.schema.remove_metadata() != wanted:
                raise WarehouseError(
                    f"{file} was written by another version: {_schema_difference(rows.schema, wanted)}; materialize that partition "
                    "again to mend it (`dtef run --ingest` asks only for answers that are missing)"
                )
        return pa.concat_tables(tables)

    def _read_file(self, path: str, columns: Sequence[str] | None) -> pa.Table:
        try:
            # One known file: the data set machinery (and its guessing of folder columns) is not wanted.
            with self.fs.open_input_file(path) as source:
                rows = pq.ParquetFile(source).read(columns=list(columns) if columns else None)
        except (OSError, pa.ArrowException) as error:
            raise WarehouseError(f"cannot read {path}: {error}; materialize that partition again to mend it") from error
        if lacking := sorted(set(columns or ()) - set(rows.column_names)):
            raise WarehouseError(f"{path} has no column {', '.join(lacking)}; materialize that partition again to mend it")
        return rows

    def _what(self, table: str, levels: Mapping[str, str]) -> str:
        if "round" in levels and table == "survey_responses":
            known = ", ".join(self.rounds()) or "none"
            return f"for {', '.join(f'{k} {v}' for k, v in levels.items())} (ingested rounds: {known})"
        return f"for {', '.join(f'{k} {v}' for k, v in levels.items())}" if levels else "yet"


def _spec(table: str) -> TableSpec:
    if table not in TABLES:
        raise WarehouseError(f"unknown table {table!r}; tables: {', '.join(TABLES)}")
    return TABLES[table]


def _schema_difference(got: pa.Schema, wanted: pa.Schema) -> str:
    got_fields, wanted_fields = ({f"{f.name}: {f.type}" for f in schema} for schema in (got, wanted))
    extra, lacking = sorted(got_fields - wanted_fields), sorted(wanted_fields - got_fields)
    return re.sub(r"\s+", " ", f"unexpected {extra or 'none'}, lacking {lacking or 'none'}, or another order")

"""The rows of the shown runs, copied once: opening the files of all blueprints for each run would take minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.report.row_reader import StoredRows

_RUN_TABLES = ("rubric_responses", "rubric_judgements", "rubric_points", "rubric_similarities", "rubric_scores")
_BLUEPRINT_TABLES = ("rubric_blueprints", "rubric_prompts", "rubric_criteria", "rubric_findings")
_NOT_READ = {"rubric_judgements": ("list_order", "request_keys"), "rubric_responses": ("request_keys",)}
_LESS = {
    "raw": ("CASE WHEN class IS NULL THEN raw END", "class"),
    "transcript": ("CASE WHEN turns > 1 THEN transcript END", "turns"),
}
"""Columns that pages show in part: unreadable replies of judges, and conversations of several turns."""


class LatestRunRows(StoredRows):
    """The tables of a connection; tables of results have only the shown snapshot of each blueprint."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, runs: Mapping[str, str]) -> None:
        super().__init__(connection)
        run_rows = pd.DataFrame({"blueprint": list(runs), "snapshot": list(runs.values())}, dtype="str")
        connection.register("shown_runs", run_rows)
        self._copied: set[str] = set()
        for name in (*_RUN_TABLES, *_BLUEPRINT_TABLES):
            if "blueprint" in super().columns(name):
                self._copy(name)
        connection.unregister("shown_runs")

    def _copy(self, name: str) -> None:
        columns = super().columns(name)
        left_out = ", ".join(column for column in _NOT_READ.get(name, ()) if column in columns)
        less = ", ".join(f"{part} AS {column}" for column, (part, read) in _LESS.items() if {column, read} <= columns)
        projection = (f" EXCLUDE ({left_out})" if left_out else "") + (f" REPLACE ({less})" if less else "")
        condition = " AND ".join(f"rows.{key}::VARCHAR = shown.{key}" for key in ("blueprint", "snapshot") if key in columns)
        only = f"SEMI JOIN shown_runs AS shown ON {condition}" if name in _RUN_TABLES else ""
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE shown_{name} AS SELECT rows.*{projection} FROM {name} AS rows {only} ORDER BY blueprint"
        )
        self._copied.add(name)

    def columns(self, name: str) -> frozenset[str]:
        """Return the columns of the copy, if there is one."""
        return super().columns(self._copy_of(name))

    def table(self, name: str, columns: Sequence[str], where: Mapping[str, Any], order: Sequence[str] = ()) -> pa.Table:
        """Read from the copy, if there is one."""
        return super().table(self._copy_of(name), columns, where, order)

    def _copy_of(self, name: str) -> str:
        return f"shown_{name}" if name in self._copied else name

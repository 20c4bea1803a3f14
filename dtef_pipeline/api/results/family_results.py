"""Results of a run, computed from the tables of any family. Families that need more have their own class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.api.answer_schemas import convert_to_json
from dtef_pipeline.api.results.result_routes import RunResponse
from dtef_pipeline.api.results.run_context import OutcomeCounts, RunContext, Unit, UsageTotals, count_by_group, format_remarks
from dtef_pipeline.boards.costs import count_calls_once, sum_usage
from dtef_pipeline.boards.item_means import compute_result_means
from dtef_pipeline.drift.verdict_tables import ANCHOR_TABLES
from dtef_pipeline.families import FAMILY_BY_NAME, TABLES
from dtef_pipeline.family.item_scores import build_scores_sql
from dtef_pipeline.keys import MODEL

Row = dict[str, Any]
Counts = Mapping[Hashable, OutcomeCounts]
_USUAL_NAMES = ("item_id", "prompt_id", "model_variant", "draw")


class FamilyResults:
    """The results of one run of a family, with defaults for families without a class of their own."""

    unit = Unit("response", "given")
    """The counted unit."""
    answers = ""
    """Table with a row per unit, and the stage that makes requests; empty: the family's first table of calls."""
    status = "call_status"
    answer_keys: tuple[str, ...] = ()
    """Key columns of an answer within a partition, here and in the table of scores; empty: the usual ones that both have."""
    setting_columns: tuple[str, ...] = ("model",)
    """Columns of model and condition, by which outcomes are counted."""
    choice_columns: tuple[str, ...] = ("model", "draw")
    """Columns that decide whether a row belongs to the run."""
    call_tables: tuple[str, ...] = ()
    """Tables whose calls count for the run's cost; empty: all of the family's but anchors, which are judged apart from runs."""
    extra_tables: tuple[str, ...] = ()
    """Tables of the results, in addition to answers, calls and scores."""
    board = ""
    """Table that publishes the same means for all runs; empty: none."""
    value, ends, known = "score", ("score_low", "score_high"), "n_items"
    """Columns of a row of means: the mean, the ends of its interval, and its number of units."""
    board_columns: tuple[str, ...] = ()
    """Columns of the board that are included in a metric of the run."""
    shared_members: Row = {}
    """Columns included in every metric of the run."""
    trace_columns: tuple[str, ...] = ("request_key",)
    """Columns of the id of a trace."""
    traced_tables: Mapping[str, str] = {}
    """The tables whose rows about an answer are part of its trace, by member; empty: the table of scores."""

    def __init__(self, run: RunContext) -> None:
        self.run, self.family = run, FAMILY_BY_NAME[run.evaluation.family]
        self.answers = self.answers or self.family.calls.tables[0].table
        schemas = [TABLES[table].schema for table in (self.answers, self.family.scores_table)]
        self.answer_keys = self.answer_keys or tuple(
            name for name in _USUAL_NAMES if all(schema is None or name in schema.names for schema in schemas)
        )
        in_partitions = (source.table for source in self.family.calls.tables if source.table not in ANCHOR_TABLES)
        self.call_tables = self.call_tables or tuple(in_partitions)
        self.traced_tables = self.traced_tables or {"scores": self.family.scores_table}

    @property
    def source_tables(self) -> tuple[str, ...]:
        """The tables that results read."""
        return tuple(dict.fromkeys((self.answers, *self.call_tables, self.family.scores_table, *self.extra_tables)))

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The plan's configuration of the stage that makes requests."""
        return self.run.stage_config(self.answers)

    @property
    def draws(self) -> int:
        return int(self.config.get("draws", 1))

    @cached_property
    def models(self) -> set[str]:
        """The models of the plan, by their names in tables."""
        return self.run.names(self.config.get("models", ()))

    def select_rows(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Select the rows of the plan's models and draws."""
        rows = filter_models(self.run.rows(table, self._add_choice_columns(table, columns)), self.models)
        return rows.filter(pc.less(rows["draw"], self.draws)) if "draw" in rows.column_names else rows

    def _add_choice_columns(self, table: str, columns: Sequence[str] | None) -> list[str] | None:
        """Add to the columns those that identify a row's run."""
        schema = TABLES[table].schema
        if columns is None or schema is None:
            return None
        return list(dict.fromkeys((*columns, *(name for name in self.choice_columns if name in schema.names))))

    def counts(self) -> dict[Hashable, OutcomeCounts]:
        """Return the outcome counts by model and condition."""
        names = self.find_scored_names()
        rows = ((self.setting_of(row), row[self.status], self.name_of(row) in names) for row in self.read_outcome_rows())
        return count_by_group(rows, self.count_planned())

    def read_outcome_rows(self) -> list[Row]:
        """Read the answers with their outcome."""
        rows: list[Row] = self.select_rows(self.answers, (*self.answer_keys, *self.setting_columns, self.status)).to_pylist()
        return rows

    def find_scored_names(self) -> set[tuple[Any, ...]]:
        """Return the keys of rows with a score."""
        rows = self.run.rows(self.family.scores_table, [*self.answer_keys, "score"])
        return {self.name_of(row) for row in rows.filter(pc.is_valid(rows["score"])).to_pylist()}

    def name_of(self, row: Mapping[Any, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.answer_keys)

    def setting_of(self, row: Mapping[Any, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.setting_columns)

    def count_planned(self) -> dict[Hashable, int] | None:
        """Count the planned answers by model and condition; None: unknown."""
        return None

    def metrics(self, counts: Counts) -> list[Row]:
        """Return a member for each model and metric. `counts`: the outcome counts."""
        return [self._build_metric(row, counts) for row in self.read_means(counts)]

    def read_means(self, counts: Counts) -> Iterator[Mapping[Any, Any]]:
        """Read the means of the run as on the family's board, one row per model and metric. The default is for families of items.

        In addition to the columns of the class, a row has `metric`, `n_requested` (planned number of units; None: unknown), `reason` (why there
        is no value or no interval) and `remarks`.
        """
        table, columns = self.family.scores_table, self.family.scores
        with open_tables(**{table: self.select_rows(table)}) as connection:
            scores = connection.sql(build_scores_sql(table, self.family.space, columns)).to_arrow_table()
        for row in compute_result_means(scores, (*columns.board, *MODEL)).to_pylist():
            yield row | {"n_requested": row["n_total"], "reason": row["note"], "remarks": ()}

    def _build_metric(self, row: Mapping[Any, Any], counts: Counts) -> Row:
        """Build a metric; NaN and NA become None."""
        value, low, high = (convert_to_json(row[name]) for name in (self.value, *self.ends))
        n, n_requested = (None if count is None else int(count) for count in (row[self.known], row["n_requested"]))
        members = {"model": row["model"], "metric": row["metric"], "value": value, "n": n, "n_requested": n_requested}
        extra = {name: convert_to_json(row[name]) for name in self.board_columns} | self.shared_members
        return {
            **members,
            "low": low,
            "high": high,
            "reason": convert_to_json(row["reason"]) or (None if value is not None else "there is no score"),
            "remark": self.remark(counts, row, *row["remarks"]),
            **extra,
        }

    def remark(self, counts: Counts, row: Mapping[Any, Any], *remarks: str | None) -> str | None:
        """Return remarks on a model and condition: missing answers and other notes."""
        outcomes = counts.get(self.setting_of(row))
        return format_remarks(outcomes.describe_missing(self.unit) if outcomes else None, *remarks)

    def count_other_answers(self) -> Counter[tuple[Any, ...]]:
        """Count by model and condition the answers of other runs, such as further draws, which a board includes."""
        answers = filter_models(self.run.rows(self.answers, self.setting_columns), self.models)
        own_answers = self.select_rows(self.answers, self.setting_columns)
        return Counter(map(self.setting_of, answers.to_pylist())) - Counter(map(self.setting_of, own_answers.to_pylist()))

    def cost(self) -> UsageTotals:
        """Sum the cost of the calls behind the run's rows, each once. The usage of a request may be in a row of another run."""
        keys = self.request_keys()
        with open_tables(**{table: self._filter_keys(table, keys) for table in self.call_tables}) as connection:
            count_calls_once(connection, self.family.calls, self.run.response_finder(), self.run.unknown_costs(keys))
            usage = sum_usage(connection)
        usd = 0.0 if usage["cost_usd"] is None and not usage["calls"] else usage["cost_usd"]
        n_unpriced, max_usd = max(usage["unpriced"], usage["unknown_cost_attempts"]), usage["unknown_cost_usd_most"]
        return UsageTotals(usd, usage["calls"], usage["prompt_tokens"], usage["completion_tokens"], n_unpriced, max_usd)

    def _filter_keys(self, table: str, keys: set[str]) -> pa.Table:
        schema, column = TABLES[table].schema, self._key_columns[table]
        if schema is None or pa.types.is_list(schema.field(column).type):
            return self.select_rows(table)
        # The texts are not needed for the cost of a call.
        rows = self.run.rows(table, [name for name in schema.names if name != "response"])
        return rows.filter(is_in(rows[column], keys))

    @cached_property
    def _key_columns(self) -> Mapping[str, str]:
        return {source.table: source.keys for source in self.family.calls.tables}

    def request_keys(self) -> set[str]:
        """Return the keys of the calls behind the run's rows."""
        keys = set[str]()
        for table in self.call_tables:
            column = self._key_columns[table]
            for value in self.select_rows(table, (column,))[column].drop_null().to_pylist():
                keys.update([value] if isinstance(value, str) else value)
        return keys

    def trace_id(self, row: Mapping[str, Any]) -> str | None:
        """Return the trace id of a row of the answers; None: it has no trace."""
        value: str | None = row[self.trace_columns[0]]
        return value

    def traces(self) -> list[str]:
        """Return the ids of all traces, sorted."""
        rows = self.select_rows(self.answers, self.trace_columns).to_pylist()
        return sorted({trace_id for row in rows if (trace_id := self.trace_id(row)) is not None})

    def trace(self, trace_id: str) -> Row | None:
        """Return a trace as JSON values; None: the run has no such trace."""
        rows = self.select_rows(self.answers)
        named = [self.trace_id(row) == trace_id for row in rows.select(self.trace_columns).to_pylist()]
        answers = rows.filter(pa.array(named, pa.bool_())).to_pylist()
        return self.build_trace(answers) if answers else None

    def build_trace(self, answers: Sequence[Row]) -> Row:
        """Build a trace from the rows based on the response. Usage is in one of the rows that share it."""
        row = max(answers, key=lambda answer: answer["prompt_tokens"] or 0)
        members = {"status": row["call_status"], "text": row["response"], "reason": row["error"]}
        return RunResponse.select_columns(row) | members | self.list_related_members(answers)

    def list_related_members(self, answers: Sequence[Row]) -> dict[str, list[Row]]:
        """Return the members of a trace with rows of other tables about the same answers, as JSON values."""
        columns = RunResponse.list_columns()
        return {
            member: [
                {name: value for name, value in row.items() if name not in columns}
                for row in map(convert_to_json, self.find_related_rows(answers, table))
            ]
            for member, table in self.traced_tables.items()
        }

    def find_related_rows(self, answers: Sequence[Row], table: str) -> list[Row]:
        """Return the rows of another table about the same answers."""
        key, names = self.answer_keys[0], set(map(self.name_of, answers))
        rows = self.run.rows(table)
        rows = rows.filter(is_in(rows[key], {row[key] for row in answers}))
        return [row for row in rows.to_pylist() if self.name_of(row) in names]


@contextmanager
def open_tables(**tables: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a connection to these tables. It uses one thread, because the server handles other requests at the same time."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        for name, rows in tables.items():
            connection.register(name, rows)
        yield connection


def filter_models(rows: pa.Table, names: set[str]) -> pa.Table:
    """Return the rows of models with these names."""
    return rows.filter(is_in(rows["model"], names))


def is_in(column: pa.ChunkedArray, values: set[str]) -> pa.ChunkedArray:
    """Return flags for values of a text column that are among these."""
    return pc.is_in(column.cast(pa.string()), pa.array(sorted(values), pa.string()))


def count_different_items(rows: pa.Table, columns: Sequence[str], item: str) -> Counter[tuple[str, ...]]:
    """Count the distinct items of the rows, by these columns."""
    names = zip(*(rows[name].cast(pa.string()).to_pylist() for name in (*columns, item)), strict=True)
    return Counter(name[:-1] for name in set(names))

"""Items of a family that the engine assembles: their calls, the columns of their scores, and what boards, drift and comparisons read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.asking.calls import CallTable
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Message, Request
from dtef_pipeline.asking.snapshot_order import order_in
from dtef_pipeline.boards.item_board import encode_columns, rank_item_board, select_latest_rows
from dtef_pipeline.boards.mean_columns import ITEM_BOARD_COLUMNS
from dtef_pipeline.boards.pairs import compare_boards
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import PartSettings
from dtef_pipeline.family.stage import CallPlan, Inputs, Tables
from dtef_pipeline.identity import compute_messages_id
from dtef_pipeline.keys import Space
from dtef_pipeline.tables import (
    ANSWERED_AT_FIELD,
    COMPARISONS,
    CUT_FIELD,
    METRIC_FIELD,
    MODEL_FIELDS,
    PROMPT_FIELD,
    SAMPLE_FIELDS,
    SNAPSHOT_FIELD,
    build_family_rows,
    field,
    stack_cuts,
)

AskItem = Callable[[Mapping[str, Any]], Sequence[Message]]
"""What a model is asked of an item, given its row."""


def plan_items(
    inputs: Inputs, settings: PartSettings, table: str, schema: pa.Schema, items: pa.Table, ask: AskItem
) -> CallPlan:
    """Plan one request per model, item and draw, and build the rows of `table` from the responses and the rows of earlier runs.

    `schema`: schema of the table: the item columns including `item_id`, and those of `tables.CALL`. Raises ConfigError if a model is a
    baseline.
    """
    specs = inputs.models.resolve(settings.models) if settings.models else ()
    if names := [spec.name for spec in specs if spec.is_computed]:
        raise ConfigError(
            f"model {', '.join(names)}: it is computed from answers of people; allowed: a model that can be called"
        )
    calls = _ItemCalls(inputs, settings, specs, table, schema, items, [tuple(ask(row)) for row in items.to_pylist()])
    size = len(items) * settings.draws
    expected = {spec.name: size for spec in specs}
    return CallPlan(specs, expected, size * len(specs), lambda: calls.requests, calls.keys, calls.rows, calls.merge_with_stored)


@dataclass(frozen=True)
class _ItemCalls:
    inputs: Inputs
    settings: PartSettings
    specs: Sequence[ModelSpec]
    table: str
    schema: pa.Schema
    items: pa.Table
    messages: Sequence[tuple[Message, ...]]
    """Of each item."""

    @cached_property
    def requests(self) -> list[Request]:
        settings = self.settings
        batch = (
            Request.build_request(messages, spec, draw, settings.snapshot)
            for spec in self.specs
            for messages in self.messages
            for draw in range(settings.draws)
        )
        return list({request.key: request for request in batch}.values())

    @cached_property
    def _prompts(self) -> pa.Table:
        ids = [compute_messages_id((message.role, message.text) for message in messages) for messages in self.messages]
        return self.items.append_column("prompt_id", pa.array(ids, pa.string()))

    @cached_property
    def _calls(self) -> CallTable:
        columns = tuple(name for name in self._prompts.column_names if name in self.schema.names)
        return CallTable(self.schema, columns, ("item_id",), lambda options, reading: ())

    def keys(self) -> list[str]:
        return [request.key for request in self.requests]

    def rows(self, responses: pa.Table, failures: Mapping[str, Failure]) -> Tables:
        draws, snapshot, prompts = self.settings.draws, self.settings.snapshot, self._prompts
        tables = (self._calls.build_answered_rows(prompts, spec, draws, snapshot, responses, failures) for spec in self.specs)
        return {self.table: pa.concat_tables([self.schema.empty_table(), *tables])}

    def merge_with_stored(self, new: Tables) -> Tables:
        """Return the new rows together with the stored rows of other models."""
        return {self.table: self._calls.merge_rows(self.inputs.earlier(self.table), new[self.table], self._prompts)}


SCORED_ITEM = (
    SNAPSHOT_FIELD,
    field("item_id", pa.string(), "Item, by its id in the file"),
    field("cluster", pa.string(), "Cluster of related items; empty: the item is its own cluster"),
    PROMPT_FIELD,
    field("truth_id", pa.string(), "Hash of the truth that the response is scored against"),
    *MODEL_FIELDS,
    *SAMPLE_FIELDS,
    METRIC_FIELD,
    field("status", pa.string(), "State of the score: ok, unparseable, or why it is missing"),
    field("score", pa.float64(), "Score, 0-1: higher is better; 0 if unreadable; null: means exclude it"),
    field("reason", pa.string(), "Reason why there is no score; null: there is one"),
    ANSWERED_AT_FIELD,
)
"""The columns of a table of scores, except the levels of its partitions."""
OVERALL, BY_PART = "overall", "part"
"""The cuts of a board of items."""


@dataclass(frozen=True, slots=True)
class ItemScores:
    """The columns of a family's score table that identify what was scored. The other columns are those of SCORED_ITEM."""

    item: str = "item_id"
    cluster: str = "cluster"
    score: str = "score"
    asked: tuple[str, ...] = ()
    """Columns of the setting. Scores that differ in them, or in the metric, are never averaged together."""
    cluster_noun: str = "cluster"
    """The word for a cluster."""

    @property
    def board(self) -> tuple[str, ...]:
        """The columns that identify a board."""
        return (*self.asked, "metric")


def build_board_schema(scores: pa.Schema, space: Space, columns: ItemScores) -> pa.Schema:
    """Return the schema of the family's board: one row per cut, board and model variant."""
    return pa.schema([CUT_FIELD, *(scores.field(name) for name in (*_list_levels(space), *columns.board)), *ITEM_BOARD_COLUMNS])


def _list_levels(space: Space) -> list[str]:
    return [name for name in (space.first, space.second) if name]


def build_scores_sql(table: str, space: Space, columns: ItemScores) -> str:
    """Return the SQL that selects scores for boards and drift, with texts, items and clusters under common names."""
    levels = _list_levels(space)
    texts = [*levels, *columns.board, "model", "model_variant", "snapshot", "prompt_id", "truth_id"]
    item = f"{columns.item}::VARCHAR"
    return f"""
        SELECT {", ".join(f"coalesce({name}, '')::VARCHAR AS {name}" for name in texts)},
            {item} AS item_id, coalesce(nullif({columns.cluster}, ''), {item})::VARCHAR AS cluster,
            temperature, draw, status, {columns.score} AS score, CASE status WHEN 'ok' THEN {columns.score} END AS value, answered_at
        FROM {table}
    """


def compute_item_boards(
    connection: duckdb.DuckDBPyConnection, family: str, table: str, space: Space, columns: ItemScores, schema: pa.Schema
) -> Mapping[str, pa.Table]:
    """Return the family's board (`FAMILY_board`) and its rows of `comparisons`, by table name.

    Each partition contributes its latest snapshot in which at least half of the items have scores. Items belong to one partition; clusters
    may span partitions.
    """
    levels = _list_levels(space)
    series = (*levels, *columns.board, "model_variant")
    item_key = f"concat_ws('/', {', '.join(levels)}, item_id)"
    cluster = f"CASE WHEN cluster = item_id THEN {item_key} ELSE cluster END"
    part = f"SELECT * REPLACE ({item_key} AS item_id, {cluster} AS cluster), concat_ws('/', {', '.join(levels)}) AS part"
    rows = connection.sql(
        f"{part} FROM ({build_scores_sql(table, space, columns)}) ORDER BY {', '.join((*series, 'snapshot', 'item_id', 'draw'))}"
    ).to_arrow_table()
    texts = ("part", *series, "model", "snapshot", "item_id", "cluster")
    order = order_in(connection, table)
    latest = encode_columns(select_latest_rows(connection, encode_columns(rows, texts), series, order), texts)
    cuts = {OVERALL: columns.board, BY_PART: (*levels, *columns.board)}
    boards = {name: rank_item_board(latest, names, order) for name, names in cuts.items()}
    comparisons = compare_boards(latest, columns.board)
    return {
        f"{family}_board": stack_cuts(boards, schema, list_cuts(space)),
        "comparisons": build_family_rows(comparisons, COMPARISONS, family),
    }


def list_cuts(space: Space) -> dict[str, tuple[str, ...]]:
    """Return, by name of a cut, the columns that only this cut has."""
    return {OVERALL: ("n_parts",), BY_PART: tuple(_list_levels(space))}

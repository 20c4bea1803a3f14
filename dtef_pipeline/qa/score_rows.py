"""The rows of `qa_scores`: the score of every response by every scorer of its item. Makes no requests and runs no programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.snapshot_order import order_in
from dtef_pipeline.boards.item_board import encode_columns, select_latest_rows
from dtef_pipeline.qa.judging.arbitration import NOT_IN_SAMPLE
from dtef_pipeline.qa.model import CITES_NOTHING, ItemScore, WrittenResponse
from dtef_pipeline.qa.tables import QA_SCORES

_FROM_RESPONSES = (
    "suite",
    "part",
    "item_id",
    "condition",
    "model",
    "model_variant",
    "temperature",
    "draw",
    "snapshot",
    "prompt_id",
    "request_key",
    "answered_at",
)
_OF_THE_ITEM = ("type", "cluster", "truth_id")
ANSWERED_CALL = "answered"
"""Status of a call with a response."""
_FILTERED = "content_filter"


class Measure(NamedTuple):
    """A metric, its scorer, and how it was measured."""

    scorer: str
    version: int
    metric: str
    measured_by: str
    """How the score was measured, such as `exact_choice 1`; scores that differ in it are never averaged together."""
    lexicon: str | None = None


ScoreOf = Callable[[int, WrittenResponse], Sequence[tuple[Measure, ItemScore]]]
"""Returns the scores of a response, one per metric, given its place in the table and its text."""


_PlacedScore = tuple[int, Measure, ItemScore]
"""The place of a response in its table, and a score of it."""


def score_rows(
    responses: pa.Table,
    items: pa.Table,
    list_scores: ScoreOf,
    measures: Mapping[str, Sequence[Measure]],
    left_out: Callable[[int, Measure], bool] = lambda place, measure: False,
) -> pa.Table:
    """Return one row per response, scorer and metric, in the order of the responses.

    `responses`: rows of `qa_responses`; `items`: rows of `qa_items`, one for each response. `measures`: the measures by item, for calls
    without a response: they get the status of the call instead of a score, unless `left_out` says that the judge's sample omits their
    place.
    """
    results: list[_PlacedScore] = []
    names = ("item_id", "call_status", "response", "finish_reason", "error")
    for place, (item, status, text, reason, error) in enumerate(
        zip(*(responses[name].to_pylist() for name in names), strict=True)
    ):
        if (fallback := _score_without_response(status, reason, error)) is None:
            results += [(place, *scored) for scored in list_scores(place, WrittenResponse(text, reason))]
        else:
            results += [(place, measure, NOT_IN_SAMPLE if left_out(place, measure) else fallback) for measure in measures[item]]
    return _build_score_table(responses, items, results)


def _score_without_response(status: str, reason: str | None, error: str | None) -> ItemScore | None:
    """Return the score of a call that failed or was filtered, or None if there is a response."""
    if status != ANSWERED_CALL:
        return ItemScore(status, reason=error)
    if reason == _FILTERED:
        return ItemScore("refused", reason="the provider's content filter stopped the response")
    return None


def _build_score_table(responses: pa.Table, items: pa.Table, results: Sequence[_PlacedScore]) -> pa.Table:
    rows = responses.select(list(_FROM_RESPONSES)).take(pa.array([place for place, _, _ in results], pa.int64()))
    columns: dict[str, Any] = {name: rows[name] for name in rows.column_names}
    place = pc.index_in(rows["item_id"], value_set=items["item_id"].combine_chunks())
    columns |= {name: items[name].take(place) for name in _OF_THE_ITEM}
    measures, scores = [measure for _, measure, _ in results], [score for _, _, score in results]
    columns |= {
        name: [getattr(measure, name) for measure in measures] for name in ("scorer", "metric", "measured_by", "lexicon")
    }
    columns |= {name: [getattr(score, name) for score in scores] for name in ("status", "value", "score", "read_by", "reason")}
    columns |= {
        "scorer_version": [measure.version for measure in measures],
        "flags": [list(score.flags) for score in scores],
        "detail": [
            json.dumps(score.details, ensure_ascii=False, sort_keys=True, default=str) if score.details else None
            for score in scores
        ],
    }
    arrays = [
        column.cast(entry.type) if isinstance(column := columns[entry.name], pa.ChunkedArray) else pa.array(column, entry.type)
        for entry in QA_SCORES
    ]
    return pa.table(arrays, schema=QA_SCORES)


QA_BOARD_COLUMNS = (
    *("suite", "part", "item_id", "condition", "metric", "measured_by", "model", "model_variant", "snapshot", "draw"),
    *("cluster", "type", "status", "value", "score", "cites_nothing"),
)
"""Columns of `qa_scores` that boards read, and `cites_nothing`: whether a response has no score because it has no quotations."""
_CODED_TEXTS = (
    *("suite", "part", "item_id", "condition", "metric", "measured_by", "model", "model_variant", "snapshot", "cluster"),
    *("type",),
)
_BOARD_SERIES = ("suite", "part", "condition", "metric", "measured_by", "model_variant")


def load_qa_snapshot_order(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the snapshots of all parts, the earliest first. `connection` has `qa_scores`."""
    return order_in(connection, "qa_scores")


def load_qa_scores(connection: duckdb.DuckDBPyConnection, columns: Sequence[str] = QA_BOARD_COLUMNS) -> pa.Table:
    """Return the rows of `qa_scores` in a fixed order; columns with repeated values are dictionaries. `connection` has the table."""
    text = {name: f"{name}::VARCHAR AS {name}" for name in _CODED_TEXTS}
    text |= {name: f"coalesce({name}, '')::VARCHAR AS {name}" for name in ("condition", "metric", "measured_by")}
    expressions = {**text, "cluster": "coalesce(nullif(cluster, ''), item_id)::VARCHAR AS cluster"}
    expressions["cites_nothing"] = f"coalesce(reason = '{CITES_NOTHING}', false) AS cites_nothing"
    named = ", ".join(expressions.get(name, name) for name in columns)
    order = ", ".join(("suite", "part", "condition", "metric", "measured_by", "model_variant", "snapshot", "item_id", "draw"))
    return encode_columns(connection.sql(f"SELECT {named} FROM qa_scores ORDER BY {order}").to_arrow_table(), _CODED_TEXTS)


def load_latest_scores(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return the rows of one snapshot for each part, condition, metric, `measured_by` and model variant (see `select_latest_rows`), with
    the columns QA_BOARD_COLUMNS.

    `connection` has `qa_scores`.
    """
    order = load_qa_snapshot_order(connection)
    return encode_columns(select_latest_rows(connection, load_qa_scores(connection), _BOARD_SERIES, order), _CODED_TEXTS)

"""Results of a run of questions with expected answers: a part of a suite."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.api.results_of import RunAsked, Spent, in_json, measured, response_told, spent_in
from dtef_pipeline.qa.latest_scores import qa_scores
from dtef_pipeline.qa.role_costs import qa_costs
from dtef_pipeline.qa.suite_boards import qa_results

_READ_OF_SCORES = (
    *("suite", "part", "item_id", "condition", "metric", "measured_by", "model", "model_variant", "snapshot", "draw"),
    *("cluster", "type", "status", "value", "score", "reason"),
)
_TOLD_OF_ITEM_SCORES = ("metric", "measured_by", "status", "value", "score", "reason")
_TOLD_OF_JUDGEMENTS = ("evaluator", "judge_model", "score", "reason", "explanation")
_ANSWER = ("item_id", "condition", "model_variant", "draw")


def metrics_of(asked: RunAsked) -> list[dict[str, Any]]:
    """Of each model, condition, metric and what it was measured by the mean over items, as in `qa_results` and `dtef qa board --by part`."""
    rows = _own(asked, "qa_scores", _READ_OF_SCORES)
    if not len(rows):
        return []
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("qa_scores", rows)
        found = qa_results(qa_scores(connection))
    return [
        measured(
            row["model"],
            row["metric"],
            row["score"],
            row["n_items"],
            (row["score_low"], row["score_high"]),
            row["note"],
            condition=row["condition"],
            measured_by=row["measured_by"],
            direction="higher",
            interval_kind=in_json(row["interval_kind"]),
            parse_rate=in_json(row["parse_rate"]),
        )
        for row in found.to_dict("records")
    ]


def cost_of(asked: RunAsked) -> Spent:
    """Of the models' answers, and of what a judge said of them."""
    with duckdb.connect() as connection:
        for table in ("qa_responses", "qa_judgements"):
            connection.register(table, _own(asked, table))
        return spent_in(qa_costs(connection, asked.stored()).to_pylist())


def traces_of(asked: RunAsked) -> list[str]:
    """The request keys of the responses."""
    return sorted(set(_own(asked, "qa_responses", ("model", "request_key"))["request_key"].drop_null().to_pylist()))


def trace_of(asked: RunAsked, trace_id: str) -> dict[str, Any] | None:
    """The response, and of each item that it answers the scores and what a judge said."""
    rows = _own(asked, "qa_responses")
    found = rows.filter(pc.equal(rows["request_key"], trace_id)).to_pylist()
    if not found:
        return None
    scores, judged = (_own(asked, table).to_pylist() for table in ("qa_scores", "qa_judgements"))
    items = [
        {
            "item_id": row["item_id"],
            "condition": row["condition"],
            "scores": _beside(row, scores, _TOLD_OF_ITEM_SCORES),
            "judgements": _beside(row, judged, _TOLD_OF_JUDGEMENTS),
        }
        for row in found
    ]
    paid = max(found, key=lambda row: row["prompt_tokens"] or 0)
    return {**response_told(paid, "call_status", "response", "error"), "items": items}


def _beside(row: dict[str, Any], rows: list[dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """What the rows of the same answer say."""
    return [in_json({name: one[name] for name in names}) for one in rows if all(one[key] == row[key] for key in _ANSWER)]


def _own(asked: RunAsked, table: str, columns: tuple[str, ...] | None = None) -> pa.Table:
    """The rows of the models that the manifest names."""
    rows = asked.rows(table, columns)
    return asked.of_models(rows, asked.names(asked.told("qa_responses").get("models", ())))

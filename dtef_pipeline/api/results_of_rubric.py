"""Results of a run of rubrics: a blueprint."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.api.results_of import RunAsked, Spent, in_json, measured, response_told, spent_in
from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.board import board
from dtef_pipeline.rubric.candidates import known_selector
from dtef_pipeline.rubric.rolled_up import costs_table
from dtef_pipeline.rubric.space import RUBRIC_RESPONSE
from dtef_pipeline.rubric.tables import RUBRIC_SCORES
from resources.responses.store import SUMMARY

_ALONE = "no interval is made of this part of the score"
_NAMES_A_RESPONSE = ("blueprint", *RUBRIC_RESPONSE, "snapshot")
_TOLD_OF_POINTS = ("block", "path", "position", "kind", "weight", "score", "reason", "explanation")
_TOLD_OF_VERDICTS = ("block", "path", "position", "judge", "judge_draw", "class", "score", "reason", "reflection")


def metrics_of(asked: RunAsked) -> list[dict[str, Any]]:
    """Of each model the hybrid score and its parts, as in `dtef rubric board --by blueprint`."""
    columns = [name for name in RUBRIC_SCORES.names if name != "reasons"]
    rows = asked.rows("rubric_scores", columns)
    if not len(rows):
        return []
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("rows_of_run", rows)
        frame = connection.execute("FROM rows_of_run").df()
    names, found = _models(asked), list[dict[str, Any]]()
    for row in board(frame, [asked.snapshot], {}, "blueprint").to_dict("records"):
        if row["model"] not in names:
            continue
        told = {"direction": "higher", "n_planned": int(row["n_planned"]), "n_responses": int(row["n_responses_scored"])}
        ends = (row["low"], row["high"])
        found.append(measured(row["model"], "score", row["score"], row["n_parts"], ends, row["note"], **told))
        found += [
            measured(row["model"], part, row[part], row["n_parts"], (None, None), _ALONE, **told)
            for part in ("coverage", "similarity")
        ]
    return found


def cost_of(asked: RunAsked) -> Spent:
    """Of the models' responses, of what judges said of them, and of the summary. What embedders cost is known of the whole store alone."""
    with duckdb.connect() as connection:
        for table in ("rubric_responses", "rubric_judgements"):
            connection.register(table, asked.of_models(asked.rows(table), _models(asked)))
        connection.register("rubric_summaries", asked.rows("rubric_summaries"))
        return spent_in(costs_table(connection, asked.stored(), SUMMARY.empty_table()).to_pylist())


def traces_of(asked: RunAsked) -> list[str]:
    """A hash of what names each response."""
    return sorted(map(_trace_id, _responses(asked, _NAMES_A_RESPONSE)))


def trace_of(asked: RunAsked, trace_id: str) -> dict[str, Any] | None:
    """The response with its conversation, its points and what each judge said."""
    named = {_trace_id(row): row for row in _responses(asked, _NAMES_A_RESPONSE)}.get(trace_id)
    if named is None:
        return None
    (row,) = (one for one in asked.rows("rubric_responses").to_pylist() if _trace_id(one) == trace_id)
    points, verdicts = (
        [in_json({name: one.get(name) for name in names}) for one in _beside(asked, table, named)]
        for table, names in (("rubric_points", _TOLD_OF_POINTS), ("rubric_judgements", _TOLD_OF_VERDICTS))
    )
    told = response_told({**row, "prompt_id": row["asked_hash"]}, "status", "text", "error")
    return {
        **told,
        "prompt": row["prompt"],
        "system_index": row["system_index"],
        "transcript": in_json(row["transcript"]),
        "points": points,
        "judgements": verdicts,
    }


def _beside(asked: RunAsked, table: str, named: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of another table that are about the response."""
    return [one for one in asked.rows(table).to_pylist() if all(one[key] == named[key] for key in named)]


def _responses(asked: RunAsked, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    rows: pa.Table = asked.of_models(asked.rows("rubric_responses", columns), _models(asked))
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def _trace_id(row: dict[str, Any]) -> str:
    return digest("response of a rubric", *(row[name] for name in _NAMES_A_RESPONSE))


def _models(asked: RunAsked) -> set[str]:
    """Those that the manifest names; a litellm string stands for the model of the models file that has it."""
    selectors = [str(one) for one in asked.told("rubric_responses").get("models", ())]
    return asked.names([*selectors, *(known_selector(one, asked.models) for one in selectors)])

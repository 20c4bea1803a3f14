"""Results of a run of questions with expected answers: a part of a suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.api.results.run_outcomes import OUTCOME_UNITS, OutcomeCounts, counts_by, in_words
from dtef_pipeline.api.results.run_results import RunAsked, Spent, in_json, measured, resolved, response_told, spent_on
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.answering import prompts_of
from dtef_pipeline.qa.arbitration import SKIPPED_SAMPLE
from dtef_pipeline.qa.latest_scores import qa_scores
from dtef_pipeline.qa.model import NULL_STATUSES, UNPARSEABLE_STATUS
from dtef_pipeline.qa.prompt_rows import AskedHow
from dtef_pipeline.qa.stored_tables import QA_CALL_TABLES
from dtef_pipeline.qa.suite_boards import qa_results
from dtef_pipeline.qa.transcripts.metadata import written_filter
from dtef_pipeline.text.counted import counted

_READ_OF_SCORES = (
    *("suite", "part", "item_id", "condition", "metric", "measured_by", "model", "model_variant", "snapshot", "draw"),
    *("cluster", "type", "status", "value", "score", "reason"),
)
_TOLD_OF_ITEM_SCORES = ("metric", "measured_by", "status", "value", "score", "reason")
_TOLD_OF_JUDGEMENTS = ("evaluator", "judge_model", "score", "reason", "explanation")
_OF_A_METRIC = ("model_variant", "condition", "metric", "measured_by")
_ANSWER = ("item_id", "condition", "model_variant", "draw")
_SAID_OF_CALLS = ("error", "budget")
_IN_PLAIN_WORDS = {
    "missing": "with nothing to score",
    "skipped_sample": "not drawn to be judged",
    "skipped_budget": "as the budget of judging ended",
}
"""By status, where its name says little."""
_HOW_SHOWN = ("template", "few_shot", "few_shot_as", "order", "retriever", "k")


def counts_of(asked: RunAsked) -> dict[Hashable, OutcomeCounts]:
    """Of the responses, by model."""
    rows = _own(asked, "qa_responses", (*_ANSWER, "model", "call_status"))
    scores = _own(asked, "qa_scores", (*_ANSWER, "model", "score"))
    scored = {tuple(row[name] for name in _ANSWER) for row in scores.filter(pc.is_valid(scores["score"])).to_pylist()}
    told = [(row["model"], row["call_status"], tuple(row[name] for name in _ANSWER) in scored) for row in rows.to_pylist()]
    prompts = _prompts(asked)
    if not len(prompts):
        return counts_by(told, None)
    specs = resolved(asked.models, asked.told("qa_responses").get("models", ()))
    each = len(prompts) * int(asked.told("qa_responses").get("draws", 1))
    return counts_by(told, Counter[Hashable]({name: number * each for name, number in specs.items()}))


def metrics_of(asked: RunAsked, counts: Mapping[Hashable, OutcomeCounts]) -> list[dict[str, Any]]:
    """Of each model, condition, metric and what it was measured by the mean over items, as in `qa_results` and `dtef qa board --by part`."""
    rows = _own(asked, "qa_scores", _READ_OF_SCORES)
    if not len(rows):
        return []
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("qa_scores", rows)
        found = qa_results(qa_scores(connection))
    n_asked = _n_asked(rows)
    return [
        measured(
            row["model"],
            row["metric"],
            row["score"],
            (row["n_items"], n_asked.get(tuple(row[name] for name in _OF_A_METRIC))),
            (row["score_low"], row["score_high"]),
            row["note"],
            remark=_remark(row, counts),
            condition=row["condition"],
            measured_by=row["measured_by"],
            direction="higher",
            interval_kind=in_json(row["interval_kind"]),
            parse_rate=in_json(row["parse_rate"]),
        )
        for row in found.to_dict("records")
    ]


def _n_asked(rows: pa.Table) -> dict[tuple[str, ...], int]:
    """Items that each metric is to be measured of: not those that its random sample leaves out."""
    left_out = pc.and_(pc.equal(rows["status"].cast(pa.string()), SKIPPED_SAMPLE), pc.is_null(rows["score"]))
    kept = rows.filter(pc.invert(left_out)).select([*_OF_A_METRIC, "item_id"])
    names = zip(*(kept[name].cast(pa.string()).to_pylist() for name in kept.column_names), strict=True)
    return Counter(name[:-1] for name in set(names))


def _remark(row: dict[Any, Any], counts: Mapping[Hashable, OutcomeCounts]) -> str | None:
    """What is missing, and what counts 0 for want of an answer that can be read."""
    own = counts.get(row["model"])
    unread, came = int(row[f"n_{UNPARSEABLE_STATUS}"]), int(row["n_total"])
    why = {status: int(row[f"n_{status}"]) for status in NULL_STATUSES if status not in _SAID_OF_CALLS}
    unscored = [
        f"{number:,} {_IN_PLAIN_WORDS.get(status, status.replace('_', ' '))}" for status, number in why.items() if number
    ]
    return in_words(
        own.told(OUTCOME_UNITS["qa"]) if own else None,
        f"{unread:,} of {counted(came, 'response')} could not be read and {'counts' if unread == 1 else 'count'} 0"
        if unread
        else None,
        f"{sum(why.values()):,} of {counted(came, 'response')} without a score: {', '.join(unscored)}" if unscored else None,
    )


def cost_of(asked: RunAsked) -> Spent:
    """Of the models' answers, and of what a judge said of them."""
    rows = {table: _own(asked, table) for table in ("qa_responses", "qa_judgements")}
    return spent_on(asked, QA_CALL_TABLES, rows, request_keys_of(asked))


def request_keys_of(asked: RunAsked) -> set[str]:
    """Of the responses, and of what a judge said of them."""
    judged = _own(asked, "qa_judgements", (*_ANSWER, "model", "request_keys"))["request_keys"].to_pylist()
    return {*traces_of(asked), *(key for keys in judged for key in keys or ())}


def traces_of(asked: RunAsked) -> list[str]:
    """The request keys of the responses."""
    return sorted(set(_own(asked, "qa_responses", (*_ANSWER, "model", "request_key"))["request_key"].drop_null().to_pylist()))


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
    """The rows of the models that the manifest names, of as many draws, asked so and of these items."""
    told = asked.told("qa_responses")
    rows = asked.of_models(asked.rows(table, columns), asked.names(told.get("models", ())))
    rows = rows.filter(pc.less(rows["draw"], int(told.get("draws", 1))))
    prompts = _prompts(asked)
    rows = rows.filter(pc.is_in(rows["condition"].cast(pa.string()), pc.unique(prompts["condition"]).cast(pa.string())))
    return rows.filter(pc.is_in(rows["item_id"].cast(pa.string()), prompts["item_id"].combine_chunks().cast(pa.string())))


def _prompts(asked: RunAsked) -> pa.Table:
    """`item_id` and `condition` of the prompts of the plan; none where they are not made, or the settings fit the part no more."""
    told = asked.told("qa_responses")
    prompts, types = asked.rows("qa_prompts", ["item_id", "condition"]), asked.rows("qa_items", ["type"])
    about_documents = bool(len(asked.rows("qa_documents", ["doc_id"])))
    try:
        shown = {name: told[name] for name in _HOW_SHOWN if name in told}
        how = AskedHow(**shown, filter=written_filter(told.get("filter", [])))
        condition = how.condition(types["type"].to_pylist(), about_documents=about_documents)
    except ConfigError:
        return prompts.slice(0, 0)
    return prompts_of(prompts, condition, told.get("limit"))

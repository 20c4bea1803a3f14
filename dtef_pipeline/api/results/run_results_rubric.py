"""Results of a run of rubrics: a blueprint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.api.results.run_outcomes import OUTCOME_UNITS, OutcomeCounts, counts_by, further_in_words, in_words
from dtef_pipeline.api.results.run_results import RunAsked, Spent, in_json, measured, response_told, spent_on
from dtef_pipeline.api.results.stored_judges import judged_by_others, own_judgement_keys
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.aggregate import MODEL_LEVEL
from dtef_pipeline.rubric.board import board
from dtef_pipeline.rubric.candidates import Candidates, known_selector
from dtef_pipeline.rubric.conversations import scripts
from dtef_pipeline.rubric.space import RUBRIC_RESPONSE
from dtef_pipeline.rubric.stored_tables import RUBRIC_CALL_TABLES
from dtef_pipeline.rubric.tables import RUBRIC_SCORES
from dtef_pipeline.text.counted import counted

_TABLES_BY_MODEL = ("rubric_responses", "rubric_judgements")
_TABLES_OF_ANALYSTS = ("rubric_summaries", "rubric_extractions")
_ALONE = "no interval is made of this part of the score"
_NAMES_A_RESPONSE = ("blueprint", *RUBRIC_RESPONSE, "snapshot")
_TOLD_OF_POINTS = ("block", "path", "position", "kind", "weight", "score", "reason", "explanation")
_TOLD_OF_VERDICTS = ("block", "path", "position", "judge", "judge_draw", "class", "score", "reason", "reflection")


def counts_of(asked: RunAsked) -> dict[Hashable, OutcomeCounts]:
    """Of the responses, by model. Which of them are scored is told of models alone: as many of those that came."""
    names = _models(asked)
    levels = asked.rows("rubric_scores", ["level", "model", "n_responses_scored"]).to_pylist()
    scored = Counter[str]()
    for row in levels:
        if row["level"] == MODEL_LEVEL and row["model"] in names:
            scored[row["model"]] += row["n_responses_scored"]
    if judged_by_others(asked):
        scored.clear()
    came = counts_by(((row["model"], row["status"], False) for row in _responses(asked, ("model", "status"))), _planned(asked))
    return {model: one._replace(scored=scored[str(model)]) for model, one in came.items()}


def metrics_of(asked: RunAsked, counts: Mapping[Hashable, OutcomeCounts]) -> list[dict[str, Any]]:
    """Of each model the hybrid score and its parts, as in `dtef rubric board --by blueprint`."""
    columns = [name for name in RUBRIC_SCORES.names if name != "reasons"]
    rows = asked.rows("rubric_scores", columns)
    if not len(rows):
        return []
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("rows_of_run", rows)
        frame = connection.execute("FROM rows_of_run").df()
    names, found, others = _models(asked), list[dict[str, Any]](), judged_by_others(asked)
    reasons, further = _unscored(asked), _further(asked)
    for row in board(frame, [asked.snapshot], {}, "blueprint").to_dict("records"):
        if row["model"] not in names:
            continue
        told: dict[str, Any] = {
            "direction": "higher",
            "n_planned": int(row["n_planned"]),
            "n_responses": 0 if others else int(row["n_responses_scored"]),
            "remark": in_words(_remark(row, counts), further_in_words(further[row["model"]], "response")),
        }
        n = (0 if others else row["n_parts"], row["n_planned"])
        for part in ("score", "coverage", "similarity"):
            ends = (row["low"], row["high"]) if part == "score" and not others else (None, None)
            value = None if others else row[part]
            found.append(measured(row["model"], part, value, n, ends, others or _why(row, part, reasons), **told))
    return found


def _further(asked: RunAsked) -> Counter[str]:
    """By model, responses that the run did not ask for: further draws."""
    whole = asked.of_models(asked.rows("rubric_responses", ["model"]), _models(asked))["model"].to_pylist()
    return Counter(whole) - Counter(row["model"] for row in _responses(asked, ("model",)))


def _why(row: dict[Any, Any], part: str, reasons: Mapping[str, str]) -> str | None:
    """Why there is no value, or no interval. `reasons`: of models whose responses have no score."""
    if in_json(row[part]) is None:
        return reasons.get(row["model"]) or f"there is no {part}"
    return row["note"] if part == "score" else _ALONE


def _unscored(asked: RunAsked) -> dict[str, str]:
    """By model why responses have no score."""
    rows = asked.rows("rubric_scores", ["level", "model", "reasons"]).to_pylist()
    told = {row["model"]: row["reasons"] or () for row in rows if row["level"] == MODEL_LEVEL}
    return {model: ", ".join(f"{reason}: {counted(n, 'response')}" for reason, n in found) for model, found in told.items()}


def _remark(row: dict[Any, Any], counts: Mapping[Hashable, OutcomeCounts]) -> str | None:
    """What is missing."""
    own, unscored = counts.get(row["model"]), int(row["n_responses"] - row["n_responses_scored"])
    whole = counted(int(row["n_responses"]), "response")
    return in_words(
        own.told(OUTCOME_UNITS["rubric"]) if own else None, f"{unscored:,} of {whole} without a score" if unscored else None
    )


def cost_of(asked: RunAsked) -> Spent:
    """Of the models' responses, of what judges said of them, of the summary and of criteria that were extracted.

    What embedders cost is known of the whole store alone.
    """
    rows = {table: _own(asked, table) for table in _TABLES_BY_MODEL} | {
        table: asked.rows(table) for table in _TABLES_OF_ANALYSTS
    }
    if judged_by_others(asked):
        del rows["rubric_judgements"]
    return spent_on(asked, RUBRIC_CALL_TABLES, rows, request_keys_of(asked))


def request_keys_of(asked: RunAsked) -> set[str]:
    """Of the same calls as the cost; where others judged since, of what the run's own judges said too."""
    own_judges = own_judgement_keys(asked) if judged_by_others(asked) else set()
    of_responses = [_own(asked, table, ("model", "draw", "request_keys")) for table in _TABLES_BY_MODEL]
    lists = [rows["request_keys"] for rows in (*of_responses, *(asked.rows(table) for table in _TABLES_OF_ANALYSTS))]
    return own_judges | {key for column in lists for keys in column.to_pylist() for key in keys or ()}


def traces_of(asked: RunAsked) -> list[str]:
    """A hash of what names each response."""
    return sorted(map(_trace_id, _responses(asked, _NAMES_A_RESPONSE)))


def trace_of(asked: RunAsked, trace_id: str) -> dict[str, Any] | None:
    """The response with its conversation, its points and what each judge said."""
    named = {_trace_id(row): row for row in _responses(asked, _NAMES_A_RESPONSE)}.get(trace_id)
    if named is None:
        return None
    (row,) = (one for one in asked.rows("rubric_responses").to_pylist() if _trace_id(one) == trace_id)
    others = judged_by_others(asked)
    points, verdicts = (
        [] if others else [in_json({name: one.get(name) for name in names}) for one in _beside(asked, table, named)]
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
        "remark": others,
    }


def _beside(asked: RunAsked, table: str, named: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of another table that are about the response."""
    return [one for one in asked.rows(table).to_pylist() if all(one[key] == named[key] for key in named)]


def _responses(asked: RunAsked, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    wanted = tuple(dict.fromkeys((*columns, "model", "draw")))
    found: list[dict[str, Any]] = _own(asked, "rubric_responses", wanted).to_pylist()
    return found


def _own(asked: RunAsked, table: str, columns: tuple[str, ...] | None = None) -> pa.Table:
    """The rows of the models of the manifest, of as many draws."""
    rows = asked.of_models(asked.rows(table, columns), _models(asked))
    return rows.filter(pc.less(rows["draw"], int(asked.told("rubric_responses").get("draws", 1))))


def _planned(asked: RunAsked) -> dict[Hashable, int] | None:
    """Responses of each model; None where prompts are not made yet, or a model is not known any more."""
    prompts, told = asked.rows("rubric_prompts"), asked.told("rubric_responses")
    if not len(prompts):
        return None
    try:
        candidates = Candidates(asked.models, told.get("models", ()))
    except ConfigError:
        return None
    variants = [spec.name for _, temperatures in scripts(prompts) for spec in candidates.at(temperatures)]
    draws = int(told.get("draws", 1))
    return {name: number * draws for name, number in Counter(variants).items()}


def _trace_id(row: dict[str, Any]) -> str:
    return digest("response of a rubric", *(row[name] for name in _NAMES_A_RESPONSE))


def _models(asked: RunAsked) -> set[str]:
    """Those that the manifest names; a litellm string stands for the model of the models file that has it."""
    selectors = [str(one) for one in asked.told("rubric_responses").get("models", ())]
    return asked.names([*selectors, *(known_selector(one, asked.models) for one in selectors)])

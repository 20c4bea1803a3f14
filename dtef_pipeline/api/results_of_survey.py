"""Results of a run of surveys: a segment of a round."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.api.results_of import RunAsked, Spent, in_json, measured, response_told, spent_in
from dtef_pipeline.boards.costs import cost_breakdown
from dtef_pipeline.statistics.resampling import MIN_CLUSTERS
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.boards.views import HELD, view
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.keys import KEYS

_TOO_FEW = f"no interval: fewer than {MIN_CLUSTERS} batteries of questions"
_PREDICTED = ("question_id", "condition", "context_level", "model_variant", "draw")
_TOLD_OF_PREDICTED = ("status", "reason", "metric", "score", "predicted")


def metrics_of(asked: RunAsked) -> list[dict[str, Any]]:
    """Of each model, context level and condition the mean score of the segment, as `dtef leaderboard --by segment --snapshot` shows it."""
    if not len(asked.rows("scores", ["model"])):
        return []
    round_id, segment = SPACE.split(asked.run.key)
    options = SurveyBoardOptions(rounds=(round_id,), segments=(segment,), snapshot=asked.snapshot)
    with asked.house.connect(only=HELD, first=[round_id]) as connection:
        found = view(connection, "segment", options)
    names, told = _models(asked), asked.told("predictions")
    chosen = found[
        found["model"].isin(names)
        & found["condition"].isin(told.get("conditions") or found["condition"])
        & found["context_level"].isin(told.get("context_levels") or found["context_level"])
    ]
    return [
        measured(
            row["model"],
            options.metric,
            row["score"],
            row["n_pairs"],
            (row["score_low"], row["score_high"]),
            _why(row),
            condition=row["condition"],
            context_level=row["context_level"],
            direction="higher",
            interval_kind=in_json(row["interval_kind"]),
            parse_rate=in_json(row["parse_rate"]),
        )
        for row in chosen.to_dict("records")
    ]


def _why(row: dict[Any, Any]) -> str | None:
    """Why there is no score, or no interval."""
    if in_json(row["score"]) is None:
        return "no prediction of the segment has a score"
    return _TOO_FEW if in_json(row["score_low"]) is None else None


def cost_of(asked: RunAsked) -> Spent:
    """Of the models' predictions."""
    columns = (*KEYS.row, "request_key", "call_status", "prompt_tokens", "completion_tokens", "cost_usd", "error")
    rows = _own(asked, columns)
    with duckdb.connect() as connection:
        connection.register("predictions", rows)
        found = cost_breakdown(connection, ["snapshot"], KEYS).rename(columns={"answered": "calls"})
    return spent_in({str(key): value for key, value in row.items()} for row in found.to_dict("records"))


def traces_of(asked: RunAsked) -> list[str]:
    """The request keys of the responses, those of computed models too."""
    return sorted(set(_own(asked, ("model", "request_key"))["request_key"].drop_null().to_pylist()))


def trace_of(asked: RunAsked, trace_id: str) -> dict[str, Any] | None:
    """The response, and of each question that it answers what was read of it and its score."""
    rows = _own(asked)
    found = rows.filter(pc.equal(rows["request_key"], trace_id)).to_pylist()
    if not found:
        return None
    scores = asked.of_models(asked.rows("scores"), {found[0]["model"]}).to_pylist()
    scored = {tuple(one[name] for name in _PREDICTED): one for one in scores}
    questions = [
        {
            **{name: row[name] for name in ("question_id", "condition", "context_level", "prompt_id")},
            **in_json({name: scored.get(tuple(row[key] for key in _PREDICTED), {}).get(name) for name in _TOLD_OF_PREDICTED}),
        }
        for row in found
    ]
    paid = max(found, key=lambda row: row["prompt_tokens"] or 0)
    return {**response_told(paid, "call_status", "response", "error"), "questions": questions}


def _own(asked: RunAsked, columns: tuple[str, ...] | None = None) -> pa.Table:
    """The predictions of the plan's models, asked in its ways."""
    wanted = None if columns is None else tuple(dict.fromkeys((*columns, *KEYS.asked)))
    rows = asked.of_models(asked.rows("predictions", wanted), _models(asked))
    told = asked.told("predictions")
    for column, values in (("condition", told.get("conditions")), ("context_level", told.get("context_levels"))):
        rows = rows.filter(pc.is_in(rows[column], pa.array(values, pa.string()))) if values else rows
    return rows


def _models(asked: RunAsked) -> set[str]:
    """Those that the plan names, each by the name that it has in tables."""
    return asked.names(asked.told("predictions").get("models", ()))

"""Results of a run of surveys: a segment of a round."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.api.results.run_outcomes import OUTCOME_UNITS, OutcomeCounts, counts_by, further_in_words, in_words
from dtef_pipeline.api.results.run_results import RunAsked, Spent, in_json, measured, resolved, response_told, spent_on
from dtef_pipeline.asking.calls import USAGE
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.boards.views import HELD, view
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.question_draw import DRAW_ORDERS, EVERYTHING, Sample
from dtef_pipeline.survey.stored_tables import SURVEY_CALL_TABLES
from dtef_pipeline.text.counted import counted

_TOO_FEW = f"no interval: fewer than {MIN_CLUSTERS} batteries of questions"
_UNREAD_IN_WORDS = {
    "unparseable": "could not be read",
    "wrong_length": "had another number of options",
    "refused": "declined to answer",
}
_PREDICTED = ("question_id", "condition", "context_level", "model_variant", "draw")
_TOLD_OF_PREDICTED = ("status", "reason", "metric", "score", "predicted")
_MISSING = "missing"
"""The status of a call to which there is no answer, though none failed."""
_WAY_ASKED = ("model", "condition", "context_level")


def counts_of(asked: RunAsked) -> dict[Hashable, OutcomeCounts]:
    """Of the predictions, by model, condition and context level. Where a computed model has nothing to go by, none is asked of it."""
    scores = asked.rows("scores", [*_PREDICTED, "score"])
    scored = {tuple(row[name] for name in _PREDICTED) for row in scores.filter(pc.is_valid(scores["score"])).to_pylist()}
    rows = _own(asked, (*_PREDICTED, "model", "call_status")).to_pylist()
    silent = Counter[Hashable](_way(row) for row in _silent(asked))
    told = (
        (_way(row), row["call_status"], tuple(row[name] for name in _PREDICTED) in scored)
        for row in rows
        if not (row["call_status"] == _MISSING and _way(row) in silent)
    )
    planned = _planned(asked)
    return counts_by(told, None if planned is None else {way: number - silent[way] for way, number in planned.items()})


def _way(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """Who was asked, and how."""
    return tuple(row[name] for name in _WAY_ASKED)


def _silent(asked: RunAsked) -> list[dict[str, Any]]:
    """Predictions that a computed model could not make, such as one from the round before where there is none; `error` says why."""
    rows = _own(asked, (*_WAY_ASKED, "call_status", "error"))
    rows = rows.filter(pc.equal(rows["call_status"].cast(pa.string()), _MISSING))
    found: list[dict[str, Any]] = asked.of_models(rows, asked.computed(asked.told("predictions").get("models", ()))).to_pylist()
    return found


def metrics_of(asked: RunAsked, counts: Mapping[Hashable, OutcomeCounts]) -> list[dict[str, Any]]:
    """Of each model, context level and condition the mean score of the segment, as `dtef board --by segment --snapshot` shows it."""
    if not len(asked.rows("scores", ["model"])):
        return []
    round_id, segment = SPACE.split(asked.run.key)
    options = SurveyBoardOptions(rounds=(round_id,), segments=(segment,), snapshot=asked.snapshot)
    found = asked.house.query(lambda made: view(made, "segment", options), only=HELD, first=[round_id])
    names, told = _models(asked), asked.told("predictions")
    chosen = found[
        found["model"].isin(names)
        & found["condition"].isin(told.get("conditions") or found["condition"])
        & found["context_level"].isin(told.get("context_levels") or found["context_level"])
    ]
    n_asked, silent = _n_asked(asked), {_way(row): row["error"] for row in _silent(asked)}
    further, statuses = _further(asked), _statuses(asked)
    return [
        measured(
            row["model"],
            options.metric,
            row["score"],
            (row["n_pairs"], n_asked.get(_way(row))),
            (row["score_low"], row["score_high"]),
            _why(row, silent.get(_way(row))),
            remark=in_words(
                _remark(counts.get(_way(row)), statuses[_way(row)]), further_in_words(further[_way(row)], "prediction")
            ),
            condition=row["condition"],
            context_level=row["context_level"],
            direction="higher",
            parse_rate=in_json(row["parse_rate"]),
        )
        for row in chosen.to_dict("records")
    ]


def _why(row: dict[Any, Any], silent: str | None) -> str | None:
    """Why there is no score, or no interval. `silent`: why a computed model could make no prediction."""
    if in_json(row["score"]) is None:
        return silent or "no prediction of the segment has a score"
    return _TOO_FEW if in_json(row["score_low"]) is None else None


def _further(asked: RunAsked) -> Counter[tuple[str, ...]]:
    """Predictions of the same models, asked in the same ways, that the run did not ask for: of other questions, or further draws."""
    whole = asked.of_models(asked.rows("predictions", _WAY_ASKED), _models(asked))
    return Counter(map(_way, whole.to_pylist())) - Counter(map(_way, _own(asked, _WAY_ASKED).to_pylist()))


def _n_asked(asked: RunAsked) -> dict[tuple[str, ...], int]:
    """Questions that are to be scored: not those that define the segment itself."""
    rows = asked.rows("scores", [*_WAY_ASKED, KEYS.item, str(KEYS.left_out)])
    kept = rows.filter(pc.invert(rows[KEYS.left_out])).select([*_WAY_ASKED, KEYS.item])
    names = zip(*(kept[name].cast(pa.string()).to_pylist() for name in kept.column_names), strict=True)
    return Counter(name[:-1] for name in set(names))


def _statuses(asked: RunAsked) -> dict[tuple[str, ...], Counter[str]]:
    """How many predictions of each model, asked in each way, have each status; not those of questions that define the segment itself."""
    rows = asked.rows("scores", [*_WAY_ASKED, "status", str(KEYS.left_out)])
    found: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for row in rows.filter(pc.invert(rows[KEYS.left_out])).to_pylist():
        found[_way(row)][row["status"]] += 1
    return found


def _remark(own: OutcomeCounts | None, statuses: Counter[str]) -> str | None:
    """What is missing, and what has the score of an answer that could not be read."""
    unread = [f"{statuses[name]:,} {words}" for name, words in _UNREAD_IN_WORDS.items() if statuses[name]]
    said = f"of {counted(statuses.total(), 'prediction')} {', '.join(unread)}" if unread else None
    return in_words(own.told(OUTCOME_UNITS["survey"]) if own else None, said)


def cost_of(asked: RunAsked) -> Spent:
    """Of the models' predictions."""
    rows = _own(asked, (*KEYS.row, "request_key", "call_status", *USAGE, "error"))
    return spent_on(asked, SURVEY_CALL_TABLES, {"predictions": rows}, request_keys_of(asked))


def request_keys_of(asked: RunAsked) -> set[str]:
    """Of the predictions."""
    return set(traces_of(asked))


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
    """The predictions of the plan's models, asked in its ways, of its questions and draws."""
    wanted = None if columns is None else tuple(dict.fromkeys((*columns, *KEYS.asked, KEYS.item, "draw")))
    rows = asked.of_models(asked.rows("predictions", wanted), _models(asked))
    told = asked.told("predictions")
    rows = _as_asked(asked, rows)
    return rows.filter(pc.less(rows["draw"], int(told.get("draws", 1))))


def _as_asked(asked: RunAsked, rows: pa.Table) -> pa.Table:
    """The rows of the conditions, context levels and questions of the plan."""
    told, rows = asked.told("predictions"), _in_ways(asked, rows)
    if (sample := Sample(told.get("questions"), told.get("sample_segments"))) == EVERYTHING:
        return rows
    drawn = sample.questions_of(asked.rows("survey_responses", ["question_id", *DRAW_ORDERS]))
    return rows.filter(pc.is_in(rows["question_id"].cast(pa.string()), drawn.cast(pa.string())))


def _in_ways(asked: RunAsked, rows: pa.Table) -> pa.Table:
    """The rows of the conditions and context levels of the plan."""
    told = asked.told("predictions")
    for column, values in (("condition", told.get("conditions")), ("context_level", told.get("context_levels"))):
        rows = rows.filter(pc.is_in(rows[column].cast(pa.string()), pa.array(values, pa.string()))) if values else rows
    return rows


def _planned(asked: RunAsked) -> dict[Hashable, int] | None:
    """Predictions of each model in each way of asking, 0 where no question is drawn; None where prompts are not made yet."""
    made = _in_ways(asked, asked.rows("blueprints", [KEYS.item, *KEYS.asked]))
    if not len(made):
        return None
    every, drawn = (
        Counter(zip(rows["condition"].to_pylist(), rows["context_level"].to_pylist(), strict=True))
        for rows in (made, _as_asked(asked, made))
    )
    told = asked.told("predictions")
    specs, draws = resolved(asked.models, told.get("models", ())), int(told.get("draws", 1))
    return {(name, *way): drawn[way] * times * draws for name, times in specs.items() for way in every}


def _models(asked: RunAsked) -> set[str]:
    """Those that the plan names, each by the name that it has in tables."""
    return asked.names(asked.told("predictions").get("models", ()))

"""The tables of the pipeline of a survey drawn from a world (`tests.made.worlds`), made with the library's own functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL
from dtef_pipeline.survey.observations import MIN_N
from dtef_pipeline.survey.question_draw import draw_segment_order
from dtef_pipeline.survey.scoring.metrics import DistributionPair, compute_corrected_errors, measure
from dtef_pipeline.survey.scoring.references import DRAWS, compute_reference_scores
from dtef_pipeline.survey.tables import SCORES, SURVEY_RESPONSES
from tests.made.worlds import Floats, Ints, Survey, World

Columns = dict[str, Any]
LEVEL, CONDITION = "0", "distribution/attribute-label"


def connection(
    world: World, surveys: Survey | Sequence[Survey], ceiling_draws: int = DRAWS, ways: Mapping[str, Setting] | None = None
) -> duckdb.DuckDBPyConnection:
    """`survey_responses`, `scores` and, with `ceiling_draws`, `reference_scores` of one survey or of several rounds, in memory; `ways` as of
    `scores`."""
    rounds = [surveys] if isinstance(surveys, Survey) else surveys
    responses = pa.concat_tables([survey_responses(world, survey) for survey in rounds])
    found = duckdb.connect()
    made = {"survey_responses": responses, "scores": pa.concat_tables([scores(world, survey, ways) for survey in rounds])}
    if ceiling_draws:
        made["reference_scores"] = compute_reference_scores(responses, draws=ceiling_draws)
    for name, rows in made.items():
        found.register(name, rows)
    return found


def survey_responses(world: World, survey: Survey) -> pa.Table:
    """A row per question and segment of MIN_N people or more, as `observe` makes them."""
    question, segment = _pairs(survey)
    population, others = marginals(world, survey)
    n = survey.n[segment]
    columns = _named(world, survey, question, segment) | {
        "observed": _lists(survey.observed[question, segment], survey.k[question]),
        "n": n,
        "population": _lists(population[question], survey.k[question]),
        "leave_one_out_marginal": _lists(others[question, segment], survey.k[question]),
        "segment_n": n,
        "segment_order": _drawn(world, survey, question, segment),
        "n_source": "segment",
        "population_n": int(survey.n[survey.n >= MIN_N].sum()),
        "leave_one_out_n": _others_n(world, survey)[segment],
    }
    return _table(columns, len(question), SURVEY_RESPONSES)


def _drawn(world: World, survey: Survey, question: Ints, segment: Ints) -> Ints:
    """The place of each pair's segment in the draw: another draw for every survey, as rounds have different ones."""
    attributes, names = np.array(world.attributes, dtype=object), np.array(world.names, dtype=object)
    pairs = {"battery": survey.battery[question], "question_id": question, "attribute": attributes[segment]}
    frame = pd.DataFrame({name: pd.Series(values).astype(str) for name, values in pairs.items()})
    drawn = frame.assign(segment=names[segment], put_off=False)
    return draw_segment_order(survey.round, drawn, seed=int(survey.answers.sum())).astype(np.int64)


def marginals(world: World, survey: Survey) -> tuple[Floats, Floats]:
    """The mean answer of all segments (questions, options), and of the other segments of each one's attribute (questions, segments, options)."""
    weights = np.where(survey.n >= MIN_N, survey.n, 0)
    same = np.equal.outer(world.attributes, world.attributes) & ~np.eye(len(weights), dtype=bool)
    population = np.einsum("s,qsk->qk", weights, survey.observed) / weights.sum()
    return population, np.einsum("ts,qsk->qtk", same * weights, survey.observed) / (same @ weights)[None, :, None]


def _others_n(world: World, survey: Survey) -> Ints:
    weights = np.where(survey.n >= MIN_N, survey.n, 0)
    return np.asarray((np.equal.outer(world.attributes, world.attributes) & ~np.eye(len(weights), dtype=bool)) @ weights)


class Setting(NamedTuple):
    """How a drawn model is called, and in which way it was asked."""

    model: str
    level: str = LEVEL
    condition: str = CONDITION


def scores(world: World, survey: Survey, ways: Mapping[str, Setting] | None = None) -> pa.Table:
    """Of the models and of the two marginals, as `score_predictions` makes them.

    `ways`: drawn models that stand for one model asked in several ways; each by itself, where none is named.
    """
    population, others = marginals(world, survey)
    everywhere = np.ones((1, *others.shape[:2]), dtype=bool)
    given = {POPULATION_MARGINAL: np.broadcast_to(population[:, None], others.shape)[None], LEAVE_ONE_OUT: others[None]}
    made = [_scores(world, survey, Setting(name), predicted, everywhere) for name, predicted in given.items()]
    for model, predicted in survey.predicted.items():
        way = (ways or {}).get(model, Setting(model))
        made.append(_scores(world, survey, way, predicted, survey.read[model], survey.asked[model]))
    return pa.concat_tables(made)


def _scores(
    world: World,
    survey: Survey,
    way: Setting,
    predicted: Floats,
    read: npt.NDArray[np.bool_],
    asked: npt.NDArray[np.bool_] | None = None,
) -> pa.Table:
    wanted = np.broadcast_to((survey.n >= MIN_N) & (True if asked is None else asked), read.shape)
    draw, question, segment = np.nonzero(wanted)
    parsed = read[draw, question, segment]
    given, observed = predicted[draw, question, segment], survey.observed[question, segment]
    values = measured(given, observed, survey.n[segment], survey.k[question])
    values = {name: np.where(parsed, value, np.nan) for name, value in values.items()}
    columns = _named(world, survey, question, segment) | {
        "snapshot": "base",
        "context_level": way.level,
        "condition": way.condition,
        "prompt_id": "p",
        "model": way.model,
        "model_variant": way.model,
        "draw": draw,
        "n": survey.n[segment],
        "status": _of(("unparseable", "ok"), parsed.astype(np.int64)),
        "predicted": _lists(given, survey.k[question], parsed),
        "metric": "js",
        "score": np.where(parsed, values["js"], 0.0),
        **{name: pa.array(value, from_pandas=True) for name, value in values.items()},
    }
    return _table(columns, len(question), SCORES)


def measured(predicted: Floats, observed: Floats, n: Ints, k: Ints) -> dict[str, Floats]:
    """Every metric and corrected error of rows (rows, options), those with k options at a time."""
    found: dict[str, Floats] = {}
    for many in np.unique(k):
        rows = np.flatnonzero(k == many)
        p, q = predicted[rows, :many], observed[rows, :many]
        for name, value in (
            measure(p, q) | compute_corrected_errors(DistributionPair(p, q), n[rows].astype(np.float64))
        ).items():
            found.setdefault(name, np.full(len(k), np.nan))[rows] = value
    return found


def _pairs(survey: Survey) -> tuple[Ints, Ints]:
    usable = np.flatnonzero(survey.n >= MIN_N)
    return np.repeat(np.arange(len(survey.k)), len(usable)), np.tile(usable, len(survey.k))


def _named(world: World, survey: Survey, question: Ints, segment: Ints) -> Columns:
    """Who was asked what."""
    options = {k: [f"option {place}" for place in range(k)] for k in np.unique(survey.k)}
    return {
        "round": survey.round,
        "segment": _of(world.names, segment),
        "attribute": _of(world.attributes, segment),
        "value": _of(world.names, segment),
        "question_id": _of([f"q{place}" for place in range(len(survey.k))], question),
        "question_order": question,
        "draw_order": question,
        "question_text": _of(question_texts(int(survey.number.max()) + 1), survey.number[question]),
        "battery": _of([f"b{place}" for place in survey.battery], question),
        "options": pa.array([options[k] for k in survey.k]).take(pa.array(question)),
        "scale": "ordinal",
        "scale_reason": "as made",
        "dont_know": pa.array([[False] * k for k in survey.k]).take(pa.array(question)),
        "positions": pa.array([[float(place + 1) for place in range(k)] for k in survey.k]).take(pa.array(question)),
        "circular": False,
    }


@lru_cache
def question_texts(many: int) -> tuple[str, ...]:
    """Texts so different that no two are taken for one question or one battery: what belongs together, the column `battery` says."""
    rng = np.random.default_rng(7)
    syllables = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
    words = [["".join(rng.choice(syllables, size=3)) for _ in range(9)] for _ in range(many)]
    return tuple(" ".join(text).capitalize() + "?" for text in words)


def _of(names: Iterable[str], places: Ints) -> pa.Array:
    return pa.array(list(names), pa.string()).take(pa.array(places))


def _lists(rows: Floats, k: Ints, there: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """The first k of each row as a list, null where it is not `there`."""
    there = np.ones(len(k), dtype=bool) if there is None else there
    kept = (np.arange(rows.shape[1]) < k[:, None]) & there[:, None]
    ends = np.concatenate([[0], np.cumsum(np.where(there, k, 0))])
    # An offset that is null makes the list null.
    offsets = pa.array(ends.astype(np.int32), mask=np.append(~there, False))
    return pa.ListArray.from_arrays(offsets, pa.array(rows[kept]))


def _table(columns: Mapping[str, Any], rows: int, schema: pa.Schema) -> pa.Table:
    """Columns of the schema: arrays, or one value for all rows; null where nothing is given."""
    made = []
    for field in schema:
        value = columns.get(field.name)
        if isinstance(value, np.ndarray):
            made.append(pa.array(value, field.type))
        elif isinstance(value, (pa.Array, pa.ChunkedArray)):
            made.append(value.cast(field.type))
        else:
            made.append(pa.repeat(pa.scalar(value, field.type), rows))
    return pa.table(made, schema=schema)

"""How much every score would move if each segment's answers were drawn anew.

Every prediction and every reference is scored against the samples of `redrawn`. Predictions that are made of the same answers move with them:
the population marginal and the leave-one-out mean, as models and as references. What is kept is how far each such score is from their mean: the
noise that the respondents bring into a score.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import BoardOptions, has_table, identify
from dtef_pipeline.boards.scored import Deviations
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL
from dtef_pipeline.survey.boards.redrawn import DRAWN_FROM, REPLICATES, Redrawn, effective_sql, redrawn, with_size
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring import metrics
from dtef_pipeline.survey.scoring.matrices import EFFECTIVE, Places, has_listed_order, matrix
from dtef_pipeline.survey.scoring.metrics import Floats
from dtef_pipeline.survey.tables import DISTANCES

_PREDICTIONS_AT_ONCE = 1_000
"""Predictions scored at a time, each against all samples: small enough for the processor's cache."""


@dataclass(frozen=True, slots=True)
class SamplingNoise:
    """Deviations of scores from their mean over samples of the answers, float32, 0 on average and 0 where nothing was scored.

    Those of cells are aligned with the rows of `load_cells`, those of references with pairs; `pair` is the pair of each cell, the last, of
    zeros, where it is unknown. Taking out the mean takes from the variance, which is given back.
    """

    score: Deviations  # (rows, replicates)
    pair: Places  # (rows,)
    others: Deviations  # (pairs + 1, replicates) of the leave-one-out mean

    def of(self, rows: Places) -> SamplingNoise:
        """That of some of the cells."""
        return replace(self, score=self.score[rows], pair=self.pair[rows])


def sampling_noise(connection: duckdb.DuckDBPyConnection, cells: pd.DataFrame, options: BoardOptions) -> SamplingNoise | None:
    """The noise of `cells` (of `load_cells`) under the board's metric; None where there is no table `survey_responses`.

    `connection` has `scores` as well. A cell's deviation is the mean over its scored draws; a draw that could not be parsed has its score
    whatever the answers were, so it adds 0.
    """
    if not has_table(connection, "survey_responses"):
        return None
    names = ", ".join(effective_sql(connection) if name == EFFECTIVE else name for name in DRAWN_FROM)
    survey = with_size(connection.sql(f"SELECT {names} FROM survey_responses ORDER BY ALL").to_arrow_table())
    pair = _pairs(survey, cells)
    samples = list(redrawn(survey, np.unique(pair[pair >= 0]), np.random.default_rng(options.seed)))
    row, predicted = _predictions(connection, cells)
    sums = score_anew(samples, Predictions(cells["model"], pair, row, predicted), options.metric)
    unread = (cells["n_answered"] - cells["n_ok"]).to_numpy(dtype=np.float64)
    np.divide(sums.score, np.maximum(sums.draws + unread, 1).astype(np.float32)[:, None], out=sums.score)
    known = np.where(pair < 0, len(survey), pair)
    return SamplingNoise(sums.score, known, _others(survey, samples, options.metric))


class Predictions(NamedTuple):
    """Parsed predictions, each of a cell, and the cells."""

    model: pd.Series  # (cells,)
    pair: Places  # (cells,): the survey's row, -1 where it has none
    cell: Places  # (predictions,), in order
    predicted: pa.Array  # (predictions,) distributions


class SummedDraws(NamedTuple):
    """What is added up over the draws of each cell."""

    score: Deviations  # (cells, replicates)
    draws: Floats  # (cells,) with a score


def score_anew(samples: Iterable[Redrawn], given: Predictions, metric: str) -> SummedDraws:
    """Deviations of the predictions' scores under the metric from their mean over the samples."""
    shape = (len(given.pair), REPLICATES)
    sums = SummedDraws(np.zeros(shape, dtype=np.float32), np.zeros(shape[0]))
    moving = [np.asarray(given.model == name, dtype=bool) for name in (POPULATION_MARGINAL, LEAVE_ONE_OUT)]
    for sample in samples:
        _score_draws(sample, given, moving, metric, sums)
    return sums


def _pairs(survey: pa.Table, cells: pd.DataFrame) -> Places:
    """The survey's row of each cell, -1 where it has none."""
    known = pd.MultiIndex.from_frame(survey.select(list(KEYS.pair)).to_pandas())
    back, asked = identify(cells, KEYS.pair)
    return np.asarray(known.get_indexer(pd.MultiIndex.from_frame(asked.astype(str))).astype(np.int64)[back])


def _predictions(connection: duckdb.DuckDBPyConnection, cells: pd.DataFrame) -> tuple[Places, pa.Array]:
    """Parsed predictions behind the cells: the cell of each, in their order, and the distributions."""
    chosen = cells[list(KEYS.row)].assign(row=np.arange(len(cells)))
    connection.register("noise_cells", chosen)
    try:
        same = " AND ".join(f"scores.{name} = noise_cells.{name}::VARCHAR" for name in KEYS.row)
        found: pa.Table = connection.sql(
            f"SELECT row, predicted FROM scores JOIN noise_cells ON {same} WHERE status = 'ok' AND predicted IS NOT NULL ORDER BY row, draw"
        ).to_arrow_table()
    finally:
        connection.unregister("noise_cells")
    return found["row"].to_numpy().astype(np.int64), found["predicted"].combine_chunks()


def _score_draws(
    sample: Redrawn, given: Predictions, moving: Sequence[npt.NDArray[np.bool_]], metric: str, sums: SummedDraws
) -> None:
    """Adds the deviations of the predictions of k options to their cells, and counts those that have a score."""
    _, pair, row, predicted = given
    place = np.where(pair[row] >= 0, sample.place[pair[row]], -1)
    chosen = np.flatnonzero(place >= 0)
    for block in np.array_split(chosen, max(1, -(-len(chosen) // _PREDICTIONS_AT_ONCE))) if len(chosen) else []:
        at, cell = place[block], row[block]
        moved = np.zeros((len(block), REPLICATES, sample.k))
        for of_answers, how in zip(moving, (sample.population, sample.others), strict=True):
            some = np.flatnonzero(of_answers[cell])
            moved[some] = how(at[some]) if len(some) else 0
        shown = _moved(matrix(predicted, sample.k, block), moved)
        scored = _scores(metric, shown, sample, at).reshape(-1, REPLICATES)
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        sums.score[cell[first]] += np.add.reduceat(_deviations(scored), first, axis=0)
        sums.draws[cell[first]] += np.add.reduceat(np.isfinite(scored[:, 0]).astype(np.float64), first)


def _moved(predicted: Floats, moved: Floats) -> Floats:
    """Predictions (rows, k) as rows for each replicate, (rows x replicates, k), each with what it `moved` (rows, replicates, k)."""
    return np.maximum(predicted[:, None] + moved, 0).reshape(-1, predicted.shape[1])


def _scores(metric: str, predicted: Floats, sample: Redrawn, places: Places) -> Floats:
    """Similarities (places x replicates,), NaN where the metric has no value."""
    answers = sample.rows(places)
    values = getattr(metrics, metric)(predicted, answers)
    if metric == "emd_normalized":
        for ranks, rows in _other_orders(sample, places):
            values[rows] = metrics.emd_normalized_on_scale(predicted[rows], answers[rows], ranks)
        values[~np.repeat(sample.ordinal[places], REPLICATES)] = np.nan
    return np.asarray(1 - values if metric in DISTANCES else values)


def _other_orders(sample: Redrawn, places: Places) -> Iterator[tuple[Places, npt.NDArray[np.bool_]]]:
    """All ranks (k,) of options on a scale but the listed order, and which rows (places x replicates,) have them."""
    ranks = sample.ranks[places]
    for some in np.unique(ranks[~has_listed_order(ranks)], axis=0):
        yield some, np.repeat((ranks == some).all(axis=1), REPLICATES)


def _deviations(values: Floats) -> Deviations:
    """(rows, replicates) from the rows' means, with the variance that one of many replicates would have; 0 where there is no value."""
    centred = values - values.mean(axis=1, keepdims=True)
    return np.where(np.isfinite(centred), centred * np.sqrt(REPLICATES / (REPLICATES - 1)), 0).astype(np.float32)


def _others(survey: pa.Table, samples: list[Redrawn], metric: str) -> Deviations:
    """Deviations (pairs + 1, replicates) of the leave-one-out distribution."""
    others = np.zeros((len(survey) + 1, REPLICATES), dtype=np.float32)
    lists = survey["others"].combine_chunks()
    known = lists.is_valid().to_numpy(zero_copy_only=False)
    for sample in samples:
        some = np.flatnonzero(known[sample.pairs])
        if len(some):
            predicted = _moved(matrix(lists, sample.k, sample.pairs[some]), sample.others(some))
            scored = _scores(metric, predicted, sample, some).reshape(-1, REPLICATES)
            others[sample.pairs[some]] = _deviations(scored)
    return others

"""How much every score would move if each segment's answers were drawn anew.

An observed distribution is a sample of n people. Samples of the same size are drawn from it once per pair (round, segment, question), the same
for all models, contexts and conditions; every prediction and every reference is scored against them. What is kept is how far each such score is
from their mean: the noise that the respondents bring into a score (parametric bootstrap: Efron & Tibshirani 1993, ch. 6.5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.boards.cells import BoardOptions, has_table, identify
from dtef_pipeline.boards.scored import Deviations
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring import metrics
from dtef_pipeline.survey.scoring.matrices import Places, dont_know_flags, matrix
from dtef_pipeline.survey.scoring.metrics import Floats
from dtef_pipeline.survey.scoring.unbiased import corrected_l2, gini
from dtef_pipeline.survey.tables import DISTANCES

REPLICATES = 20
"""Samples per pair. Their deviations are pooled over pairs, so that 20 are enough for hundreds of pairs."""
_PREDICTIONS_AT_ONCE = 1_000
"""Predictions scored at a time, each against all samples: small enough for the processor's cache."""


@dataclass(frozen=True, slots=True)
class SamplingNoise:
    """Deviations of scores from their mean over samples of the answers, float32, 0 on average and 0 where nothing was scored.

    Those of cells are aligned with the rows of `load_cells`, those of references with pairs; `pair` is the pair of each cell, the last, of
    zeros, where it is unknown. Taking out the mean takes from the variance, which is given back.
    """

    score: Deviations  # (rows, replicates)
    l2_corrected: Deviations  # (rows, replicates)
    pair: Places  # (rows,)
    uniform: Deviations  # (pairs + 1, replicates)
    others: Deviations
    gini: Deviations

    def of(self, rows: Places) -> SamplingNoise:
        """That of some of the cells."""
        return replace(self, score=self.score[rows], l2_corrected=self.l2_corrected[rows], pair=self.pair[rows])


def sampling_noise(connection: duckdb.DuckDBPyConnection, cells: pd.DataFrame, options: BoardOptions) -> SamplingNoise | None:
    """The noise of `cells` (of `load_cells`) under the board's metric; None where there is no table `survey_responses`.

    `connection` has `scores` as well. A cell's deviation is the mean over its scored draws; a draw that could not be parsed has its score
    whatever the answers were, so it adds 0.
    """
    if not has_table(connection, "survey_responses"):
        return None
    survey: pa.Table = connection.sql(
        f"SELECT {', '.join(KEYS.pair)}, scale, dont_know, observed, others, n FROM survey_responses WHERE n > 0 ORDER BY ALL"
    ).to_arrow_table()
    pair = _pairs(survey, cells)
    samples = list(_samples(survey, np.unique(pair[pair >= 0]), np.random.default_rng(options.seed)))
    score, l2 = (np.zeros((len(cells), REPLICATES), dtype=np.float32) for _ in range(2))
    draws = np.zeros(len(cells))
    row, predicted = _predictions(connection, cells)
    for sample in samples:
        _score_draws(sample, row, predicted, pair, options.metric, score, l2, draws)
    unread = (cells["n_answered"] - cells["n_ok"]).to_numpy(dtype=np.float64)
    score /= np.maximum(draws + unread, 1).astype(np.float32)[:, None]
    l2 /= np.maximum(cells["n_ok"].to_numpy(dtype=np.float64), 1).astype(np.float32)[:, None]
    return SamplingNoise(score, l2, np.where(pair < 0, len(survey), pair), *_references(survey, samples, options.metric))


@dataclass(frozen=True, slots=True)
class _Sample:
    """The pairs of k options: samples of their answers."""

    k: int
    pairs: Places  # (pairs,) rows of the survey
    place: Places  # row of the survey -> place among `pairs`, -1: another number of options
    n: Floats
    answers: Floats  # (pairs, replicates, k) fractions
    ordinal: npt.NDArray[np.bool_]
    dont_know: npt.NDArray[np.bool_]  # (pairs, k)

    def rows(self, places: Places) -> Floats:
        """The samples of some pairs as rows, (pairs x replicates, k)."""
        return self.answers[places].reshape(-1, self.k)


def _pairs(survey: pa.Table, cells: pd.DataFrame) -> Places:
    """The survey's row of each cell, -1 where it has none."""
    known = pd.MultiIndex.from_frame(survey.select(list(KEYS.pair)).to_pandas())
    back, asked = identify(cells, KEYS.pair)
    return np.asarray(known.get_indexer(pd.MultiIndex.from_frame(asked.astype(str))).astype(np.int64)[back])


def _samples(survey: pa.Table, asked: Places, rng: np.random.Generator) -> Iterator[_Sample]:
    lists = {name: survey[name].combine_chunks() for name in ("observed", "dont_know")}
    sizes = np.diff(lists["observed"].offsets.to_numpy())
    n = survey["n"].to_numpy().astype(np.int64)
    for k in np.unique(sizes[asked]).tolist():
        pairs = asked[sizes[asked] == k]
        place = np.full(len(survey), -1)
        place[pairs] = np.arange(len(pairs))
        truth = metrics.distributions(matrix(lists["observed"], k, pairs))
        counts = rng.multinomial(np.broadcast_to(n[pairs], (REPLICATES, len(pairs))), truth)
        answers = np.ascontiguousarray((counts / n[pairs][:, None]).transpose(1, 0, 2))
        flags = dont_know_flags(lists["dont_know"].take(pa.array(pairs)), k)
        ordinal = np.asarray(pc.equal(survey["scale"], "ordinal").take(pa.array(pairs)))
        yield _Sample(k, pairs, place, n[pairs].astype(np.float64), answers, ordinal, flags)


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
    sample: _Sample,
    row: Places,
    predicted: pa.Array,
    pair: Places,
    metric: str,
    score: Deviations,
    l2: Deviations,
    draws: Floats,
) -> None:
    """Adds the deviations of the predictions of k options to their cells, and counts those that have a score."""
    place = np.where(pair[row] >= 0, sample.place[pair[row]], -1)
    chosen = np.flatnonzero(place >= 0)
    for block in np.array_split(chosen, max(1, -(-len(chosen) // _PREDICTIONS_AT_ONCE))) if len(chosen) else []:
        q, at, cell = matrix(predicted, sample.k, block), place[block], row[block]
        answers, repeated = sample.rows(at), np.repeat(q, REPLICATES, axis=0)
        scored = _scores(metric, repeated, answers, np.repeat(sample.ordinal[at], REPLICATES), sample.dont_know[at])
        errors = corrected_l2(repeated, answers, np.repeat(sample.n[at], REPLICATES)).reshape(-1, REPLICATES)
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        score[cell[first]] += np.add.reduceat(_deviations(scored.reshape(-1, REPLICATES)), first, axis=0)
        l2[cell[first]] += np.add.reduceat(_deviations(errors), first, axis=0)
        draws[cell[first]] += np.add.reduceat(np.isfinite(scored[::REPLICATES]).astype(np.float64), first)


def _scores(
    metric: str, predicted: Floats, answers: Floats, ordinal: npt.NDArray[np.bool_], dont_know: npt.NDArray[np.bool_]
) -> Floats:
    """Similarities (rows,), NaN where the metric has no value; `dont_know` (rows / replicates, k)."""
    values = getattr(metrics, metric)(predicted, answers)
    if metric == "emd_normalized":
        flags = np.repeat(dont_know, REPLICATES, axis=0)
        for off in np.unique(dont_know[dont_know.any(axis=1)], axis=0):
            rows = (flags == off).all(axis=1)
            values[rows] = metrics.emd_normalized_on_scale(predicted[rows], answers[rows], off)
        values[~ordinal] = np.nan
    return np.asarray(1 - values if metric in DISTANCES else values)


def _deviations(values: Floats) -> Deviations:
    """(rows, replicates) from the rows' means, with the variance that one of many replicates would have; 0 where there is no value."""
    centred = values - values.mean(axis=1, keepdims=True)
    return np.where(np.isfinite(centred), centred * np.sqrt(REPLICATES / (REPLICATES - 1)), 0).astype(np.float32)


def _references(survey: pa.Table, samples: list[_Sample], metric: str) -> tuple[Deviations, Deviations, Deviations]:
    """Deviations (pairs, replicates) of the uniform and the leave-one-out distribution, and of the unbiased Gini index."""
    uniform, others, spread = (np.zeros((len(survey) + 1, REPLICATES), dtype=np.float32) for _ in range(3))
    lists = survey["others"].combine_chunks()
    known = lists.is_valid().to_numpy(zero_copy_only=False)
    for sample in samples:
        every = np.arange(len(sample.pairs))
        uniform[sample.pairs] = _of_pairs(sample, metric, every, np.ones((len(every), sample.k)))
        some = every[known[sample.pairs]]
        if len(some):
            others[sample.pairs[some]] = _of_pairs(sample, metric, some, matrix(lists, sample.k, sample.pairs[some]))
        n = np.repeat(sample.n, REPLICATES)
        spread[sample.pairs] = _deviations(gini(sample.rows(every), n).reshape(-1, REPLICATES))
    return uniform, others, spread


def _of_pairs(sample: _Sample, metric: str, places: Places, predicted: Floats) -> Deviations:
    repeated, ordinal = np.repeat(predicted, REPLICATES, axis=0), np.repeat(sample.ordinal[places], REPLICATES)
    return _deviations(
        _scores(metric, repeated, sample.rows(places), ordinal, sample.dont_know[places]).reshape(-1, REPLICATES)
    )

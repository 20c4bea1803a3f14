"""How much scores would change with another sample of respondents.

An observed distribution is a sample of n people (n_effective for weighted answers). Samples of the same size are drawn from it (parametric
bootstrap: Efron & Tibshirani 1993, ch. 6.5), one set per pair (round, segment, question) for all models, contexts and conditions.
Countries, ages and genders consist of the same people, so if a sample of one attribute has an answer too often, the samples of the other
attributes do too. Every prediction and every reference is scored against these samples; predictions computed from the same answers (the
population marginal and the leave-one-out mean) change with them. The deviation of each score from the mean over samples is the noise due to
the choice of respondents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.boards.cells import BoardOptions, Deviations, has_table, identify
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring import metrics
from dtef_pipeline.survey.scoring.metrics import (
    Floats,
    Places,
    build_matrix,
    compute_scale_ranks,
    has_listed_order,
    sample_sizes,
)
from dtef_pipeline.survey.tables import DISTANCES

REPLICATES = 20
"""Samples per pair. Their deviations are pooled over pairs, so that 20 are enough for hundreds of pairs."""
SAMPLE_COLUMNS = (
    *(*KEYS.pair, "attribute", "scale", "dont_know", "positions"),
    *("observed", "leave_one_out_marginal", "n", "n_effective"),
)
"""Columns of `survey_responses` that are needed."""
ANSWER_COLUMNS = (*SAMPLE_COLUMNS, "leave_one_out_n", "population", "population_n")
"""Columns of `survey_responses` that are needed."""
SCORE_COLUMNS = (KEYS.item, "model", "status", "predicted", "metric")
"""Columns of `scores` that are needed."""
_PREDICTIONS_AT_ONCE = 1_000
"""Predictions scored at a time, each against all samples: small enough for the processor's cache."""


@dataclass(frozen=True, slots=True)
class SamplingNoise:
    """Deviations of scores from their mean over samples of the answers, float32, 0 on average and 0 for unscored cells.

    Deviations of cells are aligned with the rows of `load_cells`, those of references with pairs. `pair` is the pair of each cell; for an
    unknown pair it is the last, whose deviations are 0. The variance is corrected for subtracting the mean.
    """

    score: Deviations  # (rows, replicates)
    pair: Places  # (rows,)
    marginal: Deviations  # (pairs + 1, replicates) of the leave-one-out mean

    def select_cells(self, rows: Places) -> SamplingNoise:
        """Return the noise of some of the cells."""
        return replace(self, score=self.score[rows], pair=self.pair[rows])


def estimate_sampling_noise(
    connection: duckdb.DuckDBPyConnection, cells: pd.DataFrame, options: BoardOptions
) -> SamplingNoise | None:
    """Return the noise of `cells` (from `load_cells`) under the board's metric, or None without a table `survey_responses`.

    `connection` also has `scores`. A cell's deviation is the mean over its scored draws; an unparseable draw has a fixed score, so it adds
    0.
    """
    if not has_table(connection, "survey_responses"):
        return None
    survey = filter_with_size(
        connection.sql(f"SELECT {', '.join(SAMPLE_COLUMNS)} FROM survey_responses ORDER BY ALL").to_arrow_table()
    )
    index = pd.MultiIndex.from_frame(survey.select(list(KEYS.pair)).to_pandas())
    code, pairs = identify(cells, KEYS.pair)
    # The survey's row of each cell, or -1 without a row.
    pair = index.get_indexer(pd.MultiIndex.from_frame(pairs.astype(str))).astype(np.int64)[code]
    samples = list(draw_answers(survey, np.unique(pair[pair >= 0]), np.random.default_rng(options.seed)))
    row, predicted = _load_predictions(connection, cells)
    score, draws = _score_against_samples(samples, Predictions(cells["model"], pair, row, predicted), options.metric)
    unread = (cells["n_answered"] - cells["n_ok"]).to_numpy(dtype=np.float64)
    np.divide(score, np.maximum(draws + unread, 1).astype(np.float32)[:, None], out=score)
    survey_rows = np.where(pair < 0, len(survey), pair)
    return SamplingNoise(score, survey_rows, _compute_marginal_deviations(survey, samples, options.metric))


class Predictions(NamedTuple):
    """Parsed predictions with their cells."""

    model: pd.Series  # (cells,)
    pair: Places  # (cells,): the survey's row, -1 where it has none
    cell: Places  # (predictions,), in order
    predicted: pa.Array  # (predictions,) distributions


def _score_against_samples(
    samples: Iterable[AnswerSamples], predictions: Predictions, metric: str
) -> tuple[Deviations, Floats]:
    """Return the deviations of scores from their mean over the samples, (cells, replicates), and the draws with a score, (cells,).

    Deviations are under the metric, summed over the draws of a cell.
    """
    model, pair, row, predicted = predictions
    deviations, draws = np.zeros((len(pair), REPLICATES), dtype=np.float32), np.zeros(len(pair))
    moving = [np.asarray(model == name, dtype=bool) for name in (POPULATION_MARGINAL, LEAVE_ONE_OUT)]
    for sample in samples:
        place = np.where(pair[row] >= 0, sample.place[pair[row]], -1)
        usable = np.flatnonzero(place >= 0)
        for block in np.array_split(usable, max(1, -(-len(usable) // _PREDICTIONS_AT_ONCE))) if len(usable) else []:
            block_place, cell = place[block], row[block]
            shifts = np.zeros((len(block), REPLICATES, sample.k))
            for mask, sampler in zip(moving, (sample.shift_population, sample.shift_other_segments), strict=True):
                places = np.flatnonzero(mask[cell])
                shifts[places] = sampler(block_place[places]) if len(places) else 0
            matrix = _move_predictions(build_matrix(predicted, sample.k, block), shifts)
            scores = _score_samples(metric, matrix, sample, block_place).reshape(-1, REPLICATES)
            first = np.flatnonzero(np.diff(cell, prepend=-1))
            deviations[cell[first]] += np.add.reduceat(_compute_deviations(scores), first, axis=0)
            draws[cell[first]] += np.add.reduceat(np.isfinite(scores[:, 0]).astype(np.float64), first)
    return deviations, draws


def _load_predictions(connection: duckdb.DuckDBPyConnection, cells: pd.DataFrame) -> tuple[Places, pa.Array]:
    """Return the cell of each parsed prediction, in order, and the distributions."""
    noise_rows = cells[list(KEYS.row)].assign(row=np.arange(len(cells)))
    connection.register("noise_cells", noise_rows)
    try:
        condition = " AND ".join(f"scores.{name} = noise_cells.{name}::VARCHAR" for name in KEYS.row)
        table: pa.Table = connection.sql(
            f"SELECT row, predicted FROM scores JOIN noise_cells ON {condition} WHERE status = 'ok' AND predicted IS NOT NULL ORDER BY row, draw"
        ).to_arrow_table()
    finally:
        connection.unregister("noise_cells")
    return table["row"].to_numpy().astype(np.int64), table["predicted"].combine_chunks()


def _move_predictions(predicted: Floats, shifts: Floats) -> Floats:
    """Return predictions (rows, k) as rows for each replicate, (rows x replicates, k), moved by `shifts` (rows, replicates, k)."""
    return np.maximum(predicted[:, None] + shifts, 0).reshape(-1, predicted.shape[1])


def _score_samples(metric: str, predicted: Floats, sample: AnswerSamples, places: Places) -> Floats:
    """Return similarities (places x replicates,), NaN if the metric has no value."""
    answers = sample.rows(places)
    values = getattr(metrics, metric)(predicted, answers)
    if metric == "emd_normalized":
        ranks = sample.ranks[places]
        for order in np.unique(ranks[~has_listed_order(ranks)], axis=0):
            rows = np.repeat((ranks == order).all(axis=1), REPLICATES)
            values[rows] = metrics.emd_normalized_on_scale(predicted[rows], answers[rows], order)
        values[~np.repeat(sample.ordinal[places], REPLICATES)] = np.nan
    return np.asarray(1 - values if metric in DISTANCES else values)


def _compute_deviations(values: Floats) -> Deviations:
    """Return deviations (rows, replicates) from the rows' means, with the variance for infinitely many replicates; 0 without a value."""
    deviations = values - values.mean(axis=1, keepdims=True)
    return np.where(np.isfinite(deviations), deviations * np.sqrt(REPLICATES / (REPLICATES - 1)), 0).astype(np.float32)


def _compute_marginal_deviations(survey: pa.Table, samples: list[AnswerSamples], metric: str) -> Deviations:
    """Return deviations (pairs + 1, replicates) of the leave-one-out distribution."""
    deviations = np.zeros((len(survey) + 1, REPLICATES), dtype=np.float32)
    lists = survey["leave_one_out_marginal"].combine_chunks()
    has_others = lists.is_valid().to_numpy(zero_copy_only=False)
    for sample in samples:
        places = np.flatnonzero(has_others[sample.pairs])
        if len(places):
            predicted = _move_predictions(
                build_matrix(lists, sample.k, sample.pairs[places]), sample.shift_other_segments(places)
            )
            scores = _score_samples(metric, predicted, sample, places).reshape(-1, REPLICATES)
            deviations[sample.pairs[places]] = _compute_deviations(scores)
    return deviations


def estimate_segment_noise(scores: pa.Table, survey: pa.Table) -> Deviations:
    """Return deviations (scores, replicates) of each of a segment's `scores` under its metric, 0 on average.

    `survey`: the columns ANSWER_COLUMNS of the segment. A deviation is 0 if the response is unreadable, if the survey has no such question
    with as many options, or if its n is unknown.
    """
    survey_rows = filter_with_size(survey.select(ANSWER_COLUMNS)).sort_by(KEYS.item)
    noise = np.zeros((len(scores), REPLICATES), dtype=np.float32)
    pair = pc.fill_null(pc.index_in(scores[KEYS.item], survey_rows[KEYS.item].combine_chunks()), -1).to_numpy().astype(np.int64)
    options, lengths = (
        pc.fill_null(pc.list_value_length(lists), -1).to_numpy() for lists in (survey_rows["observed"], scores["predicted"])
    )
    read = np.flatnonzero(pc.equal(scores["status"], "ok").to_numpy() & (pair >= 0))
    read = read[options[pair[read]] == lengths[read]]
    answers = pa.concat_tables([survey_rows.select(SAMPLE_COLUMNS), _select_other_people(survey_rows)])
    samples = list(draw_answers(answers, np.unique(pair[read]), np.random.default_rng(SEED)))
    metric = scores["metric"].to_numpy()[read]
    for name in pd.unique(metric):
        rows = read[metric == name]
        selection = scores.select(["model", "predicted"]).take(pa.array(rows))
        models, predicted = selection["model"].dictionary_encode().to_pandas(), selection["predicted"].combine_chunks()
        segment_predictions = Predictions(models, pair[rows], np.arange(len(rows)), predicted)
        noise[rows], _ = _score_against_samples(samples, segment_predictions, name)
    return noise


def _select_other_people(survey: pa.Table) -> pa.Table:
    """Return SAMPLE_COLUMNS for people outside the segment: the others of its attribute, or all if its attribute has no other segment."""
    answers = pc.coalesce(survey["leave_one_out_marginal"], survey["population"])
    people = pc.if_else(
        pc.is_valid(survey["leave_one_out_marginal"]),
        survey["leave_one_out_n"],
        pc.subtract(survey["population_n"], survey["n"].cast(pa.int64())),
    )
    rows = survey.select(SAMPLE_COLUMNS)
    nulls = pa.nulls(len(rows), pa.float64())
    for name, column in (("observed", answers), ("n", people.cast(pa.int32())), ("n_effective", nulls)):
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows.filter(pc.and_kleene(pc.greater(rows["n"], 0), pc.is_valid(rows["observed"])))


@dataclass(frozen=True, slots=True)
class AnswerSamples:
    """Samples of the answers of the pairs with k options."""

    k: int
    pairs: Places  # (pairs,) rows of the survey
    place: Places  # row of the survey -> place among `pairs`, -1: another number of options
    n: Floats  # (pairs,) respondents, by whom means are weighted
    n_effective: Floats  # (pairs,) respondents that the answers count for, as of `sample_sizes`
    observed: Floats  # (pairs, k)
    answers: Floats  # (pairs, replicates, k) fractions
    ordinal: npt.NDArray[np.bool_]
    ranks: Places  # (pairs, k) on the scale, -1 off it
    groups: _Groups

    def rows(self, places: Places) -> Floats:
        """Return the samples of some pairs as rows, (pairs x replicates, k)."""
        return self.answers[places].reshape(-1, self.k)

    def shift_other_segments(self, places: Places) -> Floats:
        """Return (places, replicates, k): the shift of the mean answer of the attribute's other segments, 0 without any."""
        group, n = self.groups.group[places], self.n[places]
        n_others = self.groups.size[group] - n
        own_moves = n[:, None, None] * (self.answers[places] - self.observed[places, None])
        moves = (self.groups.shift_sums[group] - own_moves) / np.maximum(n_others, 1)[:, None, None]
        return np.where(n_others[:, None, None] > 0, moves, 0)

    def shift_population(self, places: Places) -> Floats:
        """Return (places, replicates, k): the shift of the mean answer of all people, according to the attribute with most of them."""
        main = self.groups.main[self.groups.group[places]]
        return np.asarray(self.groups.shift_sums[main] / self.groups.size[main, None, None])


@dataclass(frozen=True, slots=True)
class _Groups:
    """The segments of an attribute that answered the same question."""

    group: Places  # (pairs,)
    main: Places  # (groups,) the group of the same question with most respondents
    size: Floats  # (groups,) respondents
    shift_sums: Floats  # (groups, replicates, k) sums over the respondents of how far their answers moved


def filter_with_size(survey: pa.Table) -> pa.Table:
    """Return the rows whose answers are a sample of known size."""
    return survey.filter(pa.array(sample_sizes(survey) > 0))


def draw_answers(survey: pa.Table, rows: Places, rng: np.random.Generator) -> Iterator[AnswerSamples]:
    """Yield samples by number of options.

    `survey`: SAMPLE_COLUMNS, from `filter_with_size`. `rows`: rows whose questions are drawn, in every segment.
    """
    lists = {name: survey[name].combine_chunks() for name in ("observed", "dont_know", "positions")}
    sizes = np.diff(lists["observed"].offsets.to_numpy())
    n_drawn = np.maximum(np.rint(sample_sizes(survey)), 1).astype(np.int64)
    n = pc.coalesce(survey["n"].cast(pa.float64()), pa.array(n_drawn.astype(np.float64))).to_numpy()
    question, group = (_number_rows(survey, names) for names in (KEYS.shared_item, (*KEYS.shared_item, "attribute")))
    selection = np.flatnonzero(np.isin(question, question[rows]))
    for k in np.unique(sizes[selection]).tolist():
        pairs = selection[sizes[selection] == k]
        place = np.full(len(survey), -1)
        place[pairs] = np.arange(len(pairs))
        observed = metrics.normalise_distributions(build_matrix(lists["observed"], k, pairs))
        counts = rng.multinomial(np.broadcast_to(n_drawn[pairs], (REPLICATES, len(pairs))), observed)
        answers = np.ascontiguousarray((counts / n_drawn[pairs][:, None]).transpose(1, 0, 2))
        dont_know, positions = (lists[name].take(pa.array(pairs)) for name in ("dont_know", "positions"))
        ranks = compute_scale_ranks(dont_know, positions, k)
        ordinal = np.asarray(pc.equal(survey["scale"], "ordinal").take(pa.array(pairs)))
        size = n[pairs]
        groups = _build_groups(group[pairs], question[pairs], size, answers - observed[:, None])
        answers = _share_moves(answers, groups)
        groups = _build_groups(group[pairs], question[pairs], size, answers - observed[:, None])
        yield AnswerSamples(k, pairs, place, size, n_drawn[pairs].astype(np.float64), observed, answers, ordinal, ranks, groups)


def _number_rows(survey: pa.Table, names: tuple[str, ...]) -> Places:
    """Return the index of each row's distinct combination, in order. (Pandas would take longer over a segment than the samples.)"""
    code = np.zeros(len(survey), dtype=np.int64)
    for name in names:
        categories = survey[name].combine_chunks().dictionary_encode()
        place = np.argsort(np.argsort(categories.dictionary.to_numpy(zero_copy_only=False)))
        code = code * len(place) + place[categories.indices.to_numpy()]
    return np.unique(code, return_inverse=True)[1].astype(np.int64)


def _build_groups(group: Places, question: Places, n: Floats, moves: Floats) -> _Groups:
    _, first, code = np.unique(group, return_index=True, return_inverse=True)
    order = np.argsort(code, kind="stable")
    starts = np.searchsorted(code[order], np.arange(len(first)))
    size = np.add.reduceat(n[order], starts)
    sums = np.add.reduceat((n[:, None, None] * moves)[order], starts, axis=0)
    return _Groups(code, _find_largest_groups(question[first], size), size, sums)


def _find_largest_groups(question: Places, size: Floats) -> Places:
    """Return for each group the largest group of the same question; the first if there are several."""
    order = np.lexsort((-size, question))
    _, first, code = np.unique(question[order], return_index=True, return_inverse=True)
    largest = np.empty(len(order), dtype=np.int64)
    largest[order] = order[first][code]
    return largest


def _share_moves(answers: Floats, groups: _Groups) -> Floats:
    """Return the samples of each attribute, shifted so that all of its people together answer as those of the question's largest attribute.

    If A and B are the mean shifts of two attributes with N and M <= N of the same people, B is replaced by A + sqrt(1 - M / N) B: its
    variance is unchanged, and its covariance with A is that of M of the N people. So the overlap of two segments is as large as if
    attributes were independent.
    """
    mean = groups.shift_sums / groups.size[:, None, None]
    weight = np.sqrt(1 - groups.size / groups.size[groups.main])[:, None, None]
    is_main = groups.main == np.arange(len(groups.main))
    shift = np.where(is_main[:, None, None], 0, mean[groups.main] - (1 - weight) * mean)
    together = np.maximum(answers + shift[groups.group], 0)
    return np.asarray(together / together.sum(axis=2, keepdims=True))

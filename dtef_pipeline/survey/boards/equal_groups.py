"""What a model would have scored if the groups of an attribute were equal but for their sizes.

The null hypothesis behind `gaps`. On a question, what a group truly answers and what the model says of it belong together; which group has
which such pair is chance. So each cell is given, in turn, the truth and the predictions of every segment of its attribute, with its own number
of respondents. The truth is not known: it is drawn from the posterior that the ceilings are made of, Dirichlet(n x observed + m x pooled), the
strength m being that behind `shrinkage` of `reference_scores`. Without that table the segments share the pooled distribution as their truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.boards.cells import BoardOptions, has_table
from dtef_pipeline.errors import DtefError
from dtef_pipeline.survey.boards.redrawn import effective_sql
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring import metrics
from dtef_pipeline.survey.scoring.matrices import matrix, sample_sizes, scale_ranks
from dtef_pipeline.survey.scoring.metrics import Floats
from dtef_pipeline.survey.tables import DISTANCES

NULL_DRAWS = 30
"""Samples per cell. The mean of a cell's null scores is off by 1/sqrt(30) of their spread, which makes an expected gap 1.7 % too large."""
_SAMPLES_AT_ONCE = 20_000
_SURE = 1 - 1e-9
"""Largest weight of the pooled distribution: a prior of a billion respondents is as good as no difference at all."""
_COMPARED_ON = [*KEYS.shared_item, "attribute"]
"""What the segments of an attribute are compared on."""
Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
"""(cells, NULL_DRAWS): half the memory of a float64, and no draw needs more digits."""


def null_scores(connection: duckdb.DuckDBPyConnection, cells: pd.DataFrame, options: BoardOptions) -> Scores:
    """Scores (cells, NULL_DRAWS) under the null hypothesis of this module, under the policy and metric of the board.

    NaN where the n of a segment of the question and attribute is unknown: what equal groups of its size would show cannot be said.

    `cells`: rows of `load_cells` that have a score, with an index from 0; `connection` has `scores`, `survey_responses` and, or not,
    `reference_scores`. Responses that were not parsed keep their constant score: they are no sampling noise. Raises DtefError when a cell
    has no row in `survey_responses` or another number of options there.
    """
    pairs = _Pairs.of(connection, cells)
    answers = _predictions(connection, cells)
    asked = numbered(cells, KEYS.series)
    at = np.full((asked.max(initial=-1) + 1, len(pairs.n)), -1, dtype=np.int64)
    at[asked, pairs.of_cell] = np.arange(len(cells))
    # One row more, for predictions that some segment without a cell of this model would be given: index -1.
    total = np.zeros((len(cells) + 1, NULL_DRAWS), dtype=np.float32)
    count = np.zeros((len(cells) + 1, NULL_DRAWS), dtype=np.int16)
    rng = np.random.default_rng(options.seed)
    for kind in pairs.kinds(options.metric):
        samples = _Samples.of(pairs, kind, rng)
        for rows in _prediction_blocks(answers, pairs, kind, asked, at):
            values = samples.scores(rows, options.metric)
            where = at[rows.asked[:, None], pairs.target[rows.pair]]
            known = np.isfinite(values)
            total[where, np.arange(NULL_DRAWS)] += np.where(known, values, 0)
            count[where, np.arange(NULL_DRAWS)] += known
    scores = _with_policy(_means(total[:-1], count[:-1]), cells)
    scores[pairs.is_unknown[pairs.of_cell]] = np.nan
    return scores


def numbered(frame: pd.DataFrame, by: Sequence[str]) -> Ints:
    """Number (rows,) of each row's group, from 0 in the order in which the groups come."""
    return np.asarray(frame.groupby(list(by), observed=True, sort=False).ngroup(), dtype=np.int64)


def _means(total: Scores, count: npt.NDArray[np.int16]) -> Scores:
    """Mean over the predictions given to each cell in each draw; over all draws where a sample had no value under the metric."""
    some, known = total.sum(axis=1), count.sum(axis=1)
    over_all = np.divide(some, known, out=np.zeros_like(some), where=known > 0)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), over_all[:, None]), dtype=np.float32)


def _with_policy(parsed: Scores, cells: pd.DataFrame) -> Scores:
    """Mean of the parsed draws' null scores and the constant scores of the others, as `score` is of what happened."""
    has = cells["parsed_score"].notna().to_numpy()
    share = np.where(has, cells["n_ok"] / cells["n_answered"].where(cells["n_answered"] > 0, 1), 0.0)
    constant = cells["score"].to_numpy() - share * cells["parsed_score"].fillna(0).to_numpy()
    parsed *= share.astype(np.float32)[:, None]
    parsed += constant.astype(np.float32)[:, None]
    return parsed


@dataclass(frozen=True, slots=True)
class _Kind:
    """Pairs that are measured alike: one number of options, and one order of the options on the scale where the metric minds."""

    k: int
    ranks: Ints | None
    rows: Ints


@dataclass(frozen=True, slots=True)
class _Pairs:
    """(round, segment, question) of all cells, the segments of a question and attribute side by side."""

    of_cell: Ints  # (cells,): the pair of each
    question: Ints  # (pairs,): number of the question and attribute
    target: Ints  # (pairs, NULL_DRAWS): the pair that is given this one's truth and predictions, in each draw
    n: Ints  # respondents that the answers count for
    is_unknown: npt.NDArray[np.bool_]  # (pairs,): a segment of the question and attribute has no n
    shrinkage: Floats  # weight of the pooled distribution in the truth, 0-1
    observed: pa.Array
    dont_know: pa.Array
    positions: pa.Array

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection, cells: pd.DataFrame) -> _Pairs:
        number = numbered(cells, KEYS.pair)
        _, first = np.unique(number, return_index=True)
        wanted = cells.loc[first, [*_COMPARED_ON, "segment"]].astype("str").reset_index(drop=True)
        wanted = wanted.sort_values([*_COMPARED_ON, "segment"])
        place = np.empty(len(wanted), dtype=np.int64)
        place[wanted.index] = np.arange(len(wanted))
        survey = _survey(connection, wanted[list(KEYS.pair)].reset_index(drop=True))
        question = numbered(wanted, _COMPARED_ON)
        size = sample_sizes(survey)
        unknown = np.isin(question, question[~(size > 0)])
        return cls(
            place[number],
            question,
            _targets(question),
            np.maximum(np.rint(np.where(size > 0, size, 1)), 1).astype(np.int64),
            unknown,
            survey["shrinkage"].to_numpy(),
            survey["observed"].combine_chunks(),
            survey["dont_know"].combine_chunks(),
            survey["positions"].combine_chunks(),
        )

    def kinds(self, metric: str) -> Iterator[_Kind]:
        sizes = pc.list_value_length(self.observed).to_numpy(zero_copy_only=False)
        for k in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == k)
            if metric != "emd_normalized":
                yield _Kind(k, None, rows)
                continue
            ranks = scale_ranks(self.dont_know, self.positions, k)[rows]
            for some in np.unique(np.hstack([ranks < 0, ranks]), axis=0)[:, k:]:
                yield _Kind(k, some, rows[(ranks == some).all(axis=1)])


def _targets(question: Ints) -> Ints:
    """Each pair goes to its own segment in the first draw, to the next segment of the question in the second, and so on around."""
    _, start, size = np.unique(question, return_index=True, return_counts=True)
    first, count = start[question], size[question]
    place = np.arange(len(question)) - first
    return np.asarray(first[:, None] + (place[:, None] + np.arange(NULL_DRAWS)) % count[:, None])


def _survey(connection: duckdb.DuckDBPyConnection, wanted: pd.DataFrame) -> pa.Table:
    """The answers of the segments, one row for each row of `wanted`, in its order."""
    known = has_table(connection, "reference_scores")
    reference = (
        "reference_scores"
        if known
        else f"(SELECT {', '.join(KEYS.pair)}, 1::DOUBLE AS shrinkage FROM survey_responses WHERE false)"
    )
    connection.register("wanted_pairs", wanted.assign(place=np.arange(len(wanted))))
    survey = connection.sql(
        f"""
        SELECT place, s.n, {effective_sql(connection)}, s.observed, s.dont_know, s.positions, coalesce(r.shrinkage, 1)::DOUBLE AS shrinkage
        FROM wanted_pairs JOIN survey_responses s USING ({", ".join(KEYS.pair)}) LEFT JOIN {reference} r USING ({", ".join(KEYS.pair)})
        ORDER BY place
        """
    ).to_arrow_table()
    connection.unregister("wanted_pairs")
    if len(survey) != len(wanted):
        missing = wanted.drop(index=survey["place"].to_numpy()).head(3).to_numpy().tolist()
        raise DtefError(
            f"scores of pairs that survey_responses does not have once: {missing}; ingest and score the round again"
        )
    return survey


@dataclass(frozen=True, slots=True)
class _Predictions:
    """Parsed predictions: `cell` (rows,), `draw` (rows,), `values` lists."""

    cell: Ints
    draw: Ints
    values: pa.Array


def _predictions(connection: duckdb.DuckDBPyConnection, cells: pd.DataFrame) -> _Predictions:
    """Of every cell the draws that count for it, in the order of draws and cells."""
    connection.register("wanted_cells", cells[list(KEYS.row)].assign(cell=np.arange(len(cells))))
    found = connection.sql(
        f"""
        SELECT cell, draw::BIGINT AS draw, predicted FROM scores JOIN wanted_cells USING ({", ".join(KEYS.row)})
        WHERE status = 'ok' ORDER BY draw, cell
        """
    ).to_arrow_table()
    connection.unregister("wanted_cells")
    return _Predictions(found["cell"].to_numpy(), found["draw"].to_numpy(), found["predicted"].combine_chunks())


@dataclass(frozen=True, slots=True)
class _Block:
    """Predictions to be scored: none twice for one (asked, pair)."""

    asked: Ints
    pair: Ints
    predicted: Floats  # (rows, k)


def _prediction_blocks(answers: _Predictions, pairs: _Pairs, kind: _Kind, asked: Ints, at: Ints) -> Iterator[_Block]:
    """The predictions of a kind, one draw at a time, and what stands in for segments that the model has no prediction for."""
    mine = np.flatnonzero(np.isin(pairs.of_cell[answers.cell], kind.rows))
    if not len(mine):
        return
    lengths = pc.list_value_length(answers.values).to_numpy(zero_copy_only=False)[mine]
    if (lengths != kind.k).any():
        raise DtefError(f"predictions of {np.unique(lengths).tolist()} options for {kind.k} asked; score the round again")
    whole = _Block(asked[answers.cell[mine]], pairs.of_cell[answers.cell[mine]], matrix(answers.values, kind.k, mine))
    draws = answers.draw[mine]
    yield from _cut(_stand_ins(whole, pairs, kind, at))
    for draw in np.unique(draws).tolist():
        here = draws == draw
        yield from _cut(_Block(whole.asked[here], whole.pair[here], whole.predicted[here]))


def _stand_ins(of_model: _Block, pairs: _Pairs, kind: _Kind, at: Ints) -> _Block:
    """For every segment of a question without a parsed prediction, the model's mean prediction over the segments that have one."""
    groups = pairs.question.max(initial=0) + 1
    key, group = np.unique(of_model.asked * groups + pairs.question[of_model.pair], return_inverse=True)
    sums = np.stack([np.bincount(group, of_model.predicted[:, option]) for option in range(kind.k)], axis=1)
    mean = sums / np.bincount(group)[:, None]
    has = np.zeros(at.shape, dtype=bool)
    has[of_model.asked, of_model.pair] = True
    open_ = np.zeros((len(at), groups), dtype=np.int64)
    open_.flat[key] = np.arange(1, len(key) + 1)
    which = open_[:, pairs.question[kind.rows]]
    asked, place = np.nonzero((which > 0) & ~has[:, kind.rows])
    return _Block(asked, kind.rows[place], mean[which[asked, place] - 1])


def _cut(block: _Block) -> Iterator[_Block]:
    """Blocks that fit the processor's cache once every prediction meets its NULL_DRAWS samples."""
    step = max(_SAMPLES_AT_ONCE // NULL_DRAWS, 1)
    for start in range(0, len(block.pair), step):
        rows = slice(start, start + step)
        yield _Block(block.asked[rows], block.pair[rows], block.predicted[rows])


@dataclass(frozen=True, slots=True)
class _Samples:
    """What segments of the targets' sizes would have answered, had they the truth of the pair."""

    kind: _Kind
    place: Ints  # (pairs,): of those of the kind
    values: Floats  # (options, pairs of the kind, NULL_DRAWS): fractions

    @classmethod
    def of(cls, pairs: _Pairs, kind: _Kind, rng: np.random.Generator) -> _Samples:
        observed, n = matrix(pairs.observed, kind.k, kind.rows), pairs.n[kind.rows]
        weight = np.minimum(pairs.shrinkage[kind.rows], _SURE)
        strength = (n * weight / (1 - weight))[:, None] * _pooled(observed, n, pairs.question[kind.rows])
        drawn = rng.standard_gamma(np.broadcast_to((n[:, None] * observed + strength)[:, None], (len(n), NULL_DRAWS, kind.k)))
        truth = drawn / drawn.sum(axis=-1, keepdims=True)
        size = pairs.n[pairs.target[kind.rows]]
        counts = rng.multinomial(size, truth)
        place = np.full(len(pairs.n), -1, dtype=np.int64)
        place[kind.rows] = np.arange(len(kind.rows))
        return cls(kind, place, np.ascontiguousarray(np.moveaxis(counts / size[..., None], -1, 0)))

    def scores(self, block: _Block, metric: str) -> Floats:
        """Similarity (rows, NULL_DRAWS) of each prediction to the samples of its pair; NaN where the metric has no value."""
        k = self.kind.k
        samples = self.values[:, self.place[block.pair]].reshape(k, -1).T
        predicted = np.repeat(block.predicted.T, NULL_DRAWS, axis=1).T
        if self.kind.ranks is not None:
            values = metrics.emd_normalized_on_scale(predicted, samples, self.kind.ranks)
        else:
            values = getattr(metrics, metric)(predicted, samples)
        return np.asarray(1 - values if metric in DISTANCES else values).reshape(-1, NULL_DRAWS)


def _pooled(observed: Floats, n: Ints, question: Ints) -> Floats:
    """The distribution of all respondents of the attribute's segments together, at each of them."""
    _, group = np.unique(question, return_inverse=True)
    counts = np.stack([np.bincount(group, n * observed[:, option]) for option in range(observed.shape[1])], axis=1)
    return np.asarray((counts / np.bincount(group, n)[:, None])[group])

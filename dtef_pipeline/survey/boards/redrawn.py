"""The answers to every question drawn anew, and what is made of the same answers: leave-one-out means and the population marginal.

An observed distribution is a sample of n people, of weighted answers of n_effective. Samples of the same size are drawn from it (parametric
bootstrap: Efron & Tibshirani 1993, ch. 6.5), one set per pair (round, segment, question) for all models, contexts and conditions. The people
of a country are those of the ages and genders too: what a sample of one attribute has in excess of an answer, the samples of the others have
as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring import metrics
from dtef_pipeline.survey.scoring.matrices import EFFECTIVE, Places, matrix, sample_sizes, scale_ranks
from dtef_pipeline.survey.scoring.metrics import Floats

REPLICATES = 20
"""Samples per pair. Their deviations are pooled over pairs, so that 20 are enough for hundreds of pairs."""
DRAWN_FROM = (*KEYS.pair, "attribute", "scale", "dont_know", "positions", "observed", "others", "n", EFFECTIVE)
"""Columns of `survey_responses` that are needed."""


@dataclass(frozen=True, slots=True)
class Redrawn:
    """The pairs of k options: samples of their answers."""

    k: int
    pairs: Places  # (pairs,) rows of the survey
    place: Places  # row of the survey -> place among `pairs`, -1: another number of options
    n: Floats  # (pairs,) respondents, by whom means are weighted
    sampled: Floats  # (pairs,) respondents that the answers count for, as of `sample_sizes`
    observed: Floats  # (pairs, k)
    answers: Floats  # (pairs, replicates, k) fractions
    ordinal: npt.NDArray[np.bool_]
    ranks: Places  # (pairs, k) on the scale, -1 off it
    groups: _Groups

    def rows(self, places: Places) -> Floats:
        """The samples of some pairs as rows, (pairs x replicates, k)."""
        return self.answers[places].reshape(-1, self.k)

    def others(self, places: Places) -> Floats:
        """(places, replicates, k): how far the mean answer of the attribute's other segments moves; 0 where there is none."""
        group, n = self.groups.of[places], self.n[places]
        rest = self.groups.size[group] - n
        own = n[:, None, None] * (self.answers[places] - self.observed[places, None])
        moved = (self.groups.moved[group] - own) / np.maximum(rest, 1)[:, None, None]
        return np.where(rest[:, None, None] > 0, moved, 0)

    def population(self, places: Places) -> Floats:
        """(places, replicates, k): how far the mean answer of all people moves, as the attribute with most of them says."""
        main = self.groups.main[self.groups.of[places]]
        return np.asarray(self.groups.moved[main] / self.groups.size[main, None, None])


@dataclass(frozen=True, slots=True)
class _Groups:
    """The segments of one attribute that answered one question."""

    of: Places  # (pairs,)
    main: Places  # (groups,) the group of the same question with most respondents
    size: Floats  # (groups,) respondents
    moved: Floats  # (groups, replicates, k) sums over the respondents of how far their answers moved


def effective_sql(connection: duckdb.DuckDBPyConnection) -> str:
    """SQL: the effective n of `survey_responses`, null in tables of earlier versions."""
    return EFFECTIVE if EFFECTIVE in connection.table("survey_responses").columns else f"NULL::DOUBLE AS {EFFECTIVE}"


def with_size(survey: pa.Table) -> pa.Table:
    """The rows whose answers are a sample of known size."""
    return survey.filter(pa.array(sample_sizes(survey) > 0))


def redrawn(survey: pa.Table, asked: Places, rng: np.random.Generator) -> Iterator[Redrawn]:
    """Samples by number of options. `survey`: DRAWN_FROM, as of `with_size`; `asked`: rows whose questions are drawn, in every segment."""
    lists = {name: survey[name].combine_chunks() for name in ("observed", "dont_know", "positions")}
    sizes = np.diff(lists["observed"].offsets.to_numpy())
    sampled = np.maximum(np.rint(sample_sizes(survey)), 1).astype(np.int64)
    n = pc.coalesce(survey["n"].cast(pa.float64()), pa.array(sampled.astype(np.float64))).to_numpy()
    question, group = (_codes(survey, names) for names in (KEYS.shared_item, (*KEYS.shared_item, "attribute")))
    chosen = np.flatnonzero(np.isin(question, question[asked]))
    for k in np.unique(sizes[chosen]).tolist():
        pairs = chosen[sizes[chosen] == k]
        place = np.full(len(survey), -1)
        place[pairs] = np.arange(len(pairs))
        observed = metrics.distributions(matrix(lists["observed"], k, pairs))
        counts = rng.multinomial(np.broadcast_to(sampled[pairs], (REPLICATES, len(pairs))), observed)
        answers = np.ascontiguousarray((counts / sampled[pairs][:, None]).transpose(1, 0, 2))
        off, positions = (lists[name].take(pa.array(pairs)) for name in ("dont_know", "positions"))
        ranks = scale_ranks(off, positions, k)
        ordinal = np.asarray(pc.equal(survey["scale"], "ordinal").take(pa.array(pairs)))
        size = n[pairs]
        groups = _groups(group[pairs], question[pairs], size, answers - observed[:, None])
        answers = _of_same_people(answers, groups)
        groups = _groups(group[pairs], question[pairs], size, answers - observed[:, None])
        yield Redrawn(k, pairs, place, size, sampled[pairs].astype(np.float64), observed, answers, ordinal, ranks, groups)


def _codes(survey: pa.Table, names: tuple[str, ...]) -> Places:
    """Which of the distinct combinations each row has, in order. (Not by pandas: it takes longer over a segment than the samples do.)"""
    code = np.zeros(len(survey), dtype=np.int64)
    for name in names:
        encoded = survey[name].combine_chunks().dictionary_encode()
        place = np.argsort(np.argsort(encoded.dictionary.to_numpy(zero_copy_only=False)))
        code = code * len(place) + place[encoded.indices.to_numpy()]
    return np.unique(code, return_inverse=True)[1].astype(np.int64)


def _groups(group: Places, question: Places, n: Floats, moved: Floats) -> _Groups:
    _, first, of = np.unique(group, return_index=True, return_inverse=True)
    order = np.argsort(of, kind="stable")
    starts = np.searchsorted(of[order], np.arange(len(first)))
    size = np.add.reduceat(n[order], starts)
    sums = np.add.reduceat((n[:, None, None] * moved)[order], starts, axis=0)
    return _Groups(of, _largest(question[first], size), size, sums)


def _largest(question: Places, size: Floats) -> Places:
    """Of each group, the group of the same question that is largest; the first of several."""
    order = np.lexsort((-size, question))
    _, first, of = np.unique(question[order], return_index=True, return_inverse=True)
    largest = np.empty(len(order), dtype=np.int64)
    largest[order] = order[first][of]
    return largest


def _of_same_people(answers: Floats, groups: _Groups) -> Floats:
    """The samples of each attribute moved so that all of its people together answer as those of the question's largest attribute do.

    With A and B the mean moves of two attributes of N and M <= N of the same people, B is replaced by A + sqrt(1 - M / N) B: its variance stays
    what it was, and its covariance with A is that of M of the N people. Whoever is of both segments is so counted as often as if attributes
    were independent of each other.
    """
    mean = groups.moved / groups.size[:, None, None]
    own = np.sqrt(1 - groups.size / groups.size[groups.main])[:, None, None]
    is_main = groups.main == np.arange(len(groups.main))
    shift = np.where(is_main[:, None, None], 0, mean[groups.main] - (1 - own) * mean)
    together = np.maximum(answers + shift[groups.of], 0)
    return np.asarray(together / together.sum(axis=2, keepdims=True))

"""Baseline predictors: models computed from the survey. They respond in the form of a language model and are scored by the same code.

Two of them predict from the segments whose answers to the context questions of a prompt are most similar. They use only segments of the
same attribute. Nobody is in two of these, so a prediction contains no respondent of the target segment. Segments of other attributes
contain some of its respondents (the women of Kenya are in both `country:kenya` and `gender:female`) and would reveal its answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.identity import digest
from dtef_pipeline.survey.baselines.names import (
    BASELINES,
    DEFAULT_SEED,
    DIRICHLET,
    EMPIRICAL_BAYES,
    LEAVE_ONE_OUT,
    NEAREST_SEGMENTS,
    POPULATION_MARGINAL,
    PREVIOUS_ROUND,
    SHUFFLED_SEGMENT,
    UNIFORM,
)
from dtef_pipeline.survey.identity import make_question_key, make_round_order
from dtef_pipeline.survey.scoring.metrics import js

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Prompt = tuple[str, tuple[str, ...]]
"""The target question and the context questions, by id."""
Prediction = Sequence[float] | None

COLUMNS = ("segment", "attribute", "question_id", "observed", "n")
"""What of `survey_responses` is read of the other segments."""

NEAREST = 3
"""So many segments answer together: the mean of three is less noisy than one small segment, and an attribute of few segments still has them."""

NO_CONTEXT = "the prompt has no context questions, which are needed to find segments that answer alike"
NO_NEIGHBOUR = "no other segment of this attribute answered both the question and a context question of the prompt"

_DECIMALS = 12
"""Similarities that are equal but for rounding are a tie, which the order of the segments decides."""


@dataclass(frozen=True)
class RoundAnswers:
    """The answers of the segments of a round, as arrays.

    `shares` (segments, questions, options) are fractions, 0 beyond a question's number of options. `n` (segments, questions) are
    respondents, 0 without an answer; 1 in all segments of an attribute if n of one of them is unknown.
    """

    segments: npt.NDArray[np.object_]
    attributes: npt.NDArray[np.object_]
    questions: Mapping[str, int]
    shares: Floats
    n: Ints

    @classmethod
    def build_arrays(cls, survey: pa.Table) -> RoundAnswers:
        """Build the arrays from the COLUMNS of `survey_responses` rows of one round, of any segments."""
        columns = {name: survey[name].to_pylist() for name in ("segment", "attribute", "question_id")}
        attribute = dict(zip(columns["segment"], columns["attribute"], strict=True))
        segments = {segment: place for place, segment in enumerate(sorted(attribute))}
        questions = {question: place for place, question in enumerate(sorted(set(columns["question_id"])))}
        rows = np.array([segments[name] for name in columns["segment"]], dtype=np.int64)
        places = np.array([questions[name] for name in columns["question_id"]], dtype=np.int64)
        observed = _pad_distributions(survey["observed"])
        shares = np.zeros((len(segments), len(questions), observed.shape[1]))
        shares[rows, places] = observed
        n = np.zeros((len(segments), len(questions)), dtype=np.int64)
        attributes = np.array([attribute[name] for name in segments], dtype=object)
        size = survey["n"].cast(pa.float64()).to_numpy()
        group = np.unique(attributes, return_inverse=True)[1][rows] * len(questions) + places
        n[rows, places] = np.where(np.isin(group, group[np.isnan(size)]), 1, np.nan_to_num(size))
        return cls(np.array(list(segments), dtype=object), attributes, questions, shares, n)

    def select_neighbours(self, survey: pa.Table) -> Neighbours:
        """Return the other segments of the attribute. `survey` has the segment's `survey_responses`."""
        segment, attribute = survey["segment"][0].as_py(), survey["attribute"][0].as_py()
        neighbours = np.flatnonzero((self.attributes == attribute) & (self.segments != segment))
        question_ids = survey["question_id"].to_pylist()
        places = np.array([self.questions.get(question, -1) for question in question_ids], dtype=np.int64)
        observed, left_out = _pad_distributions(survey["observed"]), _pad_distributions(survey["leave_one_out_marginal"])
        width = max(observed.shape[1], self.shares.shape[2])
        return Neighbours(
            questions={question: place for place, question in enumerate(question_ids)},
            sizes=np.diff(survey["observed"].combine_chunks().offsets.to_numpy()),
            observed=_pad_options(observed, width),
            others=_pad_options(left_out, width),
            shares=_pad_options(self.shares[np.ix_(neighbours, places)], width),
            n=np.where(places >= 0, self.n[np.ix_(neighbours, places)], 0),
        )


def _pad_distributions(column: pa.ChunkedArray) -> Floats:
    """Return distributions as one array, 0 beyond their lengths; all 0 for null."""
    lists = column.combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    option = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    matrix = np.zeros((len(lists), int(lengths.max(initial=0))))
    matrix[np.repeat(np.arange(len(lists)), lengths), option] = lists.flatten().to_numpy()
    return matrix


def _pad_options(shares: Floats, options: int) -> Floats:
    return np.pad(shares, [(0, 0)] * (shares.ndim - 1) + [(0, options - shares.shape[-1])])


@dataclass(frozen=True)
class Neighbours:
    """A segment and the other segments of its attribute, on the questions that the segment answered.

    `observed` and `others` (questions, options) are its answers and the leave-one-out marginal of the attribute, 0 if there is none.
    `shares` (neighbours, questions, options) and `n` (neighbours, questions) are as in RoundAnswers. `questions` are their indices, `sizes`
    their numbers of options.
    """

    questions: Mapping[str, int]
    sizes: Ints
    observed: Floats
    others: Floats
    shares: Floats
    n: Ints

    def nearest(self, prompts: Sequence[Prompt]) -> list[Prediction]:
        """Return for each prompt the answer of the NEAREST segments that answered its target, or None if there are none.

        Nearness is the mean `js` similarity over the context questions that both answered. Answers are weighted by their respondents. The
        segment's answer to the target is not used.
        """
        context = _Context.build_arrays(prompts, self.questions)
        return self._split_shares(context.targets, self._average_answers(context.targets, *self._sum_similarities(context)))

    def predict_shrunken(self, prompts: Sequence[Prompt]) -> list[Prediction]:
        """Return for each prompt `others + w (nearest - others)`, or None without `others`, the leave-one-out marginal of the attribute.

        w, in 0..1, is the best weight on the context questions of the prompt: the least-squares slope of the segment's answers minus
        `others` on `nearest` minus `others`, over all of their options. For a context question, `nearest` is found from the other context
        questions only. w is 0 with fewer than two context questions.
        """
        context = _Context.build_arrays(prompts, self.questions)
        base = self.others[context.targets]
        nearest = self._average_answers(context.targets, *self._sum_similarities(context))
        weight = np.where(np.isnan(nearest[:, 0]), 0, self._compute_weights(context))[:, None]
        blend = base + weight * (np.nan_to_num(nearest) - base)
        return self._split_shares(context.targets, np.where(_is_there(base)[:, None], blend, np.nan))

    @cached_property
    def _has_both_answers(self) -> npt.NDArray[np.bool_]:
        """(questions, neighbours): whether the neighbour answered too."""
        return self.n.T > 0

    @cached_property
    def _similarity(self) -> Floats:
        """(questions, neighbours): `js` of the segment's and the neighbour's answers, 0 if the neighbour has none."""
        question, neighbour = np.nonzero(self._has_both_answers)
        similarity = np.zeros(self._has_both_answers.shape)
        if len(question):
            similarity[question, neighbour] = js(self.shares[neighbour, question], self.observed[question])
        return similarity

    def _sum_similarities(self, context: _Context) -> tuple[Floats, Ints]:
        """Return (prompts, neighbours): the sum of similarities over the context questions that both answered, and their number."""
        shape = (len(context.targets), len(self.n))
        sums, counts = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        np.add.at(sums, context.prompt, self._similarity[context.question])
        np.add.at(counts, context.prompt, self._has_both_answers[context.question])
        return sums, counts

    def _average_answers(self, questions: Ints, sums: Floats, counts: Ints) -> Floats:
        """Return (rows, options): the mean answer to `questions` of the nearest segments that answered, weighted by n; NaN if none did.

        `sums` and `counts` (rows, neighbours) are the sum of similarities over, and the number of, the questions that determine nearness.
        """
        usable = (counts > 0) & self._has_both_answers[questions]
        mean = np.divide(sums, counts, out=np.full(sums.shape, -1.0), where=usable)
        order = np.argsort(-np.round(mean, _DECIMALS), axis=1, kind="stable")[:, :NEAREST]
        weight = np.take_along_axis(np.where(usable, self.n.T[questions], 0), order, axis=1).astype(np.float64)
        total = (weight[:, :, None] * self.shares[order, questions[:, None]]).sum(axis=1)
        respondents = weight.sum(axis=1)[:, None]
        return np.asarray(np.divide(total, respondents, out=np.full(total.shape, np.nan), where=respondents > 0))

    def _compute_weights(self, context: _Context) -> Floats:
        """Return (prompts,): w of each prompt, 0..1, from its context questions."""
        sums, counts = self._sum_similarities(context)
        remainders = sums[context.prompt] - self._similarity[context.question]
        nearest = self._average_answers(
            context.question, remainders, counts[context.prompt] - self._has_both_answers[context.question]
        )
        base = self.others[context.question]
        usable = (~np.isnan(nearest[:, 0]) & _is_there(base))[:, None]
        distance, residual = np.where(usable, nearest - base, 0), np.where(usable, self.observed[context.question] - base, 0)
        prompts = len(context.targets)
        product = np.bincount(context.prompt, (distance * residual).sum(axis=1), prompts)
        square = np.bincount(context.prompt, (distance**2).sum(axis=1), prompts)
        return np.asarray(np.clip(np.divide(product, square, out=np.zeros(prompts), where=square > 0), 0, 1))

    def _split_shares(self, questions: Ints, shares: Floats) -> list[Prediction]:
        """Return the shares of each question's options, or None without an answer."""
        rows = zip(shares.tolist(), self.sizes[questions].tolist(), np.isnan(shares[:, 0]).tolist(), strict=True)
        return [None if absent else row[:size] for row, size, absent in rows]


def _is_there(distributions: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray(distributions.sum(axis=1) > 0)


@dataclass(frozen=True)
class _Context:
    """The context questions of prompts, as pairs of the indices `prompt` and `question`."""

    targets: Ints
    prompt: Ints
    question: Ints

    @classmethod
    def build_arrays(cls, prompts: Sequence[Prompt], questions: Mapping[str, int]) -> _Context:
        context_pairs = [(place, questions[name]) for place, (_, context) in enumerate(prompts) for name in context]
        pairs = np.array(context_pairs, dtype=np.int64).reshape(-1, 2)
        return cls(np.array([questions[target] for target, _ in prompts], dtype=np.int64), pairs[:, 0], pairs[:, 1])


Row = Mapping[str, Any]
Previous = Mapping[tuple[str, ...], Sequence[float]]
NEIGHBOUR_BASELINES = (NEAREST_SEGMENTS, EMPIRICAL_BAYES)
"""Baselines that read the other segments of the round and the context questions of the prompt."""
_PROMPTS_AT_A_TIME = 500
"""Prompts answered at a time: bounds the memory of many context questions and many segments."""


PREVIOUS_COLUMNS = ("round", "question_order", "question_text", "options", "observed")
"""Columns of `survey_responses` that `load_previous_answers` needs."""


def load_previous_answers(earlier: pa.Table, round_id: str) -> dict[tuple[str, ...], list[float]]:
    """Return each question's answer in the latest earlier round of the series, by `make_question_key`.

    `earlier` has `survey_responses` rows of the same segment in any rounds. The first of duplicates within a round counts.
    """
    series = make_round_order(round_id)[0]
    rows = [
        row
        for row in earlier.select(list(PREVIOUS_COLUMNS)).to_pylist()
        if make_round_order(row["round"])[0] == series and make_round_order(row["round"]) < make_round_order(round_id)
    ]
    rows.sort(key=lambda row: (*make_round_order(row["round"])[1:], -row["question_order"]))
    return {make_question_key(row["question_text"], row["options"]): row["observed"] for row in rows}


def predict_distribution(model: ModelSpec, row: Row, draw: int, previous: Previous) -> Sequence[float] | None:
    """Return the baseline's prediction for a `survey_responses` row, as fractions, or None if it has no prediction.

    None leads to the status `missing`, never to a score of 0. NEIGHBOUR_BASELINES predict prompts, not rows; see `predict_from_neighbours`.
    Raises ConfigError for an unknown baseline.
    """
    if model.model in _COLUMNS:
        distribution: Sequence[float] | None = row[_COLUMNS[model.model]]
        return distribution
    if model.model == UNIFORM:
        return [1 / len(row["options"])] * len(row["options"])
    if model.model == PREVIOUS_ROUND:
        return previous.get(make_question_key(row["question_text"], row["options"]))
    if model.model == DIRICHLET:
        return _draw_dirichlet(model, row, draw)
    raise ConfigError(f"unknown baseline {model.model!r}; known: {', '.join(BASELINES)}")


def format_as_response(distribution: Sequence[float]) -> str:
    """Return the distribution in the form required by prompts, at full precision."""
    total = sum(distribution)
    if not total > 0:
        raise DtefError(f"a baseline produced {list(distribution)}, which is not a distribution")
    return json.dumps([100 * share for share in distribution])


def predict_from_neighbours(
    model: ModelSpec, prompts: Sequence[Prompt], survey: pa.Table, answers: RoundAnswers
) -> list[Prediction]:
    """Return the predictions of one of the NEIGHBOUR_BASELINES for each prompt, as fractions, or None without a prediction.

    `survey` has the segment's `survey_responses`, `answers` those of the round's segments. Equal prompts are computed once.
    """
    neighbours = answers.select_neighbours(survey)
    predict = neighbours.nearest if model.model == NEAREST_SEGMENTS else neighbours.predict_shrunken
    distinct = list(dict.fromkeys(prompts))
    predicted: dict[Prompt, Prediction] = {}
    for start in range(0, len(distinct), _PROMPTS_AT_A_TIME):
        block = distinct[start : start + _PROMPTS_AT_A_TIME]
        predicted.update(zip(block, predict(block), strict=True))
    return [predicted[prompt] for prompt in prompts]


def explain_missing_prediction(model: ModelSpec, *, context: bool = True) -> str:
    """Return why a baseline has no prediction. `context`: whether the prompt shows context questions."""
    if model.model == NEAREST_SEGMENTS and not context:
        return NO_CONTEXT
    return _WHY_MISSING.get(model.model, "this baseline needs nothing and never misses")


def _draw_dirichlet(model: ModelSpec, row: Row, draw: int) -> Sequence[float]:
    seed = model.seed if model.seed is not None else DEFAULT_SEED
    entropy = int(digest(seed, row["round"], row["segment"], row["question_id"], draw), 16)
    return list(np.random.default_rng(entropy).dirichlet(np.ones(len(row["options"]))).tolist())


_COLUMNS = {POPULATION_MARGINAL: "population", LEAVE_ONE_OUT: "leave_one_out_marginal", SHUFFLED_SEGMENT: "shuffled"}
"""Columns of `survey_responses` that are the predictions of baselines."""
_WHY_MISSING = {
    POPULATION_MARGINAL: "no other segment of the round answered the question",
    LEAVE_ONE_OUT: "no other segment of this attribute answered the question",
    EMPIRICAL_BAYES: "no other segment of this attribute answered the question",
    NEAREST_SEGMENTS: NO_NEIGHBOUR,
    SHUFFLED_SEGMENT: "no other segment of the round answered the question",
    PREVIOUS_ROUND: "no readable earlier round of the series asked this segment the same question with the same options",
}

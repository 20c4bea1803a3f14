"""The sample of a round: `--questions N` of its questions, and each of them in `--sample-segments S` of its segments.

Questions are drawn over batteries, because intervals and tests count batteries, not questions. Few segments of every question are more
informative than all segments of a few, because the scores of one question are correlated.

The precision of a run before it starts assumes that scores of pairs are a nested random model: score = mean + battery + question within the
battery + pair within the question.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.identity import digest
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS, degrees_of_freedom
from dtef_pipeline.text.number_words import format_count

DRAW_ORDERS = ("draw_order", "segment_order")
"""Columns of `survey_responses` that define a sample: the place of the question in the draw, and that of the segment."""


def draw_order(
    round_id: str, batteries: Sequence[str], duplicate_of: Sequence[str | None], circular: Sequence[npt.NDArray[np.bool_]]
) -> list[int]:
    """Return the place of each question of a round in the draw, from 0: the first N places are in as many batteries as N questions can
    cover.

    The first question of every battery comes first, in an order of batteries by the hash of their name and the round's; then the second of
    every battery, and so on. Then come questions that no board needs: duplicates, and questions that define the attribute of all segments
    that answered; last those that no segment answered.

    Args:
        round_id: the round's name.
        batteries: the battery of each question, in questionnaire order.
        duplicate_of: for each question, the id of the question that it repeats, or None.
        circular: for each question, whether it defines the attribute of each segment that answered it.
    """
    put_off = [
        2 if not len(flags) else int(original is not None or bool(flags.all()))
        for original, flags in zip(duplicate_of, circular, strict=True)
    ]
    turn, counts = [], Counter[tuple[str, int]]()
    for kind in zip(batteries, put_off, strict=True):
        turn.append(counts[kind])
        counts[kind] += 1
    lot = {battery: digest("draw", round_id, battery) for battery in batteries}
    order = sorted(range(len(batteries)), key=lambda place: (put_off[place], turn[place], lot[batteries[place]]))
    ranks = [0] * len(order)
    for rank, place in enumerate(order):
        ranks[place] = rank
    return ranks


_QUESTION_STEP, _SEGMENT_STEP = (math.sqrt(5) - 1) / 2, math.sqrt(3) - 1
"""Steps between neighbours, as parts of the circle of segments: irrational, so that any number of them is spread evenly (Weyl 1916)."""


def draw_segment_order(round_id: str, pairs: pd.DataFrame, seed: int = 0) -> npt.NDArray[np.int32]:
    """Return (pairs,) the place of the segment in the draw of its question, from 0: `--sample-segments S` takes the first S places.

    A systematic sample (Madow & Madow 1944). The segments of a question are arranged on a circle, those of one attribute next to each
    other. The hash of the round's name and the seed gives the start of the first question; the other questions, battery by battery, and the
    segments of a question follow in steps that are spread evenly over the circle. So a sample has attributes in proportion to their numbers
    of segments, in the whole round and in each battery, and all segments of a question are equally likely. Pairs that no board needs come
    last.

    Args:
        round_id: the round's name.
        pairs: one row per pair in any order: `battery`, `question_id`, `attribute`, `segment`, `put_off` (whether it comes last).
        seed: the seed of the draw.
    """
    batteries, questions = (_draw_places(pairs[name], "draw", round_id) for name in ("battery", "question_id"))
    named = pairs[["battery", "question_id"]].drop_duplicates().itertuples(index=False, name=None)
    battery_order = sorted(named, key=lambda pair: (batteries[pair[0]], questions[pair[1]]))
    turn = {question: place for place, (_, question) in enumerate(battery_order)}
    attributes, segments = (_draw_places(pairs[name], "segments", round_id, seed) for name in ("attribute", "segment"))
    circle = np.lexsort((pairs["segment"].map(segments), pairs["attribute"].map(attributes), pairs["put_off"]))
    begin = int(digest("segments", round_id, seed), 16) / 16**32
    order = np.empty(len(pairs), dtype=np.int32)
    ordered_pairs = pairs.iloc[circle]
    for question, rows in ordered_pairs.groupby("question_id", sort=False).indices.items():
        places = circle[rows]
        n_usable = len(places) - int(pairs["put_off"].to_numpy()[places].sum())
        first = begin + turn[str(question)] * _QUESTION_STEP
        order[places] = np.arange(len(places))
        order[places[_step_around(n_usable, first % 1)]] = np.arange(n_usable)
    return order


def _draw_places(names: pd.Series[str], *keys: object) -> dict[str, int]:
    return {name: place for place, name in enumerate(sorted(names.unique(), key=lambda name: digest(*keys, name)))}


def _step_around(count: int, first: float) -> npt.NDArray[np.int64]:
    """Return (count,) places of a circle in steps that visit each of them once, starting at `first`, from 0 to 1."""
    step = min(
        (step for step in range(1, count + 1) if math.gcd(step, count) == 1),
        key=lambda step: abs(step - count * _SEGMENT_STEP),
        default=0,
    )
    return (int(first * count) + step * np.arange(count)) % max(count, 1)


class Sample(NamedTuple):
    """The sample of each round: the first `questions` of the draw, each in its first `segments`; None: all."""

    questions: int | None = None
    segments: int | None = None

    @property
    def sql(self) -> str | None:
        """The condition on rows of `survey_responses`, or None if all count."""
        limits = zip(DRAW_ORDERS, self, strict=True)
        return " AND ".join(f"{name} < {int(number)}" for name, number in limits if number is not None) or None

    @property
    def pairs_sql(self) -> str | None:
        """The same condition on rows of another table with pairs of `survey_responses`."""
        pair = "round, segment, question_id"
        return f"({pair}) IN (SELECT {pair} FROM survey_responses WHERE {self.sql})" if self.sql else None

    def select_questions(self, survey: pa.Table) -> pa.Array:
        """Return the ids of a segment's questions in the sample, given `question_id` and DRAW_ORDERS of its `survey_responses`."""
        for name, number in zip(DRAW_ORDERS, self, strict=True):
            survey = survey if number is None else survey.filter(pc.less(survey[name], number))
        ids: pa.Array = survey["question_id"].combine_chunks()
        return ids


EVERYTHING = Sample()


def describe_draw(questions: pd.DataFrame, number: int | None) -> str:
    """Return the numbers of questions and batteries in the sample, and whether they suffice for intervals and tests, else the N that does.

    Args:
        questions: one row per question of the rounds: `draw_order` (infinite: asked of no sampled segment), `is_target`, and the linked
    battery `cluster`.
        number: the number of questions of each round, or None for all.
    """
    targets, limit = questions[questions["is_target"]], number or np.inf
    places = targets.groupby("cluster")["draw_order"].min().sort_values()
    n_questions, batteries = int((questions["draw_order"] < limit).sum()), int((places < limit).sum())
    many = format_count(len(questions), "question")
    asked_text = f"{n_questions} of {many}" if n_questions < len(questions) else f"all {many}"
    battery_text = format_count(len(places), "battery")
    battery_text = f"{batteries} of {battery_text}" if batteries < len(places) else battery_text
    return f"{asked_text}, in {battery_text}: {_describe_power(batteries, places)}"


def _describe_power(batteries: int, places: pd.Series[int]) -> str:
    """Return whether the batteries suffice. `places`: the place in the draw of each battery's first question, ascending."""
    if batteries >= MIN_CLUSTERS:
        return f"enough; intervals and tests need {MIN_CLUSTERS} batteries"
    finite_places = places[np.isfinite(places)]
    if len(finite_places) >= MIN_CLUSTERS:
        advice = f"--questions {int(finite_places.iloc[MIN_CLUSTERS - 1]) + 1} or more"
    else:
        advice = "raise --sample-segments" if len(places) >= MIN_CLUSTERS else "there are fewer"
    return f"too few; intervals and tests need {MIN_CLUSTERS} batteries ({advice})"


class Components(NamedTuple):
    """Variances of the scores of pairs, 0 or more: between batteries, between questions of a battery, between pairs of a question."""

    battery: float
    question: float
    pair: float


def estimate_variance_components(scores: pd.DataFrame) -> Components:
    """Return moment estimates of the components: the analysis of variance of an unbalanced nested design (Henderson's method 1; Searle,
    Casella & McCulloch 1992, 5.3).

    Estimates below 0 are 0. Variance that a level does not show, such as pairs if each question has one, is part of the level above.

    Args:
        scores: one row per pair, no NaN: `score`, `question` and `cluster` (its battery).
    """
    score = scores["score"].to_numpy(np.float64)
    question, battery = (_factorize_column(scores, name) for name in ("question", "cluster"))
    question_batteries = np.zeros(question.max() + 1, dtype=np.int64)  # (questions,) their batteries
    question_batteries[question] = battery
    pairs, battery_sizes = np.bincount(question), np.bincount(battery)
    n, questions, batteries = len(score), len(pairs), len(battery_sizes)
    means = np.bincount(question, weights=score) / pairs
    battery_means = np.bincount(battery, weights=score) / battery_sizes
    between = float(pairs @ (means - battery_means[question_batteries]) ** 2)
    battery_sum = float(battery_sizes @ (battery_means - score.mean()) ** 2)
    within = float((pairs**2 / battery_sizes[question_batteries]).sum())
    pair = _divide_components(float(((score - means[question]) ** 2).sum()), n - questions)
    question_variance = _divide_components(between - pair * (questions - batteries), n - within)
    lower_levels = pair * (batteries - 1) + question_variance * (within - (pairs**2).sum() / n)
    return Components(_divide_components(battery_sum - lower_levels, n - (battery_sizes**2).sum() / n), question_variance, pair)


def compute_expected_error(components: Components, pairs: pd.DataFrame) -> float:
    """Return the standard error of the mean score over the pairs of a run, for other batteries of this kind; NaN for none.

    Its square is sigma_B^2 sum(w_b^2) + sigma_Q^2 sum(w_q^2) + sigma_C^2 / pairs, with the shares w of batteries and of questions among the
    pairs; with Q questions of s segments each, the last two are sigma_Q^2 / Q and sigma_C^2 / (Q s).

    Args:
        pairs: one row per pair: `question` and `cluster`.
    """
    if not len(pairs):
        return np.nan
    battery, question = (float((pairs[name].value_counts(normalize=True) ** 2).sum()) for name in ("cluster", "question"))
    variance = components.battery * battery + components.question * question + components.pair / len(pairs)
    return float(np.sqrt(variance))


def compute_expected_degrees(pairs: pd.DataFrame) -> float:
    """Return the degrees of freedom of the test of a mean over the pairs of a run, 1 or more. `pairs`: one row per pair, with its
    `cluster`.
    """
    return float(degrees_of_freedom(np.bincount(_factorize_column(pairs, "cluster"))[:, None].astype(np.float64))[0])


def compute_difference_deviations(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of several models as deviations whose variance is, averaged over models, that of the difference of two of them.

    `scores`: `score`, and `setting` and the pair's `question` and `segment`, which identify a pair. Pairs of one model are dropped.
    """
    pair_scores = scores.groupby(["setting", "question", "segment"], observed=True)["score"]
    models = pair_scores.transform("size")
    deviation = (scores["score"] - pair_scores.transform("mean")) * np.sqrt(2 * models / (models - 1).clip(lower=1))
    return scores.assign(score=deviation)[models > 1]


def _factorize_column(frame: pd.DataFrame, name: str) -> npt.NDArray[np.int64]:
    return np.asarray(pd.factorize(frame[name])[0], dtype=np.int64)


def _divide_components(above: float, below: float) -> float:
    return max(above / below, 0.0) if below > 1e-9 else 0.0

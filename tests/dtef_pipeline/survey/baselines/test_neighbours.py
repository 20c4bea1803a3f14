"""Baselines that look at other segments: against a definition in plain loops, and that they see nothing they must not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.survey.baselines.baselines import NEAREST, RoundAnswers, predict_from_neighbours
from dtef_pipeline.survey.baselines.names import EMPIRICAL_BAYES, NEAREST_SEGMENTS
from dtef_pipeline.survey.scoring.metrics import js
from tests.made.scores import survey_rows

Answers = Mapping[str, Mapping[str, tuple[int, Sequence[float]]]]
"""Of each segment and question, n and the observed distribution."""

NEAR, SHRUNKEN = (ModelSpec(name=name, model=name) for name in (NEAREST_SEGMENTS, EMPIRICAL_BAYES))
KENYA = "country:kenya"


def row(segment: str, question: str, n: int, observed: Sequence[float], others: Sequence[float] | None) -> dict[str, Any]:
    attribute, _, value = segment.partition(":")
    k = len(observed)
    of = {"segment": segment, "attribute": attribute, "value": value.title(), "n": n, "observed": list(observed)}
    asked = {"question_id": question, "options": [f"o{place}" for place in range(k)], "dont_know": [False] * k}
    marginals = {"population": None, "leave_one_out_marginal": others if others is None else list(others), "shuffled": None}
    return {**of, **asked, **marginals}


def left_out(answers: Answers, segment: str, question: str) -> list[float] | None:
    """The leave-one-out marginal: the other segments of the attribute, weighted by n."""
    attribute = segment.partition(":")[0] + ":"
    found = [of[question] for name, of in answers.items() if name.startswith(attribute) and name != segment and question in of]
    if not found:
        return None
    total = sum(n for n, _ in found)
    return [sum(n * shares[place] for n, shares in found) / total for place in range(len(found[0][1]))]


def survey(answers: Answers, *segments: str) -> pa.Table:
    names = segments or tuple(answers)
    return survey_rows(*(row(s, q, n, p, left_out(answers, s, q)) for s in names for q, (n, p) in answers[s].items()))


def predicted(model: ModelSpec, answers: Answers, *prompts: tuple[str, tuple[str, ...]], segment: str = KENYA) -> list[Any]:
    return predict_from_neighbours(model, prompts, survey(answers, segment), RoundAnswers.build_arrays(survey(answers)))


def naive_nearest(answers: Answers, segment: str, target: str, context: Sequence[str]) -> list[float] | None:
    """The definition, in loops."""
    attribute, own = segment.partition(":")[0] + ":", answers[segment]
    near = []
    for name in sorted(answers):
        shared = [q for q in context if q in answers[name] and q in own]
        if name != segment and name.startswith(attribute) and target in answers[name] and shared:
            similarity = sum(float(js(own[q][1], answers[name][q][1])) for q in shared) / len(shared)
            near.append((-round(similarity, 12), name))
    chosen = [answers[name][target] for _, name in sorted(near)[:NEAREST]]
    total = sum(n for n, _ in chosen)
    return [sum(n * shares[place] for n, shares in chosen) / total for place in range(len(own[target][1]))] if chosen else None


def naive_shrunken(answers: Answers, segment: str, target: str, context: Sequence[str]) -> list[float] | None:
    others, near = left_out(answers, segment, target), naive_nearest(answers, segment, target, context)
    if others is None:
        return None
    product = square = 0.0
    for question in context:
        base = left_out(answers, segment, question)
        guess = naive_nearest(answers, segment, question, [other for other in context if other != question])
        if base is not None and guess is not None:
            for own, nearest, marginal in zip(answers[segment][question][1], guess, base, strict=True):
                product += (own - marginal) * (nearest - marginal)
                square += (nearest - marginal) ** 2
    weight = min(max(product / square, 0), 1) if square > 0 else 0.0
    return others if near is None else [o + weight * (p - o) for o, p in zip(others, near, strict=True)]


def lopsided(seed: int) -> dict[str, dict[str, tuple[int, list[float]]]]:
    """Nine countries and two ages of very unlike sizes, questions of two to five options, a third of the answers not there."""
    rng = np.random.default_rng(seed)
    sizes = {f"q{place}": int(rng.integers(2, 6)) for place in range(7)}
    segments = [KENYA, *(f"country:{name}" for name in "abcdefgh"), "age:young", "age:old"]
    answers: dict[str, dict[str, tuple[int, list[float]]]] = {}
    for segment in segments:
        n = int(rng.choice([10, 15, 40, 900]))
        kept = [q for q in sizes if segment == KENYA or rng.random() < 0.67]
        answers[segment] = {q: (n, rng.dirichlet(np.full(sizes[q], 0.7)).tolist()) for q in kept}
    return {segment: of for segment, of in answers.items() if of}


def prompts_of(answers: Answers, segment: str = KENYA) -> list[tuple[str, tuple[str, ...]]]:
    questions = list(answers[segment])
    return [(q, tuple(other for other in questions if other != q)[:size]) for q in questions for size in (0, 1, 2, 6)]


def close(found: Sequence[Sequence[float] | None], meant: Sequence[Sequence[float] | None]) -> None:
    assert [one is None for one in found] == [one is None for one in meant]
    for one, other in zip(found, meant, strict=True):
        assert one is None or one == pytest.approx(other, abs=1e-12)


HAND: Answers = {
    KENYA: {"c": (50, [0.5, 0.5]), "t": (50, [0.9, 0.1])},
    "country:like": {"c": (10, [0.5, 0.5]), "t": (10, [0.2, 0.8])},
    "country:near": {"c": (30, [0.6, 0.4]), "t": (30, [0.4, 0.6])},
    "country:far": {"c": (60, [0.9, 0.1]), "t": (60, [0.6, 0.4])},
    "country:opposite": {"c": (900, [1.0, 0.0]), "t": (900, [1.0, 0.0])},
}


def test_the_three_nearest_answer_weighted_by_their_respondents() -> None:
    (found,) = predicted(NEAR, HAND, ("t", ("c",)))
    assert found == pytest.approx([(10 * 0.2 + 30 * 0.4 + 60 * 0.6) / 100, (10 * 0.8 + 30 * 0.6 + 60 * 0.4) / 100])


def test_without_context_or_without_an_answering_segment_there_is_nothing_to_say() -> None:
    alone = {KENYA: HAND[KENYA], "age:young": HAND["country:like"]}
    unasked = {KENYA: HAND[KENYA], "country:like": {"c": HAND["country:like"]["c"]}}
    strangers = {KENYA: HAND[KENYA], "country:like": {"t": HAND["country:like"]["t"]}}
    assert predicted(NEAR, HAND, ("t", ())) == [None]
    for answers in (alone, unasked, strangers):
        assert predicted(NEAR, answers, ("t", ("c",))) == [None]
    assert predicted(NEAR, HAND) == []


def test_segments_as_near_as_each_other_are_taken_in_the_order_of_their_names() -> None:
    shares = {"d": 1.0, "b": 0.3, "a": 0.0, "c": 0.6}
    twins = {f"country:{name}": {"c": (20, [0.3, 0.7]), "t": (20, [p, 1 - p])} for name, p in shares.items()}
    twins[KENYA] = {**HAND[KENYA]}
    (found,) = predicted(NEAR, twins, ("t", ("c",)))
    assert found == pytest.approx([0.3, 0.7])


def test_the_weight_is_the_least_squares_slope_on_the_context_by_hand() -> None:
    # With one neighbour nearest and others are the same everywhere, so two are needed and three nearest would be all: `big` has no `t`.
    answers: Answers = {
        KENYA: {"a": (50, [0.5, 0.5]), "b": (50, [0.5, 0.5]), "t": (50, [0.1, 0.9])},
        "country:p": {"a": (10, [0.8, 0.2]), "b": (10, [0.8, 0.2]), "t": (10, [0.6, 0.4])},
        "country:q": {"a": (10, [0.8, 0.2]), "b": (10, [0.8, 0.2]), "t": (10, [0.6, 0.4])},
        "country:r": {"a": (10, [0.8, 0.2]), "b": (10, [0.8, 0.2]), "t": (10, [0.6, 0.4])},
        "country:z": {"a": (30, [0.0, 1.0]), "b": (30, [0.0, 1.0]), "t": (30, [0.0, 1.0])},
    }
    # In a and b: nearest .8, others .4, own .5, so w = .1 * .4 / .4 ** 2 = .25. In t: nearest .6, others .3.
    (found,) = predicted(SHRUNKEN, answers, ("t", ("a", "b")))
    assert found == pytest.approx([0.3 + 0.25 * 0.3, 0.7 - 0.25 * 0.3])


def test_without_two_context_questions_the_shrunken_answer_is_the_leave_one_out_marginal() -> None:
    marginal = pytest.approx(left_out(HAND, KENYA, "t"))
    assert predicted(SHRUNKEN, HAND, ("t", ()), ("t", ("c",))) == [marginal, marginal]


@pytest.mark.parametrize("seed", range(4))
def test_both_are_what_the_definitions_in_loops_give(seed: int) -> None:
    answers = lopsided(seed)
    for segment in (KENYA, "age:young"):
        if segment in answers:
            prompts = prompts_of(answers, segment)
            for model, naive in ((NEAR, naive_nearest), (SHRUNKEN, naive_shrunken)):
                close(
                    predicted(model, answers, *prompts, segment=segment),
                    [naive(answers, segment, target, context) for target, context in prompts],
                )

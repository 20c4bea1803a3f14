"""Observed tables keep every answer, quarantine what cannot be used, and hold hand-computable references."""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.survey.attributes import segment
from dtef_pipeline.survey.model import Answer, Question, Survey
from dtef_pipeline.survey.observations import REASONS, observe
from dtef_pipeline.survey.scoring.references import compute_reference_scores

CONCERN = ("More excited than concerned", "Equally concerned and excited", "More concerned than excited")
Cell = tuple[tuple[float | None, ...], int | None]


def survey(
    cells: dict[tuple[str, str], Sequence[Cell | None]], questions: Sequence[Question] | None = None, n: int | None = None
) -> Survey:
    """A survey of (attribute, value) -> one (percentages, n) for each question; None where there is no answer."""
    width = len(next(iter(cells.values())))
    made = tuple(questions or (Question(f"q{i}", f"Question {i}?", ("Yes", "No")) for i in range(width)))
    segments = tuple(segment({a: v}, n, where="x") for a, v in cells)
    answers = tuple(
        Answer(s.key, q.id, cell[0], cell[1], "x", i)
        for s, row in zip(segments, cells.values(), strict=True)
        for i, (q, cell) in enumerate(zip(made, row, strict=True))
        if cell is not None
    )
    return Survey("GD9", "Nine", "test", "x", made, segments, answers)


def rows(made: Survey, **options: int) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = observe(made, **options).responses.to_pylist()
    return result


def naive_references(table: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """The definitions, row by row."""
    found = []
    for row in table:
        same_question = [r for r in table if r["question_id"] == row["question_id"]]
        others = [r for r in same_question if r["attribute"] == row["attribute"] and r["segment"] != row["segment"]]
        means = []
        for group in (same_question, others):
            known = all(r["n"] is not None for r in group)
            weights = [r["n"] if known else 1 for r in group]
            shares = zip(*(r["observed"] for r in group), strict=True)
            means.append([sum(map(operator.mul, weights, of)) / sum(weights) for of in shares] if group else None)
        found.append((means[0] if len(same_question) > 1 else None, means[1]))
    return found


percentages = st.one_of(
    st.integers(0, 100).map(lambda p: (float(p), float(100 - p))),
    st.sampled_from([(None, None), (50.0, None), (0.0, 0.0), (-1.0, 101.0), (float("nan"), 1.0), (60.0, 20.0), (100.0,)]),
)
cell = st.one_of(st.none(), st.tuples(percentages, st.one_of(st.none(), st.integers(0, 300))))
values = [("country", name) for name in ("Kenya", "India", "Japan")] + [
    ("gender", "Male"),
    ("gender", "Female"),
    ("city", "Yes"),
]


@given(st.lists(st.tuples(cell, cell, cell), min_size=6, max_size=6), st.one_of(st.none(), st.integers(0, 50)))
def test_nothing_is_lost_and_references_follow_their_definitions(cells: list[tuple[Any, Any, Any]], n: int | None) -> None:
    made = survey(dict(zip(values, cells, strict=True)), n=n)
    observed = observe(made)
    table, quarantine = observed.responses.to_pylist(), observed.quarantine.to_pylist()
    whole = {q["segment"] for q in quarantine if q["question_id"] is None}
    pairs = Counter((r["segment"], r["question_id"]) for r in [*table, *quarantine] if r["question_id"])
    empty = {s.key for s in made.segments} - {k for k, _ in pairs} - whole
    assert pairs == Counter((a.segment, a.question_id) for a in made.answers if a.segment not in whole | empty)
    assert all(p is None for a in made.answers if a.segment in empty for p in a.percentages)
    assert {q["reason"] for q in quarantine} <= set(REASONS)
    for row, (population, others) in zip(table, naive_references(table), strict=True):
        assert sum(row["observed"]) == pytest.approx(1, abs=1e-12)
        assert row["population"] == (None if population is None else pytest.approx(population, abs=1e-12))
        assert row["leave_one_out_marginal"] == (None if others is None else pytest.approx(others, abs=1e-12))
        assert row["n"] is None or row["n"] >= 10


def test_a_pair_without_n_is_used_and_counts_like_any_other() -> None:
    """Pairs without n were set aside, so users invented one, which then fed ceilings and intervals."""
    made = survey(
        {
            ("country", "Kenya"): [((60, 40), None)],
            ("country", "India"): [((20, 80), 300)],
            ("gender", "Male"): [((50, 50), 100)],
            ("gender", "Female"): [((40, 60), 300)],
        }
    )
    observed = observe(made)
    kenya, india, male, female = observed.responses.to_pylist()
    assert [(r["n"], r["n_source"], r["segment_n"]) for r in (kenya, india)] == [(None, None, None), (300, "question", 300)]
    assert kenya["population"] == pytest.approx([0.425, 0.575])
    assert {r["population_n"] for r in (kenya, india, male, female)} == {None}
    assert (india["leave_one_out_marginal"], india["leave_one_out_n"], kenya["leave_one_out_n"]) == (
        pytest.approx([0.6, 0.4]),
        None,
        300,
    )
    assert (male["leave_one_out_marginal"], male["leave_one_out_n"]) == (pytest.approx([0.4, 0.6]), 300)
    assert [f["items"] for f in observed.findings.to_pylist() if f["code"] == "n-unknown"] == [["1 of 4 pairs"]]
    assert not len(observed.quarantine)


def test_effective_n_is_that_of_the_pair_or_by_the_design_effect_of_the_segment() -> None:
    made = survey({("country", "Kenya"): [((60, 40), 50), ((60, 40), 100)], ("country", "India"): [((20, 80), 30), None]})
    first, second, third = made.answers
    made = replace(
        made,
        segments=tuple(replace(s, n=100, n_effective=40.0) if s.value == "Kenya" else s for s in made.segments),
        answers=(first, replace(second, n_effective=55.5), third),
    )
    assert [(r["n"], r["n_effective"]) for r in rows(made)] == [(50, 20), (100, 55.5), (30, None)]
    assert [(r["n"], r["n_effective"]) for r in rows(made, design_effect=1.5)] == [(50, 20), (100, 55.5), (30, 20)]


def test_shuffled_is_another_segments_answer_and_repeats_with_the_seed() -> None:
    made = survey({v: [((10 * i, 100 - 10 * i), 20)] for i, v in enumerate(values)})
    table = rows(made)
    by_segment = {r["segment"]: r["observed"] for r in table}
    assert all(r["shuffled_segment"] != r["segment"] and r["shuffled"] == by_segment[r["shuffled_segment"]] for r in table)
    assert rows(made) == table
    draws: dict[str, set[str]] = defaultdict(set)
    for seed in range(30):
        for r in rows(made, seed=seed):
            draws[r["segment"]].add(r["shuffled_segment"])
    assert all(drawn == set(by_segment) - {own} for own, drawn in draws.items())


def concern_survey(own_share: float) -> Survey:
    rest = (100 - own_share) / 2
    cells = {
        ("aiConcern", c): [(tuple(own_share if o == c else rest for o in CONCERN), 20), ((99.0, 1.0), 20)] for c in CONCERN
    }
    questions = [Question("own", "How do you feel?", CONCERN), Question("yes", "Do you use AI?", ("Yes", "No"))]
    return survey({**cells, ("country", "Kenya"): [((90, 5, 5), 20), ((50, 50), 20)]}, questions)


@pytest.mark.parametrize(("own_share", "expected"), [(100, True), (90, True), (80, True), (79, False), (40, False)])
def test_the_question_that_defines_an_attribute_is_circular_for_its_segments_alone(own_share: float, expected: bool) -> None:
    circular = {(r["segment"].split(":")[0], r["question_id"]) for r in rows(concern_survey(own_share)) if r["circular"]}
    assert circular == ({("aiConcern", "own")} if expected else set())


def test_a_repeated_question_names_the_first_one() -> None:
    questions = [
        Question("a", "Good?", ("Yes", "No")),
        Question("b", "Good?", ("No", "Yes")),
        Question("c", " GOOD? ", ("yes", "No ")),
    ]
    made = survey({("country", "Kenya"): [((60, 40), 20)] * 3}, questions)
    assert [r["duplicate_of"] for r in rows(made)] == [None, None, "a"]
    found = {f["code"]: f["items"] for f in observe(made).findings.to_pylist()}
    assert found == {"duplicate-question": [" GOOD? "]}


Shares = tuple[float, ...]
FAVORABLE = ("Very favorable", "Somewhat favorable", "Somewhat unfavorable", "Very unfavorable", "DK/Refused")
FAVORED = ((50, 30, 10, 5, 5), (20, 40, 20, 10, 10), (5, 25, 40, 20, 10))
KNOWN = ("I know a lot about it", "I know a little about it", "I don't know anything about it")


@pytest.mark.parametrize(
    ("options", "stated", "shares", "reference", "expected"),
    [
        (FAVORABLE, "ordinal", FAVORED, "leave_one_out_score", 0.718811),
        (FAVORABLE, None, FAVORED, "leave_one_out_score", 0.718811),
        (KNOWN, None, ((10, 40, 50), (20, 40, 40), (5, 25, 70)), "uniform_score", 0.8),
    ],
)
def test_who_gives_no_answer_is_no_end_of_the_scale_and_who_knows_nothing_is(
    options: tuple[str, ...], stated: str | None, shares: tuple[Shares, ...], reference: str, expected: float
) -> None:
    """`DK/Refused` was the far end of a stated scale (0.7688), `I don't know anything about it` was set aside (0.7)."""
    question = Question("q", "What do you think?", options, scale=stated)
    countries = {("country", name): [(each, 1000)] for name, each in zip(("Kenya", "Brazil", "Japan"), shares, strict=True)}
    kenya = compute_reference_scores(observe(survey(countries, [question])).responses, draws=2).to_pylist()[0]
    assert kenya[reference]["emd_normalized"] == pytest.approx(expected, abs=1e-5)


def test_a_question_is_circular_for_segments_of_several_attributes_too() -> None:
    question = Question("g", "Your gender?", ("Female", "Male"))
    segments = [segment({"country": "Kenya", "gender": g}, 20, where="x") for g in ("Female", "Male")]
    answers = [Answer(segments[0].key, "g", (100, 0), 20, "x", 1), Answer(segments[1].key, "g", (0, 100), 20, "x", 2)]
    made = Survey("GD9", "Nine", "test", "x", (question,), tuple(segments), tuple(answers))
    assert [r["circular"] for r in rows(made)] == [True, True]

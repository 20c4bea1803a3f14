"""The draws of `--questions N` and `--sample-segments S`: over batteries and attributes, nested; and what is said of them beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.boards.cells import load_cells
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.survey.attributes import segment
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.model import Answer, Question, Survey
from dtef_pipeline.survey.observations import observe
from dtef_pipeline.survey.predictions import select_prompts
from dtef_pipeline.survey.question_draw import (
    Components,
    Sample,
    compute_difference_deviations,
    compute_expected_error,
    describe_draw,
    draw_order,
    draw_segment_order,
    estimate_variance_components,
)
from tests.made.scores import score_row, scores_table, survey_rows

COUNTS = np.array([False, False])
DEFINES_ALL = np.array([True, True])
DEFINES_ONE = np.array([True, False])
UNANSWERED = np.array([], dtype=bool)


def drawn(batteries: list[str], **given: object) -> list[int]:
    usual: dict[str, object] = {"duplicate_of": [None] * len(batteries), "circular": [COUNTS] * len(batteries)}
    return draw_order("GD4", batteries, **{**usual, **given})  # type: ignore[arg-type]


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40))
def test_any_number_of_questions_lies_in_as_many_batteries_as_it_can(batteries: list[str]) -> None:
    # The first ten questions of GD4 lie in three of its 43 batteries, so that no score could have an interval.
    order = drawn(batteries)
    assert sorted(order) == list(range(len(batteries)))
    for number in range(1, len(batteries) + 1):
        chosen = {battery for battery, place in zip(batteries, order, strict=True) if place < number}
        assert len(chosen) == min(number, len(set(batteries)))


def test_the_draw_is_settled_by_names_and_differs_between_rounds() -> None:
    batteries = [f"rule:q{place}" for place in range(12)]
    assert drawn(batteries) == drawn(batteries)
    assert drawn(batteries) != draw_order("GD5", batteries, [None] * 12, [COUNTS] * 12)
    assert drawn(batteries) != list(range(12))
    fewer = drawn(batteries[:-1])
    assert sorted(range(11), key=fewer.__getitem__) == sorted(range(11), key=drawn(batteries).__getitem__)


def test_questions_that_no_board_needs_come_last() -> None:
    order = drawn(
        ["a", "b", "c", "d", "e"],
        duplicate_of=["d", None, None, None, None],
        circular=[COUNTS, DEFINES_ALL, UNANSWERED, DEFINES_ONE, COUNTS],
    )
    assert order[2] == 4
    assert {order[0], order[1]} == {2, 3}
    assert {order[3], order[4]} == {0, 1}


def test_every_segment_has_the_draw_of_the_round_whatever_it_lacks() -> None:
    questions = tuple(Question(f"q{place}", f"Number {place}?", ("Yes", "No"), battery=f"b{place // 3}") for place in range(9))
    segments = [segment({"country": name}, 40, where="x") for name in ("Kenya", "India")]
    answers = tuple(
        Answer(one.key, q.id, (60.0, 40.0), 40, "x", 1)
        for one in segments
        for q in questions
        if (one.value, q.id) != ("India", "q0")
    )
    made = observe(Survey("GD9", "Nine", "test", "x", questions, tuple(segments), answers)).responses.to_pandas()
    kenya, india = (made[made["value"] == name].set_index("question_id")["draw_order"] for name in ("Kenya", "India"))
    assert sorted(kenya) == list(range(9))
    assert "q0" not in india.index
    assert india.to_dict() == kenya.drop("q0").to_dict()
    assert set(made.loc[made["draw_order"] < 3, "battery"]) == {"given:b0", "given:b1", "given:b2"}


def of_round(batteries: Sequence[int], **segments: int) -> pd.DataFrame:
    """Every question of the batteries in every segment; `segments`: how many of each attribute."""
    named = [(attribute, f"{attribute}:{place}") for attribute, many in segments.items() for place in range(many)]
    questions = [(f"b{place}", f"b{place}q{number}") for place, many in enumerate(batteries) for number in range(many)]
    rows = [(*question, *segment) for question in questions for segment in named]
    return pd.DataFrame(rows, columns=["battery", "question_id", "attribute", "segment"]).assign(put_off=False)


GD4_SIZES = (13, 12, 10, 8, 7, 7, 6, 5, 5, 5, 2, 2, 2, 2, 2, *[1] * 28)
GD4 = of_round(GD4_SIZES, country=29, religion=7, age=5, concern=3, environment=3, gender=2)
GD3 = of_round((13, 7, 5, 5, 4, 2, *[1] * 7), country=27, religion=7, age=5, concern=3, environment=3, gender=2)


class TestSegments:
    def test_each_question_has_its_own_order_of_all_segments_whatever_the_order_of_rows(self) -> None:
        order = draw_segment_order("GD4", GD4)
        assert all(sorted(of) == list(range(49)) for _, of in pd.Series(order).groupby(GD4["question_id"]))
        shuffled = GD4.sample(frac=1, random_state=3)
        assert (pd.Series(draw_segment_order("GD4", shuffled), shuffled.index).sort_index() == order).all()
        assert (draw_segment_order("GD5", GD4) != order).mean() > 0.9
        assert (draw_segment_order("GD4", GD4, seed=1) != order).mean() > 0.9

    @pytest.mark.parametrize("number", [1, 4])
    @pytest.mark.parametrize("pairs", [GD3, GD4], ids=["GD3", "GD4"])
    def test_attributes_and_segments_have_their_share_of_the_pairs(self, pairs: pd.DataFrame, number: int) -> None:
        drawn = pairs[draw_segment_order("GD", pairs, 0) < number]
        shares = drawn["attribute"].value_counts(normalize=True) - pairs["attribute"].value_counts(normalize=True)
        assert shares.abs().max() < 0.04
        assert (drawn.groupby("question_id").size() == number).all()
        expected = len(drawn) / pairs["segment"].nunique()
        chi_squared = (
            (drawn["segment"].value_counts().reindex(pairs["segment"].unique(), fill_value=0) - expected) ** 2 / expected
        ).sum()
        assert chi_squared < 35  # a random draw has 46 or 48 on average

    def test_pairs_that_no_board_needs_come_last(self) -> None:
        pairs = of_round((2,), country=5)
        off = pairs["segment"].isin(["country:1", "country:3"])
        order = draw_segment_order("GD4", pairs.assign(put_off=off))
        assert (order[off] >= 3).all()
        assert sorted(order) == sorted([*range(5)] * 2)


@pytest.mark.parametrize("sample", [Sample(1), Sample(2), Sample(9), Sample(None, 1), Sample(3, 1), Sample(None, 5)])
def test_prompts_asked_and_boards_are_of_the_same_pairs(sample: Sample) -> None:
    survey = survey_rows(
        *(
            {"question_id": f"q{place}", "question_order": place, "draw_order": (place + 2) % 4, "segment_order": place % 3}
            for place in range(4)
        )
    )
    asked = select_prompts(build_blueprints(survey, BlueprintOptions()), survey, sample=sample)["question_id"].to_pylist()
    scores = scores_table([score_row(question_id=f"q{place}", question_order=place) for place in range(4)])
    with duckdb.connect() as connection:
        connection.register("scores", scores)
        connection.register("survey_responses", survey)
        options = SurveyBoardOptions(questions=sample.questions, sample_segments=sample.segments)
        shown = load_cells(connection, options)["question_id"].tolist()
    assert sorted(shown) == sorted(asked)
    wanted = {
        f"q{place}" for place in range(4) if (place + 2) % 4 < (sample.questions or 4) and place % 3 < (sample.segments or 3)
    }
    assert set(asked) == wanted


def in_batteries(*of: str, **given: object) -> pd.DataFrame:
    return pd.DataFrame({"draw_order": range(len(of)), "cluster": list(of), "is_target": True}).assign(**given)


class TestWhatItTells:
    def test_enough_batteries_give_intervals_and_tiers(self) -> None:
        said = describe_draw(in_batteries(*"abcdefgabc"), MIN_CLUSTERS)
        assert said.startswith("5 of 10 questions, in 5 of 7 batteries: enough")

    def test_too_few_name_the_smallest_number_that_is_enough(self) -> None:
        questions = in_batteries(*"aabbccddee")
        said = describe_draw(questions, 8)
        assert said.startswith("8 of 10 questions, in 4 of 5 batteries: too few")
        assert "(--questions 9 or more)" in said
        assert "enough" in describe_draw(questions, 9)

    def test_questions_of_which_a_sample_asks_no_segment_are_not_counted(self) -> None:
        order = [0, 1, 2, np.inf, 4, np.inf]
        said = describe_draw(in_batteries(*"abcdef", draw_order=order), None)
        assert said.startswith("4 of 6 questions, in 4 of 6 batteries: too few")
        assert "--sample-segments" in said


def nested(sizes: tuple[int, ...], segments: int = 1) -> pd.DataFrame:
    """One row per question and segment; `sizes`: questions of each battery."""
    rows = [
        (f"b{battery}", f"b{battery}q{place}", f"s{segment}")
        for battery, many in enumerate(sizes)
        for place in range(many)
        for segment in range(segments)
    ]
    return pd.DataFrame(rows, columns=["cluster", "question", "segment"])


def test_by_hand() -> None:
    # Batteries of 2 and 1 questions, in 2 segments each: shares 2/3 and 1/3; Q = 3, s = 2.
    error = compute_expected_error(Components(0.09, 0.06, 0.12), nested((2, 1), 2))
    assert error**2 == pytest.approx(0.09 * 5 / 9 + 0.06 / 3 + 0.12 / 6)


def test_components_by_hand() -> None:
    # Battery a: questions of means 2 and 4, battery b: one of mean 9; scores 1 above and below.
    frame = nested((2, 1), 2).assign(score=[1.0, 3, 3, 5, 8, 10])
    # Within: 6 / 3 = 2. Questions: (4 - 2 * 1) / (6 - (2 * 4 / 4 + 4 / 2)) = 1. Batteries: (48 - 2 - 1 * (4 - 12 / 6)) / (6 - 20 / 6).
    assert estimate_variance_components(frame) == pytest.approx((44 / (6 - 20 / 6), 1, 2))


def test_differences_of_several_models_have_the_mean_of_those_of_every_two() -> None:
    rng, pairs = np.random.default_rng(7), nested((4, 3, 2, 1, 1), 3)
    scores = {model: rng.normal(size=len(pairs)) for model in "abcd"}
    rows = pd.concat([pairs.assign(model_variant=model, score=score, setting="w") for model, score in scores.items()])

    def spread(value: np.ndarray) -> float:
        return float((value**2).sum())

    of_two = [spread(scores[one] - scores[other]) for one, other in combinations(scores, 2)]
    of_each = [spread(own["score"].to_numpy()) for _, own in compute_difference_deviations(rows).groupby("model_variant")]
    assert np.mean(of_each) == pytest.approx(np.mean(of_two))
    two = compute_difference_deviations(rows[rows["model_variant"].isin(["a", "b"])])
    assert np.abs(two.loc[two["model_variant"] == "a", "score"]).tolist() == pytest.approx(np.abs(scores["a"] - scores["b"]))

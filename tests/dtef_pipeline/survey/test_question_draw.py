"""The draw of `--questions N`: over batteries, nested, the same in every segment; and what is said of it beforehand."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.boards.cells import load_cells
from dtef_pipeline.statistics.permutation import fewest_clusters
from dtef_pipeline.statistics.resampling import MIN_CLUSTERS
from dtef_pipeline.survey.attributes import segment
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.model import Answer, Question, Survey
from dtef_pipeline.survey.observe import observe
from dtef_pipeline.survey.predictions import select_prompts
from dtef_pipeline.survey.question_draw import draw_order, what_it_tells
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


def test_the_first_question_of_a_battery_is_drawn_before_its_second() -> None:
    order = drawn(["a", "a", "b", "a"])
    assert order[0] < order[1] < order[3]
    assert order[2] < order[1]


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


@pytest.mark.parametrize("number", [1, 2, 3, 9])
def test_prompts_asked_and_boards_are_of_the_same_questions(number: int) -> None:
    survey = survey_rows(
        *({"question_id": f"q{place}", "question_order": place, "draw_order": (place + 2) % 4} for place in range(4))
    )
    asked = select_prompts(build_blueprints(survey, BlueprintOptions()), survey, questions=number)["question_id"].to_pylist()
    scores = scores_table([score_row(question_id=f"q{place}", question_order=place) for place in range(4)])
    with duckdb.connect() as connection:
        connection.register("scores", scores)
        connection.register("survey_responses", survey)
        shown = load_cells(connection, SurveyBoardOptions(questions=number))["question_id"].tolist()
    assert sorted(shown) == sorted(asked)
    assert len(asked) == min(number, 4)
    assert set(asked) <= {"q2", "q3", "q0", "q1"}
    assert number > 2 or set(asked) == {"q2", "q3"} or asked == ["q2"]


def in_batteries(*of: str, **given: object) -> pd.DataFrame:
    return pd.DataFrame({"draw_order": range(len(of)), "cluster": list(of), "is_target": True}).assign(**given)


class TestWhatItTells:
    def test_enough_batteries_give_intervals_and_tiers(self) -> None:
        said = what_it_tells(in_batteries(*"abcdefgabc"), fewest_clusters(1))
        assert said == "6 of 10 questions, in 6 of 7 batteries: enough for intervals, tests and tiers"

    def test_intervals_need_fewer_batteries_than_tests(self) -> None:
        said = what_it_tells(in_batteries(*"abcdefgabc"), MIN_CLUSTERS)
        assert said.startswith("5 of 10 questions, in 5 of 7 batteries: enough for intervals; tests")
        assert "(--questions 6 or more)" in said

    def test_too_few_name_the_smallest_number_that_is_enough(self) -> None:
        questions = in_batteries(*"aabbccddee")
        said = what_it_tells(questions, 8)
        assert said.startswith("8 of 10 questions, in 4 of 5 batteries: too few")
        assert "(--questions 9 or more)" in said
        assert "(there are fewer)" in said
        assert "enough for intervals;" in what_it_tells(questions, 9)

    def test_a_round_of_too_few_batteries_is_told_so_without_advice(self) -> None:
        for number in (None, 3, 10):
            said = what_it_tells(in_batteries(*"abc"), number)
            assert said.startswith("all 3 questions, in 3 batteries: too few")
            assert "--questions" not in said

    def test_questions_that_boards_leave_out_make_no_battery(self) -> None:
        last = [True] * 4 + [False]
        assert "in 4 batteries: too few" in what_it_tells(in_batteries(*"abcde", is_target=last), None)

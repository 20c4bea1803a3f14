"""Skill, a ratio to the room between the marginal and the ceiling, where there is much of it and where there may be none."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.boards.boards import board
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL
from dtef_pipeline.survey.boards import survey_subject
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from tests.made.scores import reference_table, scores_of, scores_table
from tests.made.world_tables import connection
from tests.made.worlds import Design, World


def with_room(*rooms: float) -> pd.Series:
    """The row of a model that scores .6 where the leave-one-out marginal scores .7, and the ceiling as much more as each question has room."""
    references = [{"question_id": f"q{i}", "leave_one_out_score": 0.7, "ceiling": 0.7 + room} for i, room in enumerate(rooms)]
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(scores_of("m", *[0.6] * len(rooms))))
        connection.register("reference_scores", reference_table(references))
        return board(connection, "overall", SurveyBoardOptions()).iloc[0]


def test_skill_has_an_interval_where_every_question_leaves_room() -> None:
    row = with_room(0.08, 0.12, 0.1, 0.09, 0.11, 0.1, 0.12, 0.08, 0.1, 0.1)
    assert row["skill"] == pytest.approx(-0.1 / 0.1)
    assert -1.3 < row["skill_low"] < -1 < row["skill_high"] < -0.8


def test_a_large_room_may_be_less_certain() -> None:
    """As that between the uniform distribution and the ceiling."""
    row = with_room(*[0.25, 0.35] * 5)
    assert -0.5 < row["skill_low"] < -1 / 3 < row["skill_high"] < -0.2


@pytest.mark.parametrize(
    "rooms",
    [
        # Ends of thousands on either side of a skill of -3, since some of the resampled rooms were next to nothing.
        (0.3, -0.1, 0.2, -0.15, 0.25, -0.2, 0.1, -0.1, 0.15, -0.1),
        # The room is .1, with an interval of ±.07.
        (0.0, 0.2, 0.0, 0.2, 0.0, 0.2, 0.0, 0.2, 0.0, 0.2),
        # Nine questions.
        (0.08, 0.12, 0.1, 0.09, 0.11, 0.1, 0.12, 0.08, 0.1),
    ],
)
def test_where_too_little_is_known_of_the_room_skill_has_no_interval_and_the_note_says_why(rooms: tuple[float, ...]) -> None:
    row = with_room(*rooms)
    assert row["skill"] == pytest.approx(-0.1 / np.mean(rooms))
    assert row[["skill_low", "skill_high"]].isna().all()
    assert "skill has no interval" in row["note"]
    assert row[["score_low", "score_high"]].notna().all()


def test_skill_of_a_model_is_as_unsure_as_the_marginal_that_the_same_people_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worlds of 100 questions: the interval held the skill of models below the marginal in .91 of the surveys, and in .97 with this part."""
    world = World(Design((1,) * 100, countries=(15, 20, 30, 60), ages=2), 1)
    tables = connection(world, world.survey(np.random.default_rng(1)), 60)

    def widths() -> pd.Series:
        rows = board(tables, "overall", SurveyBoardOptions()).set_index("model")
        return rows["skill_high"] - rows["skill_low"]

    whole = widths()
    monkeypatch.setattr(survey_subject, "OF_OBSERVED", 0.0)
    without = widths()
    assert whole["m0"] > 1.15 * without["m0"]
    assert whole["good"] == pytest.approx(without["good"], rel=0.1)
    assert whole[POPULATION_MARGINAL] == pytest.approx(without[POPULATION_MARGINAL])
    assert whole[LEAVE_ONE_OUT] == 0

"""Intervals of single segments, whose people answer every question. In full: `benchmarks/segment_coverage.py`."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest

from benchmarks.segment_coverage import covered, of_segments, truths
from dtef_pipeline.boards.cells import load_cells
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL
from dtef_pipeline.survey.boards.noise import estimate_sampling_noise, estimate_segment_noise
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from tests.made.world_tables import connection, scores, survey_responses
from tests.made.worlds import Design, World

DESIGN = Design((1,) * 100, countries=(15, 20, 30, 60), ages=2)
SETS = 8


@pytest.mark.thorough
def test_intervals_of_a_segment_hold_the_truth_of_people_who_answer_all_questions() -> None:
    """With questions alone: .64 of what is made of the same answers, and .84 of models."""
    world = World(DESIGN)
    surveys = (world.survey(np.random.default_rng([1, at])) for at in range(SETS))
    made = [{"set": at, "numbers": of_segments(world, survey)} for at, survey in enumerate(surveys)]
    table = covered(DESIGN, [{"set": "truth", "numbers": truths(DESIGN, 100)}, *made])
    of_baselines = table.index.str.contains("baseline/")
    assert table.loc[of_baselines, "covered"].mean() >= 0.84, table.to_string()
    assert table.loc[~of_baselines, "covered"].mean() >= 0.9, table.to_string()
    assert table["shown"].min() == 1


@pytest.mark.parametrize("segment", ["country:country2", "age:age1"])
def test_a_segments_own_rows_tell_the_noise_that_boards_find_from_all_segments(segment: str) -> None:
    world = World(DESIGN)
    survey = world.survey(np.random.default_rng(3))
    here = pc.field("segment") == segment
    rows = scores(world, survey).filter(here)
    alone = estimate_segment_noise(rows, survey_responses(world, survey).filter(here))
    with connection(world, survey, ceiling_draws=0) as tables:
        cells = load_cells(tables, SurveyBoardOptions())
        every = estimate_sampling_noise(tables, cells, SurveyBoardOptions())
    assert every is not None
    for model in ("m0", POPULATION_MARGINAL, LEAVE_ONE_OUT):
        own = alone[pc.equal(rows["model"], model).to_numpy()]
        of_board = every.score[((cells["model"] == model) & (cells["segment"] == segment)).to_numpy()]
        assert own.std() == pytest.approx(of_board.std(), rel=0.12)

"""Segments of people who gave no answer are left out of boards unless asked for."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dtef_pipeline.boards.cells import load_cells
from dtef_pipeline.cli.survey.boards import describe_non_answers
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from tests.made.world_tables import scores
from tests.made.worlds import Design, World

SILENT, ANSWERED = "country:refused", "country:country2"


@pytest.fixture
def tables() -> duckdb.DuckDBPyConnection:
    world = World(Design((1,) * 4, countries=(20, 20, 30)))
    rows = scores(world, world.survey(np.random.default_rng(1)))
    place = rows.schema.get_field_index("segment")
    segments = [SILENT if name == ANSWERED else name for name in rows["segment"].to_pylist()]
    found = duckdb.connect()
    found.register(
        "scores", rows.set_column(place, rows.schema.field(place), pa.array(segments, rows.schema.field(place).type))
    )
    assert pc.any(pc.equal(pa.array(segments), SILENT)).as_py()
    return found


def test_a_board_leaves_them_out_and_says_how_many(tables: duckdb.DuckDBPyConnection) -> None:
    assert SILENT not in set(load_cells(tables, SurveyBoardOptions())["segment"])
    line = describe_non_answers(tables, SurveyBoardOptions())
    assert "1 segment" in line
    assert SILENT in line


@pytest.mark.parametrize("options", [SurveyBoardOptions(non_answers=True), SurveyBoardOptions(segments=(SILENT,))])
def test_who_asks_for_them_gets_them(tables: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> None:
    assert SILENT in set(load_cells(tables, options)["segment"])
    assert describe_non_answers(tables, options) == ""

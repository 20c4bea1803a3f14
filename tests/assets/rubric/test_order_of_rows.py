"""Judgements, points and similarities share no hidden state: made of the same rows in another order they have the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from assets.stage.versions import content_version
from dtef_pipeline.rubric.board import BOARD_READS, rubric_board
from dtef_pipeline.rubric.episodes import build_point_rows
from dtef_pipeline.rubric.functions import prepare_function
from dtef_pipeline.rubric.scoring import ScoringPolicy, score_tables
from tests.assets.rubric.conftest import RubricPipeline, copy_finished, make_finished
from tests.made.rubric_documents import PATHS, PATHS_PROMPTS

COLD = {**PATHS, "temperatures": [0.0]}
POLICY = ScoringPolicy(embedder="openai/embed")
READ = ("rubric_responses", "rubric_prompts", "rubric_criteria", "rubric_judgements", "rubric_embeddings")
Tables = dict[str, pa.Table]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    blueprints = {"paths": [COLD, PATHS_PROMPTS], "paths_again": [{**COLD, "systems": [None]}, PATHS_PROMPTS]}
    return make_finished(tmp_path_factory.mktemp("finished"), blueprints)


@pytest.fixture
def stored(rubric: RubricPipeline, finished: Path) -> RubricPipeline:
    copy_finished(finished, rubric)
    return rubric


def shuffled(rows: pa.Table, rng: np.random.Generator) -> pa.Table:
    """In another order, and in several chunks."""
    taken = rows.take(pa.array(rng.permutation(len(rows))))
    cut = int(rng.integers(0, len(rows) + 1))
    return pa.concat_tables([taken.slice(0, cut), taken.slice(cut)])


def made_of(tables: Tables, rng: np.random.Generator | None = None) -> Tables:
    """Points, scores and similarities; with a generator, of rows in another order at each step."""

    def given(rows: pa.Table) -> pa.Table:
        return rows if rng is None else shuffled(rows, rng)

    at = {name: given(rows) for name, rows in tables.items()}
    points = build_point_rows(at["rubric_responses"], at["rubric_criteria"], at["rubric_judgements"], prepare_function)
    of = (at[name] for name in ("rubric_responses", "rubric_prompts", "rubric_criteria"))
    return {"rubric_points": points, **score_tables(*of, given(points), at["rubric_embeddings"], POLICY)}


def test_points_and_scores_of_shuffled_rows_have_the_bits_that_are_stored(stored: RubricPipeline) -> None:
    tables = {name: stored.table(name, "paths") for name in READ}
    wanted = made_of(tables)
    assert len(wanted["rubric_points"]) > 50
    for name, rows in wanted.items():
        assert rows.equals(stored.table(name, "paths")), name
    for seed in range(2):
        for name, rows in made_of(tables, np.random.default_rng(seed)).items():
            assert content_version(rows) == content_version(wanted[name]), (seed, name)


def test_one_blueprint_has_the_bits_that_it_has_beside_others(stored: RubricPipeline) -> None:
    """What one was scored by first leaves nothing behind for the next."""
    alone = content_version(stored.table("rubric_scores", "paths"))
    assert stored.run(["rubric_points", "rubric_scores"], keys=["paths"]).failures == ()
    assert content_version(stored.table("rubric_scores", "paths")) == alone


def test_boards_of_files_in_another_order_of_rows_have_the_same_bits(stored: RubricPipeline) -> None:
    before = content_version(stored.house.query(rubric_board, only=BOARD_READS))
    rng = np.random.default_rng(3)
    for table in BOARD_READS:
        for key in stored.keys:
            at = {"blueprint": key, **({} if table == "rubric_blueprints" else {"snapshot": "base"})}
            stored.house.write(table, shuffled(stored.table(table, key), rng), **at)
    assert content_version(stored.house.query(rubric_board, only=BOARD_READS)) == before

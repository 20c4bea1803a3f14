"""Two models whose answers were the same stand level in every view, however their scores were rounded and whatever the order of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.board_rows import compute_board
from dtef_pipeline.survey.boards.survey_boards import PUBLISHED
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.scoring.references import compute_reference_scores
from dtef_pipeline.survey.tables import METRICS
from tests.made.scores import scores_table, survey_rows

TWINS = ("twin-a", "twin-b")
RANKED = [view.name for view in PUBLISHED if not view.needs]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Half of twin-b's scores end in another digit than twin-a's, as those of other snapshots, draws or orders of addition may."""
    generator = np.random.default_rng(7)
    scored: list[dict[str, Any]] = []
    asked: list[dict[str, Any]] = []
    for segment in "abcd":
        for question in range(6):
            at = {"segment": f"country:{segment}", "question_id": f"q{question}", "value": segment}
            asked.append({**at, "question_text": f"Question {question}?", "n": 30})
            for level in ("0", "5"):
                drawn = {name: float(generator.uniform(0.2, 0.9)) for name in (POPULATION_MARGINAL, "other", "twin")}
                for model in (POPULATION_MARGINAL, "other", *TWINS):
                    score = drawn.get(model, drawn["twin"])
                    score = math.nextafter(score, 1) if model == TWINS[1] and generator.random() < 0.5 else score
                    named = {"model": model, "model_variant": model, "context_level": level, "predicted": [0.5, 0.3, 0.2]}
                    scored.append({**at, **named, "score": score, **dict.fromkeys(METRICS, score)})
    survey = survey_rows(*asked)
    with duckdb.connect() as made:
        for name, rows in (
            ("scores", scores_table(scored)),
            ("survey_responses", survey),
            ("reference_scores", compute_reference_scores(survey, draws=20)),
        ):
            made.register(f"{name}_rows", rows)
            made.execute(f"CREATE VIEW {name} AS FROM {name}_rows")
        yield made


def of_twins(frame: pd.DataFrame, columns: list[str]) -> list[list[Any]]:
    return [frame[frame["model"] == twin][columns].astype(str).to_numpy().tolist() for twin in TWINS]


@pytest.mark.parametrize("by", RANKED)
def test_equal_models_have_one_rank_and_stand_in_the_order_of_their_names(
    connection: duckdb.DuckDBPyConnection, by: str
) -> None:
    frame = compute_board(connection, by, SurveyBoardOptions())
    ranks = [name for name in frame if str(name).endswith("rank") or name in ("rank_low", "rank_high")]
    assert ranks
    first, second = of_twins(frame, [*map(str, ranks)])
    assert first == second
    models = list(frame["model"])
    assert all(models[at + 1] == TWINS[1] for at, model in enumerate(models) if model == TWINS[0])

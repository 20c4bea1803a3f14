"""Drift of a family with other columns and words: the same verdicts, in its own terms."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.drift.models import compute_model_drift, drift_checks
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.keys import Keys
from dtef_pipeline.survey.drift_subject import SUBJECT
from tests.made.scores import scores_table
from tests.made.snapshots import nights

NAMES = {
    "round": "league",
    "segment": "scenario",
    "question_id": "seed",
    "context_level": "adapter",
    "condition": "opponent",
}


GAMES = Subject(
    family="games",
    keys=Keys(("league", "scenario"), "seed", "deal", ("adapter", "opponent"), "seed"),
    computed_sql="model = 'referee'",
    in_order=str,
    truth="rules",
    truths="rules",
    clusters=lambda _: pd.DataFrame(columns=["league", "seed", "cluster"]),
    describe_setting=lambda row: f"adapter {row['adapter']} against {row['opponent']}",
    reads=("scores",),
)
FELL = [*nights([0.8] * 6), *nights([0.6] * 8, first=6)]
GREW = [*nights([0.8] * 6), *nights([0.8] * 6, first=6), *nights([0.1] * 6, first=6, round="S2", segment="country:mali")]
VERDICT = [
    "verdict",
    "log10_e",
    "threshold",
    "shift",
    "shift_low",
    "shift_high",
    "first_snapshot",
    "shift_notes",
    "gap",
]


def as_games(rows: list[dict[str, Any]]) -> pa.Table:
    """The scores of surveys under the names of games, which leave nothing out."""
    table = scores_table(rows).drop_columns(["circular"])
    return table.rename_columns([NAMES.get(name, name) for name in table.column_names])


def models(table: pa.Table, subject: Subject) -> pa.Table:
    with duckdb.connect() as connection:
        connection.register("scores", table)
        return compute_model_drift(connection, subject).checks


@pytest.mark.parametrize("rows", [FELL, GREW], ids=["fell", "grew"])
def test_verdicts_do_not_depend_on_what_a_family_calls_its_columns(rows: list[dict[str, Any]]) -> None:
    for survey, games in (
        (models(scores_table(rows), SUBJECT), models(as_games(rows), GAMES)),
        (drift_checks(scores_table(rows), SUBJECT), drift_checks(as_games(rows), GAMES)),
    ):
        assert games.schema.names == [NAMES.get(name, name) for name in survey.schema.names]
        assert set(games["setting"].to_pylist()) == {"adapter 0 against distribution/attribute-label"}
        assert games.select(VERDICT).equals(survey.select(VERDICT))


def test_rows_that_no_model_was_asked_for_are_not_watched() -> None:
    rows = as_games([*FELL, *nights([0.5] * 14, model="referee")])
    assert models(rows, GAMES)["model"].to_pylist() == ["m"]

"""The key columns of a family: what is derived from them, and that the tables of surveys have them."""

from __future__ import annotations

import pytest

from dtef_pipeline.keys import Keys, Space
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.tables import DRIFT_CHECKS, REFERENCE_SCORES, SCORES

GAMES = Keys(
    ("league", "scenario"), "seed", "deal", ("adapter", "opponent"), "seed", groups={"league": ("league",), "kind": ("kind",)}
)


@pytest.mark.parametrize(
    ("derived", "columns"),
    [
        (GAMES.pair, "league scenario seed"),
        (GAMES.cell, "league scenario seed adapter opponent"),
        (GAMES.row, "league scenario seed adapter opponent model model_variant snapshot"),
        (GAMES.series, "model model_variant adapter opponent"),
        (GAMES.shared_item, "league seed"),
        (GAMES.tested_columns, "league scenario seed prompt_id truth_id metric"),
        (GAMES.described, "kind"),
        (KEYS.described, "attribute value"),
    ],
)
def test_what_is_derived_is_made_of_the_familys_own_columns(derived: tuple[str, ...], columns: str) -> None:
    assert derived == tuple(columns.split())


def test_tables_of_surveys_have_the_key_columns() -> None:
    assert {*KEYS.row, *KEYS.tested_columns, *KEYS.described, KEYS.left_out} <= set(SCORES.names)
    assert {*KEYS.pair, KEYS.cluster} <= set(REFERENCE_SCORES.names)
    assert DRIFT_CHECKS.names[:2] == [*KEYS.space]


def test_the_key_of_partitions_with_one_level_is_its_value() -> None:
    space = Space("topics", first="topic", second="", order=str)
    assert space.levels("a/b") == {"topic": "a/b"}
    assert space.last == "topic"
    assert Space("parts", first="suite", second="task", order=str).last == "task"

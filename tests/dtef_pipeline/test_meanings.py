from __future__ import annotations

import pytest

from dtef_pipeline.meanings import MEANINGS, OF_TABLE, meaning
from resources.warehouse import TABLES


@pytest.mark.parametrize("table", [name for name, spec in TABLES.items() if spec.schema is not None])
def test_every_column_of_every_table_has_a_meaning_of_one_line(table: str) -> None:
    schema = TABLES[table].schema
    assert schema is not None
    for name in schema.names:
        text = meaning(table, name)
        assert text.strip() == text
        assert "\n" not in text


def test_ends_of_intervals_and_ranks_are_named_after_what_they_are_of() -> None:
    assert meaning("leaderboard", "skill_low") == "Lower end of the 95 % interval of skill"
    assert meaning("metric_ranks", "tv_rank") == "Rank by tv"


def test_a_column_without_a_meaning_is_an_error() -> None:
    for column in ("nonsense", "nonsense_low"):
        with pytest.raises(KeyError):
            meaning("scores", column)


def test_what_a_table_says_otherwise_is_of_its_own_columns() -> None:
    for table, columns in OF_TABLE.items():
        schema = TABLES[table].schema
        assert schema is not None
        assert set(columns) <= set(schema.names)
        assert set(columns) <= set(MEANINGS)

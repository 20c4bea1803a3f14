"""Data versions of partitions: equal for equal rows, however the table came to be, and different otherwise."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from assets.stage.versions import content_version
from dtef_pipeline.tables import field

SCHEMA = pa.schema([("name", pa.string()), ("n", pa.int32()), ("yes", pa.bool_()), ("shares", pa.list_(pa.float64()))])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.none() | st.text(max_size=3),
            "n": st.none() | st.integers(0, 9),
            "yes": st.none() | st.booleans(),
            "shares": st.none() | st.lists(st.floats(0, 1), max_size=3),
        }
    ),
    max_size=12,
)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@given(ROWS, ROWS, ROWS)
def test_a_part_of_a_table_has_the_version_of_the_same_rows_by_themselves(
    before: list[dict[str, Any]], rows: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    alone, together = table(rows), table(before + rows + after)
    mask = pa.array([False] * len(before) + [True] * len(rows) + [False] * len(after), pa.bool_())
    expected = content_version(alone)
    assert content_version(together.slice(len(before), len(rows))) == expected
    assert content_version(together.filter(mask)) == expected
    assert content_version(pa.concat_tables([alone.slice(0, 1), alone.slice(1)])) == expected
    assert content_version(alone.replace_schema_metadata({"made": "elsewhere"})) == expected


@given(ROWS, ROWS)
def test_other_rows_have_another_version(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    assert (content_version(table(some)) == content_version(table(others))) == (some == others)


def test_a_description_that_is_reworded_makes_no_partition_stale() -> None:
    plain, *described = (
        pa.table([["a", "b"]], schema=pa.schema([column]))
        for column in (pa.field("name", pa.string()), field("name", pa.string(), "Name"), field("name", pa.string(), "Person"))
    )
    assert {content_version(rows) for rows in described} == {content_version(plain)}

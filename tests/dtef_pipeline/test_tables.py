"""Descriptions of columns: every published column has one that can be understood where it stands, and files do not hold them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import pyarrow as pa
import pytest

from dtef_pipeline import tables
from dtef_pipeline.drift.verdict_tables import DRIFT_SCHEMAS, PARTITION_DRIFT
from dtef_pipeline.survey.boards.schemas import MEANINGS
from dtef_pipeline.survey.tables import PREDICTIONS
from dtef_pipeline.tables import CALL, describe_schema, description, field, strip_descriptions
from resources.warehouse import TABLES

SHARED = (tables.CALL, tables.COSTS, tables.COMPARISONS, PARTITION_DRIFT, *DRIFT_SCHEMAS.values())
SCHEMED = {table: spec.schema for table, spec in TABLES.items() if spec.schema is not None}
PUBLISHED: Mapping[str, Mapping[str, str]] = {
    **{table: {one.name: description(one) for one in schema} for table, schema in SCHEMED.items()},
    **MEANINGS,
}


def test_every_published_table_is_described() -> None:
    assert set(PUBLISHED) == set(TABLES)


def test_every_description_is_one_line_that_ends_no_cell_of_a_markdown_table() -> None:
    texts = [(table, column, text) for table, columns in PUBLISHED.items() for column, text in columns.items()]
    assert [one for one in texts if not one[-1] or "\n" in one[-1] or "|" in one[-1]] == []


def test_no_two_columns_of_a_table_have_one_description() -> None:
    assert [table for table, columns in PUBLISHED.items() if len(set(columns.values())) < len(columns)] == []


def test_a_description_is_of_columns_of_one_name() -> None:
    names: dict[str, set[str]] = {}
    for column, text in chain.from_iterable(columns.items() for columns in PUBLISHED.values()):
        names.setdefault(text, set()).add(column)
    assert {text: found for text, found in names.items() if len(found) > 1} == {}


def test_every_score_says_its_range_and_which_way_is_better() -> None:
    scores = ("score", "other_score", "best_score", "worst_score", "score_at_lowest_context", "score_at_highest_context")
    found = [(table, name, text) for table in SCHEMED for name, text in PUBLISHED[table].items() if name in scores]
    assert [one for one in found if "0-1" not in one[-1] or "higher is better" not in one[-1]] == []


def test_one_column_can_mean_other_things_in_two_tables() -> None:
    assert PUBLISHED["segment_gaps"]["score"] != PUBLISHED["comparisons"]["score"]
    assert PUBLISHED["predictions"]["cost_usd"] != PUBLISHED["costs"]["cost_usd"]


def test_blocks_that_families_share_say_nothing_of_surveys() -> None:
    for block in SHARED:
        for one in block:
            said = f"{one.name} {one.type} {description(one)}".lower()
            assert not [word for word in ("survey", "segment", "question", "round_id") if word in said], one.name


def test_predictions_have_every_column_of_a_call() -> None:
    assert {one.name: description(PREDICTIONS.field(one.name)) for one in CALL} == {one.name: description(one) for one in CALL}


def test_a_column_without_a_description_is_an_error_that_names_it() -> None:
    with pytest.raises(KeyError, match="nonsense"):
        description(pa.field("nonsense", pa.string()))
    with pytest.raises(KeyError, match="nonsense"):
        describe_schema(pa.schema([("nonsense", pa.string())]), {"n": "Respondents"})


def test_rows_lose_their_descriptions_and_nothing_else() -> None:
    schema = pa.schema([field("n", pa.int64(), "Respondents"), ("plain", pa.string())], metadata={b"of": b"rows"})
    rows = pa.table([[1, 2], ["a", None]], schema=schema)
    found = strip_descriptions(rows)
    assert found.equals(rows)
    assert found.schema.metadata == {b"of": b"rows"}
    assert [one.metadata for one in found.schema] == [None, None]

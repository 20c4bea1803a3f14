"""Notebooks read the tables with the defaults of pandas, polars and DuckDB, as docs/how-to/read-the-tables.md shows."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest

from resources.warehouse import TABLES, Warehouse
from tests.conftest import ROOT
from tests.made.qa_scores import keep_in, score_row

PAGE = (ROOT / "docs" / "how-to" / "read-the-tables.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))


@pytest.fixture
def there(reading: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the warehouse at its usual place, as the page has it."""
    (tmp_path / ".dtef").mkdir()
    (tmp_path / ".dtef" / "warehouse").symlink_to(reading / "warehouse")
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".dtef" / "warehouse"


@pytest.mark.parametrize("reader", ["pandas", "polars", "DuckDB"])
def test_the_page_s_code_runs_and_finds_rows(reader: str, there: Path) -> None:
    if reader == "polars":
        pytest.importorskip("polars", reason="polars is not installed: with 170 MB it is none of the packages that are locked")
    blocks = re.findall(r"```python\n(.*?)```", SECTIONS[reader], re.DOTALL)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    found = [names[name] for name in ("pairs", "one_round", "board", "best") if name in names]
    assert found
    assert all(len(one) for one in found)


def test_every_table_is_read_with_defaults_and_says_of_each_row_what_the_warehouse_says(there: Path) -> None:
    """pandas refused all tables that are kept by round: a column was text in the files and a category in the names of the folders."""
    house = Warehouse(there)
    assert {"scores", "survey_quarantine", "leaderboard"} <= set(house.tables())
    for table in house.tables():
        rows, levels = house.read(table), list(TABLES[table].levels)
        by_pandas, by_duckdb = pd.read_parquet(there / table), duckdb.sql(f"SELECT * FROM '{there / table}/**/*.parquet'")
        assert sorted(by_pandas.columns) == sorted(by_duckdb.columns) == sorted(rows.column_names)
        assert len(by_pandas) == len(by_duckdb) == len(rows)
        if levels:
            ours = Counter(zip(*(rows[level].to_pylist() for level in levels), strict=True))
            assert Counter(zip(*(by_pandas[level].astype(str) for level in levels), strict=True)) == ours


def test_files_that_were_written_as_text_stand_beside_new_ones(there: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    shutil.copytree(there / "scores", mixed / "scores")
    rows = Warehouse(there).read("scores")
    old = min(mixed.rglob("*.parquet"))
    pq.write_table(pq.ParquetFile(old).read().cast(rows.schema), old)
    assert str(pq.read_schema(old).field("round").type) == "string"
    assert Warehouse(mixed).read("scores").equals(rows)
    with Warehouse(mixed).connect(only=["scores"]) as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT snapshot) FROM scores").fetchone() == (len(rows), 2)


def test_the_page_s_code_on_questions_has_a_mean_per_way_of_measuring(tmp_path: Path) -> None:
    keep_in(tmp_path, {"qa_scores": [score_row(1.0), score_row(0.0, item_id="law/2"), score_row(0.5, measured_by="judge 1")]})
    (block,) = re.findall(r"```python\n(.*?)```", SECTIONS["Questions"], re.DOTALL)
    read, means = block.strip().splitlines()
    names: dict[str, Any] = {"pd": pd, "warehouse": tmp_path}
    exec(f"{read}\nmeans = {means}", names)
    assert sorted(names["means"]["mean"]) == pytest.approx([0.5, 0.5])
    assert sorted(names["means"]["count"]) == [1, 2]

"""Blocks of rows: each row once, errors as in one go, and no more threads than this process may use."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

from dtef_pipeline.survey import row_blocks
from dtef_pipeline.survey.row_blocks import distinct, in_blocks, processors


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "BLOCK", 4)
    monkeypatch.setattr(row_blocks, "MANY_ROWS", 9)
    monkeypatch.setattr(row_blocks, "processors", lambda: 2)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 5, 8, 9, 41])
def test_every_row_is_worked_on_once(rows: int) -> None:
    seen = np.zeros(rows, dtype=int)

    def count(block: slice) -> None:
        seen[block] += 1

    in_blocks(rows, count)
    assert (seen == 1).all()


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(("rows", "elsewhere"), [(8, False), (9, True)])
def test_few_rows_stay_on_the_thread_of_the_caller(rows: int, elsewhere: bool) -> None:
    used: set[int] = set()
    in_blocks(rows, lambda _: used.add(threading.get_ident()))
    assert (threading.get_ident() not in used) == elsewhere
    assert len(used) <= 2


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("rows", [8, 40])
def test_the_error_of_the_first_block_that_has_one_is_raised(rows: int) -> None:
    def fail(block: slice) -> None:
        if block.start:
            raise ValueError(f"block at {block.start}")

    with pytest.raises(ValueError, match=r"block at 4$"):
        in_blocks(rows, fail)


def test_processors_are_those_that_arrow_may_use() -> None:
    allowed = pa.cpu_count()
    try:
        pa.set_cpu_count(1)
        assert processors() == 1
    finally:
        pa.set_cpu_count(allowed)
    assert 1 <= processors() <= allowed


def test_distinct_numbers_are_listed_once_in_order() -> None:
    assert distinct(np.array([4, 2, 4, 130, 0])) == [0, 2, 4, 130]
    assert distinct(np.array([], dtype=np.int64)) == []

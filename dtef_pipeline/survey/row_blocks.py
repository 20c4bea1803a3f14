"""Long columns in blocks of rows: each small enough for a processor's cache, and on all processors where there are many."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.cores import cores

BLOCK = 8192
"""Rows worked on at a time."""
MANY_ROWS = 100_000
"""Rows from which on blocks are shared among threads: fewer are done before threads have started to pay."""


def in_blocks(rows: int, work: Callable[[slice], None]) -> None:
    """Calls `work` once with each block of the rows. It writes what belongs to these rows alone, so that their order does not matter.

    The error of the first block that has one is raised.
    """
    blocks = [slice(start, min(start + BLOCK, rows)) for start in range(0, rows, BLOCK)]
    threads = processors() if rows >= MANY_ROWS else 1
    if threads == 1:
        for block in blocks:
            work(block)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, blocks):
            pass


def distinct(numbers: npt.NDArray[np.integer]) -> list[int]:
    """The distinct ones of small numbers >= 0, ascending: neither sorted nor hashed, as a block has many and few are distinct."""
    return np.flatnonzero(np.bincount(numbers)).tolist()


def processors() -> int:
    """Those that this process may use, and no more than Arrow is allowed (OMP_NUM_THREADS, `pyarrow.set_cpu_count`)."""
    return min(cores(), int(pa.cpu_count()))

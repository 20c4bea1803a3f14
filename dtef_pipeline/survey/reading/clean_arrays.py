"""Texts that are one clean array of numbers (`[12.5, 40, 47.5]`), matched by a pattern and parsed together as lines of a CSV file.

Labels and prose are read by `distribution`, one text at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

_CLEAN_NUMBER = r"[0-9]{1,17}(?:\.[0-9]{1,20})?(?:e-?[0-9]{1,2})?"
_TO_ROWS = bytes.maketrans(b"]", b"\n")
_ROW_BREAKING = b"[ \t\r\n"
_MOST_NUMBERS = 100
"""Longer arrays are not read here."""

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class Arrays(NamedTuple):
    """Arrays of one length: the rows of their texts, and their numbers, (rows,) for each place."""

    rows: Rows
    places: list[Floats]


def clean_arrays(texts: pa.Array, sizes: Rows, eligible: Flags) -> Iterator[Arrays]:
    """Yield the `eligible` texts that are one array of as many numbers as `sizes` says, with any spacing and length."""
    eligible = eligible & (sizes > 1) & (sizes <= _MOST_NUMBERS)
    for k in np.unique(sizes[eligible]).tolist():
        rows = np.flatnonzero(eligible & (sizes == k))
        pattern = rf"^\s*\[\s*{_CLEAN_NUMBER}(?:\s*,\s*{_CLEAN_NUMBER}){{{k - 1}}}\s*\]\s*$"
        candidates = texts if len(rows) == len(texts) else texts.take(pa.array(rows))
        clean = pc.fill_null(pc.match_substring_regex(candidates, pattern), False)
        mask = clean.to_numpy(zero_copy_only=False)
        if mask.any():
            yield Arrays(rows[mask], _parse_as_csv(candidates if mask.all() else candidates.filter(clean), k))


def _parse_as_csv(arrays: pa.Array, k: int) -> list[Floats]:
    _, offsets, data = arrays.buffers()
    bounds = np.frombuffer(offsets, np.int64)[arrays.offset : arrays.offset + len(arrays) + 1]
    table = pa.csv.read_csv(
        pa.BufferReader(data[bounds[0] : bounds[-1]].to_pybytes().translate(_TO_ROWS, _ROW_BREAKING)),
        pa.csv.ReadOptions(column_names=[str(i) for i in range(k)]),
        convert_options=pa.csv.ConvertOptions(column_types={str(i): pa.float64() for i in range(k)}),
    )
    return [column.to_numpy() for column in table.columns]

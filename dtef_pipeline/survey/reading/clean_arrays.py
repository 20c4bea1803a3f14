"""Texts that are one clean array of numbers (`[12.5, 40, 47.5]`), read all at once.

Most are arrays as models and `json` write them, of short numbers (`short_numbers`). The others, with any spaces and long numbers, are
found by a pattern and read as lines of a CSV file. Neither knows anything of labels or prose: that is `distribution`, one text at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dtef_pipeline.survey.reading.short_numbers import WORD_BYTES, short_numbers
from dtef_pipeline.survey.row_blocks import distinct

_CLEAN_NUMBER = r"[0-9]{1,17}(?:\.[0-9]{1,20})?(?:e-?[0-9]{1,2})?"
_TO_ROWS = bytes.maketrans(b"]", b"\n")
_ROW_BREAKING = b"[ \t\r\n"
_MOST_NUMBERS = 100
"""Longer arrays are not read here."""

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class Arrays(NamedTuple):
    """Arrays of one length: the rows of their texts, and the numbers in them, (rows,) for each place."""

    rows: Rows
    places: list[Floats]


def clean_arrays(texts: pa.Array, sizes: Rows, wanted: Flags) -> Iterator[Arrays]:
    """Those of the `wanted` texts (large strings) that are one clean array of as many numbers as `sizes` says, 2 or more."""
    wanted = wanted & (sizes > 1) & (sizes <= _MOST_NUMBERS)
    for found in _short_arrays(texts, sizes, wanted):
        wanted[found.rows] = False
        yield found
    for k in distinct(sizes[wanted]):
        rows = np.flatnonzero(wanted & (sizes == k))
        if found_any := _any_arrays(texts if len(rows) == len(texts) else texts.take(pa.array(rows)), k):
            yield Arrays(rows[found_any.rows], found_any.places)


def _short_arrays(texts: pa.Array, sizes: Rows, wanted: Flags) -> Iterator[Arrays]:
    """The arrays from the first to the last character of a text, of short numbers behind at most one space."""
    data, bounds = _bytes(texts)
    first, last = bounds[:-1], bounds[1:] - 1
    wanted = wanted & (data[first] == ord("[")) & (data[last] == ord("]"))
    if texts.null_count:
        wanted &= texts.is_valid().to_numpy(zero_copy_only=False)
    commas, before = _commas(data, first, last, sizes, wanted)
    for k in distinct(sizes[wanted]):
        rows = np.flatnonzero(wanted & (sizes == k))
        starts, ends = np.empty((k, len(rows)), np.int64), np.empty((k, len(rows)), np.int64)
        if len(commas) == len(rows) * (k - 1):
            ends[:-1] = commas.reshape(-1, k - 1).T
        else:
            for i in range(k - 1):
                ends[i] = commas[before[rows] + i]
        ends[-1] = last[rows]
        starts[0] = first[rows]
        starts[1:] = ends[:-1]
        starts += 1
        starts += data.take(starts) == ord(" ")
        numbers = short_numbers(data, starts, ends)
        values = numbers.values
        if numbers.others.any():
            fine = ~numbers.others.any(axis=0)
            rows, values = rows[fine], values[:, fine]
        yield Arrays(rows, list(values))


def _commas(data: npt.NDArray[np.uint8], first: Rows, last: Rows, sizes: Rows, wanted: Flags) -> tuple[Rows, Rows]:
    """Where commas are, and how many lie before each text; `wanted` is lowered where a text has not one less than numbers."""
    commas = np.flatnonzero(data == ord(","))
    ends = np.cumsum(sizes - 1)
    before = ends - (sizes - 1)
    if wanted.all() and ends[-1:] == [len(commas)] and (commas[before] > first).all() and (commas[ends - 1] < last).all():
        return commas, before
    before = np.searchsorted(commas, first)
    wanted &= np.searchsorted(commas, last) - before == sizes - 1
    return commas, before


def _any_arrays(texts: pa.Array, k: int) -> Arrays | None:
    """The arrays of k numbers, however they are spaced and however long the numbers are; None when there are none."""
    pattern = rf"^\s*\[\s*{_CLEAN_NUMBER}(?:\s*,\s*{_CLEAN_NUMBER}){{{k - 1}}}\s*\]\s*$"
    clean = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    mask = clean.to_numpy(zero_copy_only=False)
    if not mask.any():
        return None
    data, _ = _bytes(texts if mask.all() else texts.filter(clean))
    table = pa.csv.read_csv(
        pa.BufferReader(data[:-WORD_BYTES].tobytes().translate(_TO_ROWS, _ROW_BREAKING)),
        pa.csv.ReadOptions(column_names=[str(i) for i in range(k)], use_threads=False),
        convert_options=pa.csv.ConvertOptions(column_types={str(i): pa.float64() for i in range(k)}),
    )
    return Arrays(np.flatnonzero(mask), [column.to_numpy() for column in table.columns])


def _bytes(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], Rows]:
    """The texts one after another, with WORD_BYTES zeros behind them, and the places where each begins and the last one ends."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    joined = np.zeros(bounds[-1] - bounds[0] + WORD_BYTES, np.uint8)
    if len(joined) > WORD_BYTES:
        joined[:-WORD_BYTES] = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    return joined, bounds - bounds[0]

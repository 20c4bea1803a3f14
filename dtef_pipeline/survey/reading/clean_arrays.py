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


def short_arrays(texts: pa.Array, sizes: Rows, wanted: Flags) -> Iterator[Arrays]:
    """Those of the `wanted` texts (large strings) that are one array of as many numbers as `sizes` says, 2 or more.

    Only arrays from the first to the last character of a text are found, of short numbers behind at most one space.
    """
    data, bounds = _bytes(texts)
    first, last = bounds[:-1], bounds[1:] - 1
    wanted = wanted & (sizes > 1) & (sizes <= _MOST_NUMBERS) & (last - first <= (WORD_BYTES + 2) * sizes)
    wanted &= first < last
    if texts.null_count:
        wanted &= texts.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(wanted)
    opened = (data[first[rows]] == ord("[")) & (data[first[rows] + 1] >= ord(" "))  # no line break, as in an array over lines
    wanted[rows] = opened & (data[last[rows]] == ord("]"))
    if wanted.any():
        padded = np.zeros(len(data) + WORD_BYTES, np.uint8)
        padded[: len(data)] = data
        yield from _numbers_between(padded, first, last, sizes, wanted)


def _numbers_between(data: npt.NDArray[np.uint8], first: Rows, last: Rows, sizes: Rows, wanted: Flags) -> Iterator[Arrays]:
    """The numbers from the `first` to the `last` character of each text, of all lengths of array at once: each operation costs something."""
    commas, before = _commas(data, first, last, sizes, wanted)
    rows_of = {k: np.flatnonzero(wanted & (sizes == k)) for k in distinct(sizes[wanted])}
    bounds = np.cumsum([0, *(k * len(rows) for k, rows in rows_of.items())])
    starts, ends = np.empty(bounds[-1], np.int64), np.empty(bounds[-1], np.int64)
    for (k, rows), begin, end in zip(rows_of.items(), bounds[:-1], bounds[1:], strict=True):
        separated = ends[begin:end].reshape(k, -1)
        if len(commas) == len(rows) * (k - 1):
            separated[:-1] = commas.reshape(-1, k - 1).T
        else:
            for i in range(k - 1):
                separated[i] = commas[before[rows] + i]
        separated[-1] = last[rows]
        starts[begin : begin + len(rows)] = first[rows]
        starts[begin + len(rows) : end] = ends[begin : end - len(rows)]
    starts += 1
    starts += data.take(starts) == ord(" ")
    numbers = short_numbers(data, starts, ends)
    for (k, rows), begin, end in zip(rows_of.items(), bounds[:-1], bounds[1:], strict=True):
        values, others = numbers.values[begin:end].reshape(k, -1), numbers.others[begin:end].reshape(k, -1)
        if others.any():
            fine = ~others.any(axis=0)
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


def any_arrays(texts: pa.Array, sizes: Rows, wanted: Flags) -> Iterator[Arrays]:
    """Those of the `wanted` texts that are one array of as many numbers as `sizes` says, however it is spaced and however long they are."""
    wanted = wanted & (sizes > 1) & (sizes <= _MOST_NUMBERS)
    for k in distinct(sizes[wanted]):
        rows = np.flatnonzero(wanted & (sizes == k))
        pattern = rf"^\s*\[\s*{_CLEAN_NUMBER}(?:\s*,\s*{_CLEAN_NUMBER}){{{k - 1}}}\s*\]\s*$"
        asked = texts if len(rows) == len(texts) else texts.take(pa.array(rows))
        clean = pc.fill_null(pc.match_substring_regex(asked, pattern), False)
        mask = clean.to_numpy(zero_copy_only=False)
        if mask.any():
            yield Arrays(rows[mask], _lines_of_csv(asked if mask.all() else asked.filter(clean), k))


def _lines_of_csv(arrays: pa.Array, k: int) -> list[Floats]:
    data, _ = _bytes(arrays)
    table = pa.csv.read_csv(
        pa.BufferReader(data.tobytes().translate(_TO_ROWS, _ROW_BREAKING)),
        pa.csv.ReadOptions(column_names=[str(i) for i in range(k)]),
        convert_options=pa.csv.ConvertOptions(column_types={str(i): pa.float64() for i in range(k)}),
    )
    return [column.to_numpy() for column in table.columns]


def _bytes(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], Rows]:
    """The texts one after another, as they lie in the array, and the places where each begins and the last one ends."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    joined = np.zeros(0, np.uint8) if bounds[0] == bounds[-1] else np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    return joined, bounds - bounds[0]

"""Columns of responses: those that are one clean array are read all at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dtef_pipeline.survey.reading.distribution import Parsed, total_note

_CLEAN_NUMBER = r"[0-9]{1,17}(?:\.[0-9]{1,20})?(?:e-?[0-9]{1,2})?"
_TO_ROWS = bytes.maketrans(b"]", b"\n")
_ROW_BREAKING = b"[ \t\r\n"

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class ParsedColumns(NamedTuple):
    """`Parsed` of many responses, as columns of equal length: text, list of float64 (null unless ok), text."""

    status: pa.Array
    distribution: pa.Array
    reason: pa.Array


class ColumnsInMaking:
    """The result under construction: fractions in one flat array, at the places where a list of them would stand."""

    def __init__(self, texts: pa.Array, sizes: Rows) -> None:
        self._texts = texts
        self._sizes = sizes
        self._offsets = np.concatenate([[0], np.cumsum(sizes)])
        self._values = np.zeros(self._offsets[-1])
        self._pending = np.ones(len(texts), dtype=bool)
        self._status = np.zeros(len(texts), dtype=np.int32)
        self._reason = np.zeros(len(texts), dtype=np.int32)
        self._codes: dict[str, int] = {"ok": 0}

    def pending(self) -> Rows:
        """The rows that nothing was added for yet."""
        return np.flatnonzero(self._pending)

    def add_clean(self, alone: Flags, orders: pa.ListArray | None) -> None:
        """Read the texts that are one clean array of as many numbers as options, with a positive total.

        `alone` (rows,) says which rows may be read so; `orders` the option at each place, null where it is the survey's.
        """
        for k in np.unique(self._sizes[alone & (self._sizes > 1)]).tolist():
            rows = np.flatnonzero(alone & (self._sizes == k))
            texts = self._texts if len(rows) == len(self._texts) else self._texts.take(pa.array(rows))
            if found := _clean_arrays(texts, k):
                clean, places = found
                self._add_arrays(rows[clean], places, orders)

    def _add_arrays(self, rows: Rows, places: list[npt.NDArray[np.float64]], orders: pa.ListArray | None) -> None:
        total = np.zeros(len(rows))
        for place in places:  # from left to right, as the row path adds
            total += place
        usable = total > 0
        listed = None if orders is None else _permutations(orders.take(pa.array(rows)), len(places))
        if listed is not None:
            usable &= listed[:, 0] >= 0
        if not usable.all():
            rows, total, places = rows[usable], total[usable], [place[usable] for place in places]
            listed = None if listed is None else listed[usable]
        starts = self._offsets[rows]
        for i, place in enumerate(places):
            self._values[starts + (i if listed is None else listed[:, i])] = place / total
        self._pending[rows] = False
        self._reason[rows] = self._code("array")
        off = ~((np.abs(total - 100) <= 3.0) | (np.abs(total - 1) <= 0.03))
        odd, which = np.unique(total[off], return_inverse=True)
        codes = np.array([self._code("array" + total_note(t)) for t in odd.tolist()], dtype=np.int32)
        self._reason[rows[off]] = codes[which]

    def add(self, row: int, parsed: Parsed) -> None:
        """Set down one response that was read by itself."""
        self._status[row] = self._code(parsed.status)
        self._reason[row] = self._code(parsed.reason)
        if parsed.distribution:
            self._values[self._offsets[row] : self._offsets[row + 1]] = parsed.distribution

    def _code(self, text: str) -> int:
        return self._codes.setdefault(text, len(self._codes))

    def columns(self) -> ParsedColumns:
        words = pa.array(list(self._codes), pa.string())
        good = self._status == 0
        kept, sizes = self._values, self._sizes
        if not good.all():
            kept, sizes = kept[np.repeat(good, sizes)], np.where(good, sizes, 0)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        distribution = pa.ListArray.from_arrays(pa.array(offsets), pa.array(kept), mask=pa.array(~good))
        return ParsedColumns(words.take(pa.array(self._status)), distribution, words.take(pa.array(self._reason)))


def _permutations(orders: pa.ListArray, k: int) -> Rows:
    """(rows, k): the option at each place, 0..k-1 where the order is null, -1 where it is no order of k options."""
    listed = np.tile(np.arange(k), (len(orders), 1))
    given = orders.is_valid().to_numpy(zero_copy_only=False)
    fitting = pc.fill_null(pc.equal(pc.list_value_length(orders), k), False).to_numpy(zero_copy_only=False)
    chosen = pc.fill_null(orders.filter(pa.array(fitting)).flatten(), -1)
    listed[fitting] = chosen.to_numpy(zero_copy_only=False).reshape(-1, k)
    wrong = (given & ~fitting) | (np.sort(listed, axis=1) != np.arange(k)).any(axis=1)
    listed[wrong] = -1
    return listed


def _clean_arrays(texts: pa.Array, k: int) -> tuple[Flags, list[npt.NDArray[np.float64]]] | None:
    """Which texts are clean arrays of k numbers, and those numbers as k columns; None when there are none."""
    if k > 100:
        return None
    pattern = rf"^\s*\[\s*{_CLEAN_NUMBER}(?:\s*,\s*{_CLEAN_NUMBER}){{{k - 1}}}\s*\]\s*$"
    clean = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    mask = clean.to_numpy(zero_copy_only=False)
    if not mask.any():
        return None
    table = pa.csv.read_csv(
        pa.BufferReader(_joined_bytes(texts if mask.all() else texts.filter(clean)).translate(_TO_ROWS, _ROW_BREAKING)),
        pa.csv.ReadOptions(column_names=[str(i) for i in range(k)]),
        convert_options=pa.csv.ConvertOptions(column_types={str(i): pa.float64() for i in range(k)}),
    )
    return mask, [column.to_numpy() for column in table.columns]


def _joined_bytes(texts: pa.Array) -> bytes:
    """The texts one after another: the bytes an Arrow array of large strings without nulls already holds."""
    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, np.int64)
    first, last = int(places[texts.offset]), int(places[texts.offset + len(texts)])
    return bytes(data[first:last])

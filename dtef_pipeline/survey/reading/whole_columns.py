"""Columns of responses, of which those that are one clean array are parsed together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dtef_pipeline.survey.reading.distribution import ParsedResponse, describe_total

_CLEAN_NUMBER = r"[0-9]{1,17}(?:\.[0-9]{1,20})?(?:e-?[0-9]{1,2})?"
_TO_ROWS = bytes.maketrans(b"]", b"\n")
_ROW_BREAKING = b"[ \t\r\n"
_MAX_NUMBERS = 100
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
    eligible = eligible & (sizes > 1) & (sizes <= _MAX_NUMBERS)
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


class ParsedColumns(NamedTuple):
    """`ParsedResponse` of many responses, as columns of equal length: text, list of float64 (null unless ok), text."""

    status: pa.Array
    distribution: pa.Array
    reason: pa.Array


class ColumnBuilder:
    """The result under construction: the fractions of all lists in one flat array."""

    def __init__(self, texts: pa.Array, sizes: Rows) -> None:
        self._texts = texts
        self._sizes = sizes
        self._offsets = np.concatenate([[0], np.cumsum(sizes)])
        self._values = np.zeros(self._offsets[-1])
        self._pending = np.ones(len(texts), dtype=bool)
        self._status = np.zeros(len(texts), dtype=np.int32)
        self._reason = np.zeros(len(texts), dtype=np.int32)
        self._codes: dict[str, int] = {"ok": 0}

    def list_pending(self) -> Rows:
        """Return the rows without a result."""
        return np.flatnonzero(self._pending)

    def add_clean(self, is_single: Flags, orders: pa.ListArray | None) -> None:
        """Parse the texts that are one clean array of as many numbers as options, with a positive total.

        `is_single` (rows,): whether a row may be parsed like this. `orders`: the option at each place, null for the survey's order.
        """
        self._status[:] = self._encode_text("ok")
        self._reason[:] = self._encode_text("array")
        groups = clean_arrays(self._texts, self._sizes, is_single)
        self._note_totals([self._add_arrays(arrays, orders) for arrays in groups])

    def _add_arrays(self, arrays: Arrays, orders: pa.ListArray | None) -> tuple[Rows, Floats]:
        """Store the fractions; return the rows whose total is neither that of percentages nor of fractions, and these totals."""
        rows, places = arrays
        total = np.zeros(len(rows))
        for place in places:  # from left to right, as the row path adds
            total += place
        usable = total > 0
        permutations = None if orders is None else _read_permutations(orders.take(pa.array(rows)), len(places))
        if permutations is not None:
            usable &= permutations[:, 0] >= 0
        if not usable.all():
            rows, total, places = rows[usable], total[usable], [place[usable] for place in places]
            permutations = None if permutations is None else permutations[usable]
        starts = self._offsets[rows]
        for i, place in enumerate(places):
            self._values[starts + (i if permutations is None else permutations[:, i])] = place / total
        self._pending[rows] = False
        is_odd = ~((np.abs(total - 100) <= 3.0) | (np.abs(total - 1) <= 0.03))
        return rows[is_odd], total[is_odd]

    def _note_totals(self, odd: list[tuple[Rows, Floats]]) -> None:
        """Add the total to the reason of these rows."""
        if odd:
            rows, totals = (np.concatenate(parts) for parts in zip(*odd, strict=True))
            distinct, index = np.unique(totals, return_inverse=True)
            codes = np.array(
                [self._encode_text("array" + describe_total(total)) for total in distinct.tolist()], dtype=np.int32
            )
            self._reason[rows] = codes[index]

    def add(self, row: int, response: ParsedResponse) -> None:
        """Store a response that was parsed individually."""
        self._status[row] = self._encode_text(response.status)
        self._reason[row] = self._encode_text(response.reason)
        if response.distribution:
            self._values[self._offsets[row] : self._offsets[row + 1]] = response.distribution

    def _encode_text(self, text: str) -> int:
        return self._codes.setdefault(text, len(self._codes))

    def columns(self) -> ParsedColumns:
        good = self._status == 0
        if good.all():
            distribution = pa.ListArray.from_arrays(pa.array(self._offsets, pa.int32()), pa.array(self._values))
        else:
            values, sizes = self._values[np.repeat(good, self._sizes)], np.where(good, self._sizes, 0)
            offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
            distribution = pa.ListArray.from_arrays(offsets, pa.array(values), mask=pa.array(~good))
        return ParsedColumns(self._decode_texts(self._status), distribution, self._decode_texts(self._reason))

    def _decode_texts(self, codes: npt.NDArray[np.int32]) -> pa.Array:
        words = pa.array(list(self._codes), pa.string())
        if len(codes) and (codes == codes[0]).all():
            return pa.repeat(words[codes[0]], len(codes))
        return words.take(pa.array(codes))


def _read_permutations(orders: pa.ListArray, k: int) -> Rows:
    """Return (rows, k): the option at each place, 0..k-1 if the order is null, -1 if it is not an order of k options."""
    permutations = np.tile(np.arange(k), (len(orders), 1))
    has_order = orders.is_valid().to_numpy(zero_copy_only=False)
    fitting = pc.fill_null(pc.equal(pc.list_value_length(orders), k), False).to_numpy(zero_copy_only=False)
    places = pc.fill_null(orders.filter(pa.array(fitting)).flatten(), -1)
    permutations[fitting] = places.to_numpy(zero_copy_only=False).reshape(-1, k)
    wrong = (has_order & ~fitting) | (np.sort(permutations, axis=1) != np.arange(k)).any(axis=1)
    permutations[wrong] = -1
    return permutations

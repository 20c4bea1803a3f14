"""From a model's free text to a distribution over a question's options.

`parse_response` reads one response, `parse_responses` a column of them; both give the same result. The rules, in order:

1. Thinking (`<think>...</think>`) is not part of the answer. Of what remains, the last 10,000 characters are read.
2. What follows the last marker (`DISTRIBUTION:`, `Final answer:`, ...) is read first; the whole text only if that fails.
3. Arrays, values on a line or in a column, and values beside labels, letters or numbers of options are candidates.
   The last candidate that is a distribution over the expected number of options wins.
4. Without one: the last list of another length makes it `wrong_length`; else the last thing in the place of a distribution
   that is none (negative, a range, all zero, not a number) makes it `unparseable`; else an apology makes it `refused`.

Percentages, fractions, counts and ratios are all normalised to sum 1; a total more than three points from 100 % is told in
the reason. Where two readings of the same words differ the response is `unparseable` rather than guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dtef_pipeline.prediction.candidates import Candidate, in_order_sum, near_whole, read_unlabelled
from dtef_pipeline.prediction.labelled import read_any_labels, read_enumerated, read_labelled
from dtef_pipeline.prediction.labels import Labels, labels_of
from dtef_pipeline.prediction.plaintext import answer_text

_MARKER = re.compile(
    r"(?<!\w)(?:(?:final|predicted|estimated)? ?(?:answer|distribution|prediction|estimate|output|result|response)s?|final)"
    r" ?(?:\([^()\n]{0,60}\) ?)?:"
)
_REFUSAL = re.compile(
    r"\b(?:sorry|apologi[sz]e|cannot|cant|can not|unable to|not able to|wont|will not|decline|as an ai|not comfortable"
    r"|not appropriate|inappropriate|not possible to)\b"
)


_CLEAN_NUMBER = r"[0-9]{1,17}(?:\.[0-9]{1,20})?(?:e-?[0-9]{1,2})?"
_TO_ROWS = bytes.maketrans(b"]", b"\n")
_ROW_BREAKING = b"[ \t\r\n"


@dataclass(frozen=True, slots=True)
class Parsed:
    """How a response was read.

    `status` is ok | unparseable | wrong_length | refused; `distribution` holds fractions that sum to 1 in option order, only
    when ok; `reason` says how it was read, or why it was not.
    """

    status: str
    distribution: tuple[float, ...] | None
    reason: str


def parse_response(text: str | None, n_options: int, options: Sequence[str] | None = None) -> Parsed:
    """The distribution over `n_options` that a response states; with `options`, values may stand beside their labels.

    Never raises on any text. Raises ValueError when `options` are not `n_options` many.
    """
    if options is not None and len(options) != n_options:
        raise ValueError(f"n_options is {n_options}, but {len(options)} options were given: {list(options)!r}")
    if n_options < 2:
        return Parsed("unparseable", None, f"a question with {n_options} options has no distribution to predict")
    plain = answer_text(text) if text else ""
    if not plain:
        reason = "empty response" if not text or text.isspace() else "nothing outside the thinking"
        return Parsed("unparseable", None, reason)
    labels = labels_of(tuple(options)) if options is not None else None
    best: Candidate | None = None
    for part in _parts(plain):
        best = _best(_candidates(part, n_options, labels))
        if best and best.status == "ok":
            return _parsed(best)
    if best:
        return Parsed(best.status, None, best.how)
    if _REFUSAL.search(labels.without(plain) if labels else plain):
        return Parsed("refused", None, "an apology or a refusal, and no distribution")
    return Parsed("unparseable", None, "no distribution in the response")


def _parts(plain: str) -> Iterator[str]:
    """What follows the last marker, then the whole."""
    end = 0
    for marker in _MARKER.finditer(plain):
        end = marker.end()
    if end:
        yield plain[end:].lstrip()
    yield plain


def _candidates(text: str, n: int, labels: Labels | None) -> list[Candidate]:
    """Every reading of the text. A label says more than the letter, the number or the place of its row."""
    unlabelled = list(read_unlabelled(text, n))
    if labels is None:
        return [*unlabelled, *read_enumerated(text, n, None), *read_any_labels(text, n)]
    labelled = read_labelled(text, labels)
    named = [(c.start, c.end) for c in labelled if c.status == "ok"]
    weaker = [_in_named_order(c, text, labels) for c in unlabelled] + read_enumerated(text, n, labels)
    return labelled + [c for c in weaker if not _overlaps_last(c, named)]


def _overlaps_last(one: Candidate, spans: Sequence[tuple[int, int]]) -> bool:
    return any(one.start < end and one.end > start for start, end in spans[-2:])


def _in_named_order(found: Candidate, text: str, labels: Labels) -> Candidate:
    """A table's row of values put in the order of its header; values beside options named in another order are not read."""
    if found.status != "ok" or found.how != "list of values":
        return found
    before = text[max(0, found.start - 2000) : found.start]
    if "|" in text[found.start : found.end]:
        lines = before.split("\n")[-3:]
        order = labels.order_in("\n".join(line for line in lines if "|" in line))
        if sorted(order) == list(range(len(found.values))):
            values = tuple(found.values[order.index(i)] for i in range(len(order)))
            return found._replace(values=values, how="table row")
    else:
        line_after = text[found.end : found.end + 2000].partition("\n")[0]
        order = labels.order_in(before.rpartition("\n")[2] + " ; " + line_after)
    if order and order != sorted(order) and len(order) == len(found.values):
        return found._replace(status="unparseable", how="values beside the options named in another order")
    return found


def _best(candidates: list[Candidate]) -> Candidate | None:
    """The last candidate of the best status, a list before a sentence.

    It is unparseable when another reading of the same words says otherwise.
    """
    for status in ("ok", "wrong_length", "unparseable"):
        of_status = [c for c in candidates if c.status == status]
        chosen = [c for c in of_status if not c.prose] or of_status
        if chosen:
            last = max(chosen, key=lambda c: (c.end, c.start))
            rival = next((c for c in of_status if c.start < last.end and c.end > last.start and c.values != last.values), None)
            return last._replace(status="unparseable", how=f"two readings: {last.how}, {rival.how}") if rival else last
    return None


def _parsed(found: Candidate) -> Parsed:
    total = in_order_sum(found.values)
    return Parsed("ok", tuple(v / total for v in found.values), found.how + total_note(total))


def total_note(total: float) -> str:
    """What the reason says of a total that is that of neither percentages nor fractions."""
    return "" if near_whole(total, 3.0) else f"; raw total {total:.6g}"


class ParsedColumns(NamedTuple):
    """`Parsed` of many responses, as columns of equal length: text, list of float64 (null unless ok), text."""

    status: pa.Array
    distribution: pa.Array
    reason: pa.Array


def parse_responses(texts: pa.Array | pa.ChunkedArray | Sequence[str | None], options: pa.Array) -> ParsedColumns:
    """`parse_response` over a column of texts, `options` being the column of option lists beside it.

    Responses that are one clean array (`[a, b, c]` of plain numbers) are read all at once, every other text once however
    often it occurs; the result is that of `parse_response` on each row, to the last bit.
    """
    column = _string_array(texts)
    if len(column) != len(options):
        raise ValueError(f"{len(column)} texts, but {len(options)} lists of options")
    sizes = pc.fill_null(pc.list_value_length(options), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    reading = _Reading(len(column), sizes)
    for k in np.unique(sizes[sizes > 1]):
        rows = np.flatnonzero(sizes == k)
        reading.add_clean(column if len(rows) == len(column) else column.take(pa.array(rows)), rows, int(k))
    rest = pa.array(np.flatnonzero(reading.pending))
    reading.add_read(column.take(rest).to_pylist(), options.take(rest).to_pylist(), rest.to_numpy())
    return reading.columns()


def _string_array(texts: pa.Array | pa.ChunkedArray | Sequence[str | None]) -> pa.Array:
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    array = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.large_string())
    return array.cast(pa.large_string())


class _Reading:
    """The result under construction: fractions in one flat array, at the places where a list of them would stand."""

    def __init__(self, rows: int, sizes: npt.NDArray[np.int64]) -> None:
        self.sizes = sizes
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        self.values = np.zeros(self.offsets[-1])
        self.pending = np.ones(rows, dtype=bool)
        self.status_code = np.zeros(rows, dtype=np.int32)
        self.reason_code = np.zeros(rows, dtype=np.int32)
        self.codes: dict[str, int] = {"ok": 0}

    def code(self, text: str) -> int:
        return self.codes.setdefault(text, len(self.codes))

    def add_clean(self, texts: pa.Array, rows: npt.NDArray[np.int64], k: int) -> None:
        """Read the texts that are one clean array of k numbers with a positive total."""
        clean, places = _clean_arrays(texts, k)
        total = np.zeros(int(clean.sum()))
        for place in places:  # from left to right, as the row path adds
            total = total + place
        positive = total > 0
        rows, total = rows[clean][positive], total[positive]
        starts = self.offsets[rows]
        for i, place in enumerate(places):
            self.values[starts + i] = place[positive] / total
        self.pending[rows] = False
        self.reason_code[rows] = self.code("array")
        off = ~((np.abs(total - 100) <= 3.0) | (np.abs(total - 1) <= 0.03))
        odd, which = np.unique(total[off], return_inverse=True)
        codes = np.array([self.code("array" + total_note(t)) for t in odd.tolist()], dtype=np.int32)
        self.reason_code[rows[off]] = codes[which]

    def add_read(self, texts: list[str | None], options: list[list[str]], rows: npt.NDArray[np.int64]) -> None:
        """Read the texts one by one, equal ones once."""
        known: dict[tuple[str | None, tuple[str, ...]], Parsed] = {}
        for text, labels, row in zip(texts, map(tuple, options), rows.tolist(), strict=True):
            parsed = known.get((text, labels))
            if parsed is None:
                parsed = known[text, labels] = parse_response(text, len(labels), labels)
            self.status_code[row] = self.code(parsed.status)
            self.reason_code[row] = self.code(parsed.reason)
            if parsed.distribution:
                self.values[self.offsets[row] : self.offsets[row + 1]] = parsed.distribution

    def columns(self) -> ParsedColumns:
        words = pa.array(list(self.codes), pa.string())
        good = self.status_code == 0
        kept = self.values[np.repeat(good, self.sizes)]
        offsets = np.concatenate([[0], np.cumsum(np.where(good, self.sizes, 0))]).astype(np.int32)
        distribution = pa.ListArray.from_arrays(pa.array(offsets), pa.array(kept), mask=pa.array(~good))
        return ParsedColumns(words.take(pa.array(self.status_code)), distribution, words.take(pa.array(self.reason_code)))


def _clean_arrays(texts: pa.Array, k: int) -> tuple[npt.NDArray[np.bool_], list[npt.NDArray[np.float64]]]:
    """Which texts are clean arrays of k numbers, and those numbers as k columns."""
    pattern = rf"^\s*\[\s*{_CLEAN_NUMBER}(?:\s*,\s*{_CLEAN_NUMBER}){{{k - 1}}}\s*\]\s*$"
    clean = pc.fill_null(pc.match_substring_regex(texts, pattern), False) if k <= 100 else None
    mask = np.zeros(len(texts), dtype=bool) if clean is None else clean.to_numpy(zero_copy_only=False)
    if not mask.any():
        return mask, []
    table = pa.csv.read_csv(
        pa.BufferReader(_joined_bytes(texts.filter(clean)).translate(_TO_ROWS, _ROW_BREAKING)),
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

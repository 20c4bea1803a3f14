"""Scoring outside the pipeline: JSON lines in, JSON lines out.

In:  `{"response": "...", "expected": [40, 35, 15, 10]}`, with optional `options` (labels, in the order of `expected`), `metric` (default
js) and `scale` (ordinal, the default, or nominal; labels such as don't know have no place on the scale). Out: the same object plus
`status`, `reason`, `predicted` (fractions, null unless ok), `score` (the published policy) and every metric (null unless ok).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.errors import DtefError
from dtef_pipeline.survey.answer_scales.scales import KINDS, detect_scale
from dtef_pipeline.survey.reading.distribution import ParsedResponse
from dtef_pipeline.survey.reading.parsing import parse_response, parse_responses
from dtef_pipeline.survey.scoring.matrices import Places, compute_scale_ranks, has_listed_order
from dtef_pipeline.survey.scoring.metrics import emd_normalized_on_scale, measure
from dtef_pipeline.survey.scoring.policy import apply_policy, check_metric_name
from dtef_pipeline.survey.tables import METRICS
from dtef_pipeline.text.json_values import JsonFault, parse_json
from dtef_pipeline.text.number_words import format_count

_MAX_AT_ONCE = 1000
_TOO_DEEP = "nested too deeply"


class ScoredLine(NamedTuple):
    """A line of output in strict JSON. If `malformed`, the line of input could not be scored and `text` says why."""

    text: str
    malformed: bool


class _Line(NamedTuple):
    """A valid line of input: the object, and the values that scoring needs."""

    item: dict[str, Any]
    response: str | None
    expected: list[float]
    options: list[str] | None
    metric: str
    scale: str


def score_lines(lines: Iterable[str]) -> Iterator[ScoredLine]:
    """Score each line, in order. A malformed line gives `{"line": 3, "error": "..."}`; blank lines are counted, not shown.

    Lines are scored in growing batches: 1, 2, 4, ... and at most 1,000 together.
    """
    for chunk in _read_chunks(lines):
        read = [(place, _read(line)) for place, line in chunk if line.strip()]
        results = _score([line for _, line in read if isinstance(line, _Line)])
        for place, line in read:
            yield _make_error_line(place, line) if isinstance(line, str) else _encode_line(place, line.item, next(results))


def _read_chunks(lines: Iterable[str]) -> Iterator[list[tuple[int, str]]]:
    """Yield lines with their places. Lines read before the input broke off are yielded first."""
    chunk: list[tuple[int, str]] = []
    size = 1
    try:
        for place, line in enumerate(lines, start=1):
            chunk.append((place, line))
            if len(chunk) == size:
                yield chunk
                chunk, size = [], min(2 * size, _MAX_AT_ONCE)
    except Exception:
        yield chunk
        raise
    yield chunk


def _read(line: str) -> _Line | str:
    """Return the parsed line, or its fault."""
    try:
        item = _parse_line_object(line)
        expected = _read_line_expected(item)
        options = _read_line_options(item, len(expected))
        metric = check_metric_name("js" if item.get("metric") is None else item["metric"])
        scale = "ordinal" if item.get("scale") is None else item["scale"]
        if scale not in KINDS:
            raise DtefError(f"scale: got {scale!r}; allowed: {', '.join(KINDS)}")
        return _Line(item, _read_line_response(item), expected, options, metric, scale)
    except DtefError as error:
        return str(error)
    except RecursionError:
        return _TOO_DEEP


def _make_error_line(place: int, error: str) -> ScoredLine:
    return ScoredLine(json.dumps({"line": place, "error": error}), True)


def _encode_line(place: int, item: dict[str, Any], result: dict[str, Any]) -> ScoredLine:
    try:
        return ScoredLine(_ENCODER.encode(item | result), False)
    except RecursionError:
        return _make_error_line(place, _TOO_DEEP)


def _score(lines: list[_Line]) -> Iterator[dict[str, Any]]:
    """Yield the values added to each line: status, reason, predicted, score and every metric."""
    responses = _parse(lines)
    values = _measure(lines, responses)
    scores = np.full(len(lines), np.nan)
    for metric in {line.metric for line in lines}:
        rows = [row for row, line in enumerate(lines) if line.metric == metric]
        scores[rows] = apply_policy([responses[row].status for row in rows], values[metric][rows], metric)
    columns = pa.table({name: pa.array(column, from_pandas=True) for name, column in {"score": scores, **values}.items()})
    for response, row_values in zip(responses, columns.to_pylist(), strict=True):
        yield {"status": response.status, "reason": response.reason, "predicted": response.distribution, **row_values}


def _parse(lines: list[_Line]) -> list[ParsedResponse]:
    """Parse the responses together, except those that no table can hold (lone surrogates)."""
    fits = [_can_fit_table(line) for line in lines]
    table = [line for line, fit in zip(lines, fits, strict=True) if fit]
    read = parse_responses(
        [line.response for line in table],
        pa.array([line.options for line in table], pa.list_(pa.string())),
        sizes=np.array([len(line.expected) for line in table], dtype=np.int64),
    )
    together = map(ParsedResponse, *(column.to_pylist() for column in read))
    return [
        next(together) if fit else parse_response(line.response, len(line.expected), line.options)
        for line, fit in zip(lines, fits, strict=True)
    ]


def _can_fit_table(line: _Line) -> bool:
    texts = [line.response or "", *(line.options or ())]
    try:
        return all(text.isascii() or text.encode() for text in texts)
    except UnicodeEncodeError:
        return False


def _measure(lines: list[_Line], responses: list[ParsedResponse]) -> dict[str, npt.NDArray[np.float64]]:
    """Return every metric (lines,), NaN without a value, computed for each number of options together."""
    values = {name: np.full(len(lines), np.nan) for name in METRICS}
    rows_by_size: dict[int, list[int]] = {}
    for row, (line, response) in enumerate(zip(lines, responses, strict=True)):
        if response.distribution is not None:
            rows_by_size.setdefault(len(line.expected), []).append(row)
    for rows in rows_by_size.values():
        predicted, expected = [responses[row].distribution for row in rows], [lines[row].expected for row in rows]
        for name, metric_values in measure(predicted, expected).items():  # type: ignore[arg-type]  # none of them is None here
            values[name][rows] = metric_values
    for row, (line, response) in enumerate(zip(lines, responses, strict=True)):
        if line.scale == "nominal":
            values["emd_normalized"][row] = np.nan
        elif response.distribution is not None and line.options is not None:
            ranks = _rank_option_labels(tuple(line.options))
            if not has_listed_order(ranks):
                values["emd_normalized"][row] = emd_normalized_on_scale(response.distribution, line.expected, ranks)
    return values


@lru_cache(maxsize=1000)
def _rank_option_labels(options: tuple[str, ...]) -> Places:
    """Return (k,) the place of each label on their scale, -1 for don't know and similar labels."""
    scale = detect_scale(options, "ordinal")
    ranks: Places = compute_scale_ranks(
        pa.array([scale.dont_know]), pa.array([scale.positions], pa.list_(pa.float64())), len(options)
    )[0]
    return ranks


def _parse_line_object(line: str) -> dict[str, Any]:
    try:
        value = parse_json(line)
    except JsonFault as fault:
        raise DtefError(f"not JSON: {fault}") from None
    if not isinstance(value, dict):
        raise DtefError(f"got {type(value).__name__}; allowed: a JSON object with response and expected")
    return value


_ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False)


def _read_line_response(item: dict[str, Any]) -> str | None:
    if "response" not in item:
        raise DtefError("response is missing; allowed: a text, or null for no response")
    response = item["response"]
    if response is not None and not isinstance(response, str):
        raise DtefError(f"response: got {type(response).__name__}; allowed: a text or null")
    return response


def _read_line_expected(item: dict[str, Any]) -> list[float]:
    values: Any = item.get("expected")
    rule = "allowed: a list of 2 or more finite numbers >= 0, not all zero"
    is_numeric = isinstance(values, list) and len(values) > 1 and set(map(type, values)) <= {int, float}
    if is_numeric and min(values) >= 0:
        try:
            numbers = [float(value) for value in values]
        except OverflowError:
            raise DtefError(f"expected: a number is too large; {rule}") from None
        if 0 < sum(numbers) < math.inf:
            return numbers
    raise DtefError(f"expected: got {_format_shown_value(values)}; {rule}")


def _read_line_options(item: dict[str, Any], n: int) -> list[str] | None:
    options = item.get("options")
    if options is None:
        return None
    if not isinstance(options, list) or not set(map(type, options)) <= {str}:
        raise DtefError(f"options: got {_format_shown_value(options)}; allowed: a list of texts")
    if len(options) != n:
        raise DtefError(
            f"{format_count(len(options), 'option')} for {format_count(n, 'expected value')}; allowed: one label per value"
        )
    return options


def _format_shown_value(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."

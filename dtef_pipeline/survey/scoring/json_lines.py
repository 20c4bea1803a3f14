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
import pyarrow as pa

from dtef_pipeline.errors import DtefError
from dtef_pipeline.survey.answer_scales.scales import KINDS, detect_scale
from dtef_pipeline.survey.reading.parsing import parse_response
from dtef_pipeline.survey.scoring.metrics import Places, apply_policy, check_metric_name, compute_scale_ranks, measure_on_scale
from dtef_pipeline.survey.tables import METRICS
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.strict_json import JsonFault, parse_json

_ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False)


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
    """Score each line, in order. A malformed line gives `{"line": 3, "error": "..."}`; blank lines are counted, not shown."""
    for place, line in enumerate(lines, start=1):
        if line.strip():
            try:
                item = _read(line)
                yield ScoredLine(_ENCODER.encode(item.item | _score(item)), False)
            except DtefError as error:
                yield _make_error_line(place, str(error))
            except RecursionError:
                yield _make_error_line(place, "nested too deeply")


def _read(line: str) -> _Line:
    """Return the parsed line. Raises DtefError for a malformed one."""
    item = _parse_line_object(line)
    expected = _read_line_expected(item)
    options = _read_line_options(item, len(expected))
    metric = check_metric_name("js" if item.get("metric") is None else item["metric"])
    scale = "ordinal" if item.get("scale") is None else item["scale"]
    if scale not in KINDS:
        raise DtefError(f"scale: got {scale!r}; allowed: {', '.join(KINDS)}")
    return _Line(item, _read_line_response(item), expected, options, metric, scale)


def _make_error_line(place: int, error: str) -> ScoredLine:
    return ScoredLine(json.dumps({"line": place, "error": error}), True)


def _score(line: _Line) -> dict[str, Any]:
    """Return the values added to a line: status, reason, predicted, score and every metric."""
    size = len(line.expected)
    response = parse_response(line.response, size, line.options)
    values: dict[str, float] = dict.fromkeys(METRICS, math.nan)
    if response.distribution is not None:
        ranks = np.arange(size) if line.options is None else _rank_option_labels(tuple(line.options))
        measured = measure_on_scale(response.distribution, line.expected, ordinal=line.scale == "ordinal", ranks=ranks)
        values = {name: float(value) for name, value in measured.items()}
    values = {"score": float(apply_policy([response.status], [values[line.metric]], line.metric)[0]), **values}
    numbers = {name: None if math.isnan(value) else value for name, value in values.items()}
    return {"status": response.status, "reason": response.reason, "predicted": response.distribution, **numbers}


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

"""Scoring outside the pipeline: JSON lines in, JSON lines out.

In:  `{"response": "...", "expected": [40, 35, 15, 10]}`, with optional `options` (labels, in the order of `expected`), `metric`
(default js) and `scale` (ordinal, the default, or nominal). Out: the same object plus `status`, `reason`, `predicted`
(fractions, null unless ok), `score` (the published policy) and every metric (null unless ok).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from dtef_pipeline.errors import DtefError
from dtef_pipeline.prediction.parsing import parse_response
from dtef_pipeline.scoring.metrics import measure
from dtef_pipeline.scoring.policy import checked_metric, policy_scores
from dtef_pipeline.tables import METRICS

_SCALES = ("ordinal", "nominal")


class ScoredLine(NamedTuple):
    """One line of output: strict JSON. `malformed` when the line of input could not be scored and `text` says why."""

    text: str
    malformed: bool


class _LineError(ValueError):
    """What is wrong with a line."""


def score_lines(lines: Iterable[str]) -> Iterator[ScoredLine]:
    """Each line scored as it comes. A malformed line gives `{"line": 3, "error": "..."}`; blank ones are counted, not shown."""
    for place, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield ScoredLine(json.dumps(_scored(_object(line)), allow_nan=False), False)
        except _LineError as error:
            yield ScoredLine(json.dumps({"line": place, "error": str(error)}), True)
        except RecursionError:
            yield ScoredLine(json.dumps({"line": place, "error": "nested too deeply"}), True)


def _object(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line, parse_constant=_no_constant, parse_float=_finite)
    except _LineError:
        raise
    except (ValueError, RecursionError) as error:
        raise _LineError(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise _LineError(f"got {type(found).__name__}; allowed: a JSON object with response and expected")
    return found


def _no_constant(name: str) -> float:
    raise _LineError(f"not JSON: {name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _LineError(f"the number {text[:40]} is too large")
    return value


def _scored(item: dict[str, Any]) -> dict[str, Any]:
    expected = _expected(item)
    options = _options(item, len(expected))
    metric = _metric(item)
    scale = "ordinal" if item.get("scale") is None else item["scale"]
    if scale not in _SCALES:
        raise _LineError(f"scale: got {scale!r}; allowed: {', '.join(_SCALES)}")
    parsed = parse_response(_response(item), len(expected), options)
    values: dict[str, float | None] = dict.fromkeys(METRICS)
    if parsed.distribution is not None:
        values = {name: float(value) for name, value in measure(parsed.distribution, expected).items()}
    if scale == "nominal":
        values["emd_normalized"] = None
    value = values[metric]
    score = float(policy_scores([parsed.status], [math.nan if value is None else value], metric)[0])
    result = {"status": parsed.status, "reason": parsed.reason, "predicted": parsed.distribution}
    return item | result | {"score": None if math.isnan(score) else score} | values


def _response(item: dict[str, Any]) -> str | None:
    if "response" not in item:
        raise _LineError("no response; allowed: a text, or null when there was none")
    response = item["response"]
    if response is not None and not isinstance(response, str):
        raise _LineError(f"response: got {type(response).__name__}; allowed: a text or null")
    return response


def _expected(item: dict[str, Any]) -> list[float]:
    values = item.get("expected")
    allowed = "allowed: a list of 2 or more finite numbers >= 0, not all zero"
    if not isinstance(values, list) or len(values) < 2:
        raise _LineError(f"expected: got {_shown(values)}; {allowed}")
    if any(isinstance(v, bool) or not isinstance(v, int | float) or v < 0 for v in values):
        raise _LineError(f"expected: got {_shown(values)}; {allowed}")
    try:
        numbers = [float(v) for v in values]
    except OverflowError:
        raise _LineError(f"expected: a number is too large; {allowed}") from None
    if not 0 < sum(numbers) < math.inf:
        raise _LineError(f"expected: got {_shown(values)}; {allowed}")
    return numbers


def _options(item: dict[str, Any], n: int) -> list[str] | None:
    options = item.get("options")
    if options is None:
        return None
    if not isinstance(options, list) or not all(isinstance(o, str) for o in options):
        raise _LineError(f"options: got {_shown(options)}; allowed: a list of texts")
    if len(options) != n:
        raise _LineError(f"{len(options)} options for {n} expected values; allowed: one label a value")
    return options


def _metric(item: dict[str, Any]) -> str:
    try:
        return checked_metric("js" if item.get("metric") is None else item["metric"])
    except DtefError as error:
        raise _LineError(str(error)) from None


def _shown(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."

"""Predictions compared with the segment's answers: the table `scores`, and the scores of JSON lines from outside the pipeline."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import DtefError
from dtef_pipeline.identity import digest
from dtef_pipeline.survey.answer_scales.scales import KINDS, detect_scale
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.reading.parsing import ParsedColumns, parse_response, parse_responses
from dtef_pipeline.survey.scoring.metrics import (
    DistributionPair,
    Floats,
    Places,
    apply_policy,
    build_matrix,
    check_metric_name,
    compute_corrected_errors,
    compute_corrected_rps_on_scale,
    compute_scale_ranks,
    emd_normalized_on_scale,
    has_listed_order,
    measure_on_scale,
    sample_sizes,
)
from dtef_pipeline.survey.tables import CORRECTED, METRICS, SCORES
from dtef_pipeline.text.json_values import JsonFault, parse_json
from dtef_pipeline.text.number_words import format_count, list_first_names

_CALL_STATUSES = ("answered", "error", "missing", "budget")
_ORDERED = ("emd_normalized", "rps_corrected")
"""Columns of `scores` that have a meaning only on ordinal scales."""
_OF_SURVEY = ("attribute", "value", "question_order", "n", "circular")


def score_predictions(predictions: pa.Table, survey: pa.Table, *, metric: str = "js") -> pa.Table:
    """Return one row of schema SCORES per row of `predictions` (schema PREDICTIONS), in the same order.

    `survey` (schema SURVEY_RESPONSES) gives the observed distribution, the options and the scale of each (round, segment, question_id).
    Responses are parsed; failed and missing calls keep their status; a response that a content filter stopped is refused. Metrics and
    corrected errors are null unless the status is ok; `emd_normalized` and `rps_corrected` also on nominal scales and if no mass is on the
    scale (see `metrics.emd_normalized_on_scale`); corrected errors if n < 2 or unknown. `score` is the published policy under `metric`.
    Raises DtefError naming the first offenders for a prediction without a survey row, a duplicate survey key, an unknown call status or an
    observed distribution that does not fit its options; ConfigError for an unknown metric.
    """
    check_metric_name(metric)
    place = _find_prediction_rows(predictions, survey)
    responses = _read(predictions, survey, place)
    values = _compute_metric_values(responses, survey, place.to_numpy())
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        "status": responses.status,
        "reason": responses.reason,
        "predicted": responses.distribution,
        "metric": pa.repeat(metric, len(predictions)),
        "score": _convert_nan_to_null(apply_policy(responses.status, values[metric], metric)),
    }
    columns |= {name: _convert_nan_to_null(values[name]) for name in (*METRICS, *CORRECTED)}
    columns |= {name: survey[name].take(place) for name in _OF_SURVEY}
    columns["truth_id"] = _hash_truths(survey).take(place)
    return pa.table([columns.get(n) if n in columns else predictions[n] for n in SCORES.names], schema=SCORES)


def _convert_nan_to_null(values: Floats) -> pa.Array:
    """Return NaN as null, without copying the values."""
    is_nan = np.isnan(values)
    return pa.array(values, mask=is_nan if is_nan.any() else None)


def _hash_truths(survey: pa.Table) -> pa.Array:
    """Return one hash per survey row, which is equal in another ingest exactly if the truth of its scores is equal."""
    columns = (survey[name].to_pylist() for name in ("options", "observed", "n", "n_effective"))
    # Without an effective n the hash is the one of surveys that could not state it.
    rows = ((*row, effective) if effective else row for *row, effective in zip(*columns, strict=True))
    return pa.array([digest(*row) for row in rows], pa.string())


def _join_pair_keys(table: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(*(table[name] for name in KEYS.pair), "\x1f")


def _find_prediction_rows(predictions: pa.Table, survey: pa.Table) -> pa.Array:
    """Return the survey's row of each prediction."""
    keys = _join_pair_keys(survey).combine_chunks()
    if len(keys) != len(pc.unique(keys)):
        counts = pc.value_counts(keys)
        repeats = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
        raise DtefError(f"duplicate survey rows (round, segment, question_id): {_list_offenders(repeats)}; allowed: one each")
    prediction_keys = _join_pair_keys(predictions)
    places = pc.index_in(prediction_keys, keys)
    if places.null_count:
        missing = pc.unique(prediction_keys.filter(pc.is_null(places)))
        raise DtefError(f"predictions without a survey row: {_list_offenders(missing)}; ingest their round")
    return places.combine_chunks() if isinstance(places, pa.ChunkedArray) else places


def _list_offenders(keys: pa.Array) -> str:
    return list_first_names(["/".join(str(key).split("\x1f")) for key in keys.to_pylist()], 5)


def _read(predictions: pa.Table, survey: pa.Table, place: pa.Array) -> ParsedColumns:
    """Return status, distribution and reason of every prediction, with or without a response to parse."""
    call = predictions["call_status"].combine_chunks()
    is_known = pc.fill_null(pc.is_in(call, pa.array(_CALL_STATUSES)), False)
    if not pc.all(is_known, min_count=0).as_py():
        strange = pc.unique(call.filter(pc.invert(is_known))).to_pylist()
        raise DtefError(f"call_status: got {strange[:5]}; allowed: {', '.join(_CALL_STATUSES)}")
    is_answered = pc.equal(call, "answered")
    is_filtered = pc.fill_null(pc.equal(predictions["finish_reason"].combine_chunks(), "content_filter"), False)
    is_stopped, is_parsable = pc.and_(is_answered, is_filtered), pc.and_not(is_answered, is_filtered)
    texts = pc.if_else(is_parsable, predictions["response"], pa.scalar(None, predictions["response"].type))
    options = pa.DictionaryArray.from_arrays(place, survey["options"].combine_chunks())
    responses = parse_responses(texts, options, predictions["reading"])
    reason = pc.coalesce(predictions["error"].combine_chunks(), pa.repeat("no response, and no error was recorded", len(call)))
    return ParsedColumns(
        pc.if_else(is_parsable, responses.status, pc.if_else(is_stopped, "refused", call)),
        responses.distribution,
        pc.if_else(is_parsable, responses.reason, pc.if_else(is_stopped, "stopped by a content filter", reason)),
    )


def _compute_metric_values(responses: ParsedColumns, survey: pa.Table, place: Places) -> dict[str, Floats]:
    """Return every metric (rows,), NaN without a value, computed for each number of options together."""
    values = {name: np.full(len(place), np.nan) for name in (*METRICS, *CORRECTED)}
    ok = responses.distribution.is_valid().to_numpy(zero_copy_only=False)
    sizes = pc.fill_null(pc.list_value_length(responses.distribution), 0).to_numpy(zero_copy_only=False)
    _check_observed(sizes, ok, survey, place)
    observed, dont_know, positions = (survey[name].combine_chunks() for name in ("observed", "dont_know", "positions"))
    n = sample_sizes(survey)[place]
    for k in np.unique(sizes[ok]).tolist():
        rows = np.flatnonzero(ok & (sizes == k))
        p, q = build_matrix(responses.distribution, k, rows), build_matrix(observed, k, place[rows])
        pair = DistributionPair(p, q)
        measured = pair.metrics() | compute_corrected_errors(pair, n[rows])
        _correct_scale_metrics(measured, p, q, n[rows], compute_scale_ranks(dont_know, positions, k)[place[rows]])
        for name, column in measured.items():
            values[name][rows] = column
    is_ordinal = pc.fill_null(pc.equal(survey["scale"], "ordinal"), False).to_numpy()[place]
    for name in _ORDERED:
        values[name][~is_ordinal] = np.nan
    return values


def _correct_scale_metrics(values: dict[str, Floats], p: Floats, q: Floats, n: Floats, ranks: Places) -> None:
    """Recompute the metrics of ordinal scales for the rows whose options are not all on the scale in their order."""
    for scale in np.unique(ranks[~has_listed_order(ranks)], axis=0):
        rows = (ranks == scale).all(axis=1)
        values["emd_normalized"][rows] = emd_normalized_on_scale(p[rows], q[rows], scale)
        values["rps_corrected"][rows] = compute_corrected_rps_on_scale(p[rows], q[rows], n[rows], scale)


def _check_observed(sizes: npt.NDArray[np.int32], ok: npt.NDArray[np.bool_], survey: pa.Table, place: Places) -> None:
    lengths = pc.fill_null(pc.list_value_length(survey["observed"]), -1).to_numpy()
    wrong = ok & (lengths[place] != sizes)
    if wrong.any():
        keys = pc.unique(_join_pair_keys(survey).take(pa.array(place[wrong])))
        raise DtefError(f"observed distributions and options differ in length: {_list_offenders(keys)}")


_ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False)


class ScoredLine(NamedTuple):
    """A line of output in strict JSON. If `malformed`, the line of input could not be scored and `text` says why."""

    text: str
    malformed: bool


def score_lines(lines: Iterable[str]) -> Iterator[ScoredLine]:
    """Score JSON lines in order. A malformed line gives `{"line": 3, "error": "..."}`; blank lines are counted, not shown.

    In:  `{"response": "...", "expected": [40, 35, 15, 10]}`, with optional `options` (labels, in the order of `expected`), `metric` (default
    js) and `scale` (ordinal, the default, or nominal; labels such as don't know have no place on the scale). Out: the same object plus
    `status`, `reason`, `predicted` (fractions, null unless ok), `score` (the published policy) and every metric (null unless ok).
    """
    for place, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield ScoredLine(_ENCODER.encode(_score_line(line)), False)
            except (DtefError, RecursionError) as error:
                problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)
                yield ScoredLine(json.dumps({"line": place, "error": problem}), True)


def _score_line(line: str) -> dict[str, Any]:
    """Return the object of a line with its scores. Raises DtefError for a malformed line."""
    item = _parse_line_object(line)
    expected = _read_line_expected(item)
    options = _read_line_options(item, len(expected))
    metric = check_metric_name("js" if item.get("metric") is None else item["metric"])
    scale = "ordinal" if item.get("scale") is None else item["scale"]
    if scale not in KINDS:
        raise DtefError(f"scale: got {scale!r}; allowed: {', '.join(KINDS)}")
    response = parse_response(_read_line_response(item), len(expected), options)
    values: dict[str, float] = dict.fromkeys(METRICS, math.nan)
    if response.distribution is not None:
        ranks = np.arange(len(expected)) if options is None else _rank_option_labels(tuple(options))
        measured = measure_on_scale(response.distribution, expected, ordinal=scale == "ordinal", ranks=ranks)
        values = {name: float(value) for name, value in measured.items()}
    values = {"score": float(apply_policy([response.status], [values[metric]], metric)[0]), **values}
    numbers = {name: None if math.isnan(value) else value for name, value in values.items()}
    return {**item, "status": response.status, "reason": response.reason, "predicted": response.distribution, **numbers}


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

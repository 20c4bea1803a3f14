"""Predictions beside what the segment really answered: the table `scores`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import DtefError
from dtef_pipeline.prediction.columns import ParsedColumns
from dtef_pipeline.prediction.parsing import parse_responses
from dtef_pipeline.scoring.corrected import corrected_l2
from dtef_pipeline.scoring.metrics import Floats, emd_normalized_on_scale, measure
from dtef_pipeline.scoring.policy import checked_metric, policy_scores
from dtef_pipeline.tables import CORRECTED, METRICS, SCORES

Places = npt.NDArray[np.int64]
"""The survey's row of each prediction."""
_KEY = ("round", "segment", "question_id")
_CALL_STATUSES = ("answered", "error", "missing", "budget")
_OF_SURVEY = ("attribute", "value", "question_order", "n", "circular")


def score_predictions(predictions: pa.Table, survey: pa.Table, *, metric: str = "js") -> pa.Table:
    """One row of schema SCORES a row of `predictions` (schema PREDICTIONS), in the same order.

    `survey` (schema SURVEY_RESPONSES) gives the observed distribution, the options and the scale of each (round, segment,
    question_id). Answers are parsed; failed and missing calls keep their status; an answer that a content filter stopped is
    refused. Metrics are null unless the status is ok, `emd_normalized` also on nominal scales and where `dont_know` options
    leave nothing on the scale (see `metrics.emd_normalized_on_scale`). `score` is the published policy under `metric`.

    Raises DtefError naming the first offenders for a prediction without a survey row, a survey key twice, an unknown call
    status or an observed distribution that does not fit its options; ConfigError for an unknown metric.
    """
    checked_metric(metric)
    place = _places(predictions, survey)
    parsed = _read(predictions, survey, place)
    values = _metric_values(parsed, survey, place.to_numpy())
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        "status": parsed.status,
        "reason": parsed.reason,
        "predicted": parsed.distribution,
        "metric": pa.repeat(pa.scalar(metric), len(predictions)),
        "score": pa.array(policy_scores(parsed.status, values[metric], metric), from_pandas=True),
    }
    columns |= {name: pa.array(values[name], from_pandas=True) for name in (*METRICS, *CORRECTED)}
    columns |= {name: survey[name].take(place) for name in _OF_SURVEY}
    return pa.table([columns.get(n) if n in columns else predictions[n] for n in SCORES.names], schema=SCORES)


def _keys(table: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(*(table[name] for name in _KEY), "\x1f")


def _places(predictions: pa.Table, survey: pa.Table) -> pa.Array:
    """The survey's row of each prediction."""
    keys = _keys(survey).combine_chunks()
    if len(keys) != len(pc.unique(keys)):
        counts = pc.value_counts(keys)
        twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
        raise DtefError(f"survey rows with one (round, segment, question_id): {_offenders(twice)}; allowed: each once")
    wanted = _keys(predictions)
    places = pc.index_in(wanted, keys)
    if places.null_count:
        lost = pc.unique(wanted.filter(pc.is_null(places)))
        raise DtefError(f"predictions without a survey row: {_offenders(lost)}; ingest the round that they belong to")
    return places.combine_chunks() if isinstance(places, pa.ChunkedArray) else places


def _offenders(keys: pa.Array) -> str:
    shown = ", ".join("/".join(str(key).split("\x1f")) for key in keys[:5].to_pylist())
    return shown if len(keys) <= 5 else f"{shown} and {len(keys) - 5} more"


def _read(predictions: pa.Table, survey: pa.Table, place: pa.Array) -> ParsedColumns:
    """Status, distribution and reason of every prediction, whether or not there is an answer to parse."""
    call = predictions["call_status"].combine_chunks()
    known = pc.fill_null(pc.is_in(call, pa.array(_CALL_STATUSES)), False)
    if not pc.all(known, min_count=0).as_py():
        strange = pc.unique(call.filter(pc.invert(known))).to_pylist()
        raise DtefError(f"call_status: got {strange[:5]}; allowed: {', '.join(_CALL_STATUSES)}")
    answered = pc.equal(call, "answered")
    filtered = pc.and_(answered, pc.fill_null(pc.equal(predictions["finish_reason"].combine_chunks(), "content_filter"), False))
    to_parse = pc.and_not(answered, filtered)
    options = pa.DictionaryArray.from_arrays(place, survey["options"].combine_chunks())
    if pc.all(to_parse, min_count=0).as_py():
        return parse_responses(predictions["response"], options, predictions["reading"])
    asked = predictions.select(["response", "reading"]).filter(to_parse)
    parsed = parse_responses(asked["response"], options.filter(to_parse), asked["reading"])
    mask = to_parse.to_numpy(zero_copy_only=False)
    row = pa.array(np.where(mask, np.cumsum(mask) - 1, 0), mask=~mask)
    why = pc.coalesce(predictions["error"].combine_chunks(), _constant("no response, and no error was recorded", len(call)))
    return ParsedColumns(
        pc.if_else(to_parse, parsed.status.take(row), pc.if_else(filtered, "refused", call)),
        parsed.distribution.take(row),
        pc.if_else(to_parse, parsed.reason.take(row), pc.if_else(filtered, "stopped by a content filter", why)),
    )


def _constant(text: str, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), rows)


def _metric_values(parsed: ParsedColumns, survey: pa.Table, place: Places) -> dict[str, Floats]:
    """Every metric (rows,), NaN where it has no value: the parsed rows of each number of options at once."""
    values = {name: np.full(len(place), np.nan) for name in (*METRICS, *CORRECTED)}
    ok = parsed.distribution.is_valid().to_numpy(zero_copy_only=False)
    sizes = pc.fill_null(pc.list_value_length(parsed.distribution), 0).to_numpy(zero_copy_only=False)
    _check_observed(sizes, ok, survey, place)
    n = pc.cast(survey["n"], pa.float64()).to_numpy()
    for k in np.unique(sizes[ok]).tolist():
        rows = np.flatnonzero(ok & (sizes == k))
        p, q = _matrix(parsed.distribution, k, rows), _matrix(survey["observed"].combine_chunks(), k, place[rows])
        for name, measured in measure(p, q).items():
            values[name][rows] = measured
        values["l2_corrected"][rows] = corrected_l2(p, q, n[place[rows]])
        flags = _dont_know(survey["dont_know"].combine_chunks(), k)[place[rows]]
        values["emd_normalized"][rows] = _on_scale(values["emd_normalized"][rows], p, q, flags)
    ordinal = pc.fill_null(pc.equal(survey["scale"], "ordinal"), False).to_numpy()
    values["emd_normalized"][~ordinal[place]] = np.nan
    return values


def _on_scale(plain: Floats, p: Floats, q: Floats, dont_know: npt.NDArray[np.bool_]) -> Floats:
    """`emd_normalized` anew for the rows that have options off the scale, one set of options at a time."""
    for flags in np.unique(dont_know[dont_know.any(axis=1)], axis=0):
        rows = (dont_know == flags).all(axis=1)
        plain[rows] = emd_normalized_on_scale(p[rows], q[rows], flags)
    return plain


def _matrix(lists: pa.Array, k: int, rows: Places) -> Floats:
    """(rows, k) values of lists that all have k of them."""
    starts = lists.offsets.to_numpy()[rows]
    flat = lists.values.to_numpy(zero_copy_only=False)
    matrix = np.empty((len(rows), k), order="F")  # a column an option, as the metrics work
    for option in range(k):
        matrix[:, option] = flat[starts + option]
    return matrix


def _dont_know(lists: pa.Array, k: int) -> npt.NDArray[np.bool_]:
    """(rows, k) flags; a row without them has no such option."""
    flags = np.zeros((len(lists), k), dtype=bool)
    given = pc.fill_null(pc.equal(pc.list_value_length(lists), k), False).to_numpy(zero_copy_only=False)
    values = pc.fill_null(lists.filter(pa.array(given)).flatten(), False)
    flags[given] = values.to_numpy(zero_copy_only=False).reshape(-1, k)
    return flags


def _check_observed(sizes: npt.NDArray[np.int32], ok: npt.NDArray[np.bool_], survey: pa.Table, place: Places) -> None:
    lengths = pc.fill_null(pc.list_value_length(survey["observed"]), -1).to_numpy()
    wrong = ok & (lengths[place] != sizes)
    if wrong.any():
        keys = pc.unique(_keys(survey).take(pa.array(place[wrong])))
        raise DtefError(f"observed distributions that do not fit their options: {_offenders(keys)}")

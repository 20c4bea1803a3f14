"""Predictions compared with the segment's answers: the table `scores`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import DtefError
from dtef_pipeline.identity import digest
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.reading.parsing import ParsedColumns, parse_responses
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
    sample_sizes,
)
from dtef_pipeline.survey.tables import CORRECTED, METRICS, SCORES
from dtef_pipeline.text.number_words import list_first_names

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


class _Ranks(NamedTuple):
    """The distinct ranks of options on their scales (sets, k), and the set of each survey row."""

    sets: Places
    code: Places


class _Truth:
    """The truth of predictions over the numbers of options `ks`, by row of the survey."""

    def __init__(self, survey: pa.Table, ks: list[int]) -> None:
        self.observed = survey["observed"].combine_chunks()
        self.n = sample_sizes(survey)
        self.nominal = ~pc.fill_null(pc.equal(survey["scale"], "ordinal"), False).to_numpy()
        dont_know, positions = (survey[name].combine_chunks() for name in ("dont_know", "positions"))
        distinct = {k: np.unique(compute_scale_ranks(dont_know, positions, k), axis=0, return_inverse=True) for k in ks}
        self.ranks = {k: _Ranks(sets, code.reshape(-1)) for k, (sets, code) in distinct.items()}


def _compute_metric_values(responses: ParsedColumns, survey: pa.Table, place: Places) -> dict[str, Floats]:
    """Return every metric (rows,), NaN without a value, computed for each number of options together."""
    values = {name: np.full(len(place), np.nan) for name in (*METRICS, *CORRECTED)}
    ok = responses.distribution.is_valid().to_numpy(zero_copy_only=False)
    sizes = pc.fill_null(pc.list_value_length(responses.distribution), 0).to_numpy(zero_copy_only=False)
    _check_observed(sizes, ok, survey, place)
    ks = np.unique(sizes[ok]).tolist()
    truth = _Truth(survey, ks)
    for k in ks:
        rows = np.flatnonzero(ok & (sizes == k))
        for name, column in _measure_predictions(build_matrix(responses.distribution, k, rows), truth, k, place[rows]).items():
            values[name][rows] = column
    for name in _ORDERED:
        values[name][truth.nominal[place]] = np.nan
    return values


def _measure_predictions(predicted: Floats, truth: _Truth, k: int, place: Places) -> dict[str, Floats]:
    observed, n = build_matrix(truth.observed, k, place), truth.n[place]
    pair = DistributionPair(predicted, observed)
    values = pair.metrics() | compute_corrected_errors(pair, n)
    _correct_scale_metrics(values, predicted, observed, n, truth.ranks[k], place)
    return values


def _correct_scale_metrics(values: dict[str, Floats], p: Floats, q: Floats, n: Floats, ranks: _Ranks, place: Places) -> None:
    """Recompute the metrics of ordinal scales for the rows whose options are not all on the scale in their order."""
    for number in np.flatnonzero(~has_listed_order(ranks.sets)):
        rows = (ranks.code == number)[place]
        if rows.any():
            values["emd_normalized"][rows] = emd_normalized_on_scale(p[rows], q[rows], ranks.sets[number])
            values["rps_corrected"][rows] = compute_corrected_rps_on_scale(p[rows], q[rows], n[rows], ranks.sets[number])


def _check_observed(sizes: npt.NDArray[np.int32], ok: npt.NDArray[np.bool_], survey: pa.Table, place: Places) -> None:
    lengths = pc.fill_null(pc.list_value_length(survey["observed"]), -1).to_numpy()
    wrong = ok & (lengths[place] != sizes)
    if wrong.any():
        keys = pc.unique(_join_pair_keys(survey).take(pa.array(place[wrong])))
        raise DtefError(f"observed distributions and options differ in length: {_list_offenders(keys)}")

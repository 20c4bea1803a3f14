"""Conversion of a survey into the tables of the pipeline: observed distributions with their references, quarantine and findings, among
them design effects (Kish 1965) and pairs without n.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.identity import normalize_text
from dtef_pipeline.survey.answer_scales.batteries import assign_batteries
from dtef_pipeline.survey.answer_scales.scales import detect_scale
from dtef_pipeline.survey.attributes import canonical, is_non_answer, load_vocabulary
from dtef_pipeline.survey.completeness import SUM_TOLERANCE, Percentages, is_fractions, sum_tolerance
from dtef_pipeline.survey.identity import make_question_key, make_round_order
from dtef_pipeline.survey.model import Answer, Finding, Question, Segment, Survey, Unreadable
from dtef_pipeline.survey.question_draw import draw_order, draw_segment_order
from dtef_pipeline.survey.tables import SURVEY_FINDINGS, SURVEY_QUARANTINE, SURVEY_RESPONSES
from dtef_pipeline.text.number_words import format_count

_WITH_A_COMMA = re.compile(r"[+-]?\d+,\d+\s?%?")

REASONS = {
    "segment-too-small": "The whole segment has fewer respondents than the minimum.",
    "no-data": "No percentage was published for the question, or for the whole segment.",
    "n-unknown": "Neither the question nor the segment states a number of respondents.",
    "n-below-minimum": "Fewer respondents than the minimum answered this question.",
    "wrong-length": "There are more or fewer percentages than options.",
    "decimal-comma": "A number has a decimal comma, such as 40,0.",
    "not-a-number": "A cell is not a percentage.",
    "blank-cells": "Some options have a percentage, others have none.",
    "nan": "A percentage is NaN or infinite.",
    "negative": "A percentage is below zero.",
    "all-zero": "All percentages are zero.",
    "sum-not-100": "The sum of the percentages differs from 100 by more than 1 and by more than rounding explains.",
}


@dataclass(frozen=True)
class Fault:
    """A reason of `REASONS`, with the actual and allowed values."""

    reason: str
    detail: str


def check_whole_segment(n: int | None, has_data: bool, min_n: int) -> Fault | None:
    """Return the fault of a whole segment of known or unknown size, or None."""
    if n is not None and n < min_n:
        return Fault("segment-too-small", f"{format_count(n, 'respondent')}; at least {min_n} are needed")
    if not has_data:
        return Fault("no-data", "no percentage for any question; at least one question is needed")
    return None


def pair_fault(
    percentages: Sequence[float | Unreadable | None], options: int, n: int | None, min_n: int, tolerance: float = SUM_TOLERANCE
) -> Fault | None:
    """Return the first fault of a distribution, checking the number of respondents before the percentages, or None.

    An unknown n (None) is not a fault. `tolerance`: how far from 100 the percentages may sum, from `sum_tolerance`.
    """
    if n is not None and n < min_n:
        return Fault("n-below-minimum", f"{format_count(n, 'respondent')}; at least {min_n} are needed")
    if len(percentages) != options:
        return Fault(
            "wrong-length",
            f"{format_count(len(percentages), 'percentage')}; one for each of {format_count(options, 'option')} is needed",
        )
    if unreadable := [p for p in percentages if isinstance(p, Unreadable)]:
        cells = ", ".join(repr(str(p)) for p in unreadable)
        if all(_WITH_A_COMMA.fullmatch(p) for p in unreadable):
            return Fault("decimal-comma", f"cells {cells}; write a decimal point, as in 34.2")
        return Fault("not-a-number", f"cells {cells}; write numbers such as 34.2% or 34.2")
    return _check_numbers([p for p in percentages if not isinstance(p, Unreadable)], tolerance)


def _check_numbers(percentages: Sequence[float | None], tolerance: float) -> Fault | None:
    numbers = [p for p in percentages if p is not None]
    if not numbers:
        return Fault("no-data", "all cells are blank; a percentage for each option is needed")
    if len(numbers) < len(percentages):
        return Fault(
            "blank-cells",
            f"{len(percentages) - len(numbers)} of {format_count(len(percentages), 'cell')} are blank; every option needs "
            "a percentage",
        )
    if not all(map(math.isfinite, numbers)):
        return Fault("nan", f"percentages {numbers}; finite numbers are needed")
    if min(numbers) < 0:
        return Fault("negative", f"a percentage of {min(numbers):g}; 0 to 100 are allowed")
    total = sum(numbers)
    if total == 0:
        return Fault("all-zero", f"all percentages are 0; they must sum to 100 ± {tolerance:g}")
    if abs(total - 100) > tolerance + 1e-9:
        fractions = "; they are fractions: multiply them by 100" if is_fractions(percentages) else ""
        return Fault("sum-not-100", f"the percentages sum to {total:.6g}; 100 ± {tolerance:g} is allowed{fractions}")
    return None


MIN_N = 10
"""Smallest number of respondents behind a distribution that is used."""

CIRCULAR_SHARE = 0.8
"""A question defines an attribute when the segments of it give their own values at least this share on average."""

SHUFFLE_SEED = 20_240_917
"""Default seed of the `shuffled` reference, which replaces a segment by a random other one."""

_N_UNKNOWN = (
    "The file does not state how many people answered: these pairs are scored and ranked, but have no ceilings, skill, corrected errors "
    "or tests of gaps, and their intervals ignore the choice of respondents"
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ObservedRound:
    """The three tables of one round, in the schemas of `dtef_pipeline.survey.tables`."""

    responses: pa.Table
    quarantine: pa.Table
    findings: pa.Table


@dataclass(frozen=True)
class _Usable:
    """A valid answer: its places in the survey's segments and questions, and its number of respondents, if known."""

    segment: int
    question: int
    answer: Answer
    n: int | None
    n_effective: float | None


def observe(survey: Survey, *, min_n: int = MIN_N, seed: int = SHUFFLE_SEED, design_effect: float = 1.0) -> ObservedRound:
    """Check every pair, and give each usable one its reference distributions.

    `population` is the n-weighted mean over all usable segments that answered the question, or None for a single segment, whose answer it
    would be; `leave_one_out_marginal` is the same over the other usable segments of the attribute. Both are unweighted if the n of a
    segment is unknown. `shuffled` is the answer of a random other segment, drawn with `seed`. If the survey states no n_effective, it is n /
    `design_effect` (Kish 1965; 1 or more); null for a design effect of 1. Rows are in the survey's order of segments, then questions.
    """
    usable, quarantine = _split_usable(survey, min_n, design_effect)
    responses = _build_responses(survey, usable, seed)
    findings = [*survey.findings, *_check_own_observations(survey, responses)]
    return ObservedRound(
        responses,
        pa.Table.from_pylist(quarantine, schema=SURVEY_QUARANTINE),
        pa.Table.from_pylist([_make_survey_finding_row(survey.round, f) for f in findings], schema=SURVEY_FINDINGS),
    )


def _split_usable(survey: Survey, min_n: int, design_effect: float) -> tuple[list[_Usable], list[dict[str, Any]]]:
    """Return the usable pairs and the quarantine rows, both in survey order."""
    places = {q.id: i for i, q in enumerate(survey.questions)}
    by_segment: dict[str, list[Answer]] = defaultdict(list)
    shares: dict[str, list[Percentages]] = defaultdict(list)
    for answer in survey.answers:
        by_segment[answer.segment].append(answer)
        shares[answer.question_id].append(answer.percentages)
    tolerance = {question_id: sum_tolerance(percentages) for question_id, percentages in shares.items()}
    usable: list[_Usable] = []
    quarantine: list[dict[str, Any]] = []
    for index, segment in enumerate(survey.segments):
        answers = sorted(by_segment[segment.key], key=lambda a: places[a.question_id])
        has_data = any(p is not None for a in answers for p in a.percentages)
        size = _find_segment_size(segment, answers)
        if not has_data and not size:
            continue  # no respondent of this kind took part
        if fault := check_whole_segment(size, has_data, min_n):
            quarantine.append(_make_quarantine_row(survey, segment.key, fault.reason, fault.detail, size, None))
            continue
        for a in answers:
            question = places[a.question_id]
            n = a.n if a.n is not None else size
            options = len(survey.questions[question].options)
            fault = pair_fault(a.percentages, options, n, min_n, tolerance[a.question_id])
            if n is None and survey.requires_n:
                needed = f"at least {min_n} are needed"
                fault = Fault("n-unknown", f"the number of respondents is unknown, also for the segment; {needed}")
            if fault:
                quarantine.append(_make_quarantine_row(survey, segment.key, fault.reason, fault.detail, n, a))
            else:
                usable.append(_Usable(index, question, a, n, _find_effective_n(segment, a, n, design_effect)))
    return usable, quarantine


def _find_effective_n(segment: Segment, answer: Answer, n: int | None, design_effect: float) -> float | None:
    """Return the effective respondents to the question: as stated, else by the design effect of the segment, else by that of the round,
    unless 1.
    """
    if answer.n_effective is not None:
        return answer.n_effective
    if segment.n_effective is not None:
        return segment.n_effective * n / segment.n if n is not None and segment.n else segment.n_effective
    return n / design_effect if n is not None and design_effect != 1 else None


def _find_segment_size(segment: Segment, answers: Sequence[Answer]) -> int | None:
    """Return the stated respondents of a segment, or more if one of its questions has more.

    None if neither the segment nor, for some answered question, the answer states n. The n of one question does not apply to another, which
    may have been asked of a part of the segment.
    """
    if segment.n is None and any(a.n is None and any(p is not None for p in a.percentages) for a in answers):
        return None
    return max((n for n in (segment.n, *(a.n for a in answers)) if n is not None), default=None)


def _make_quarantine_row(
    survey: Survey, key: str, reason: str, detail: str, n: int | None, answer: Answer | None
) -> dict[str, Any]:
    return {
        "round": survey.round,
        "segment": key,
        "question_id": answer.question_id if answer else None,
        "reason": reason,
        "detail": detail,
        "n": n,
        "percentages": [None if isinstance(p, Unreadable) else p for p in answer.percentages] if answer else None,
        "file": answer.file if answer else survey.path,
        "line": answer.line if answer else None,
    }


def _compute_references(
    question: Question, pairs: Sequence[_Usable], segments: Sequence[Segment], rng: np.random.Generator
) -> dict[str, Sequence[Any]]:
    """Return the observed and reference columns of one question, with a value for each answering segment."""
    answering = [segments[p.segment] for p in pairs]
    percentages = np.array([p.answer.percentages for p in pairs], dtype=np.float64).reshape(len(pairs), len(question.options))
    observed = percentages / percentages.sum(axis=1, keepdims=True)
    has_n = np.array([p.n is not None for p in pairs], dtype=bool)
    n = np.array([p.n or 0 for p in pairs], dtype=np.int64)
    attributes = np.array([s.attribute for s in answering], dtype=object)
    same_attribute = (attributes[:, None] == attributes[None, :]) & ~np.eye(len(pairs), dtype=bool)
    all_known = ~(same_attribute & ~has_n).any(axis=1)
    weights = np.where(all_known[:, None], same_attribute * n, same_attribute)
    others = zip(_normalise_rows(weights @ observed), weights.any(axis=1), strict=True)
    others_n = zip((same_attribute @ n).tolist(), all_known, strict=True)
    population = _normalise_rows((n if has_n.all() else np.ones_like(n)) @ observed) if len(pairs) > 1 else None
    stand_ins = [None if len(pairs) < 2 else place for place in _draw_other_rows(len(pairs), rng).tolist()]
    return {
        "observed": observed,
        "population": [population] * len(pairs),
        "population_n": [int(n.sum()) if has_n.all() else None] * len(pairs),
        "leave_one_out_marginal": [mean if has_others else None for mean, has_others in others],
        "leave_one_out_n": [total if is_known else None for total, is_known in others_n],
        "shuffled": [None if place is None else observed[place] for place in stand_ins],
        "shuffled_segment": [None if place is None else answering[place].key for place in stand_ins],
        "circular": _is_circular(question, answering, observed),
    }


def _normalise_rows(weights: Floats) -> Floats:
    """Return rows that sum to 1; rows of zeros are unchanged."""
    total = weights.sum(axis=-1, keepdims=True)
    normalised: Floats = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return normalised


def _draw_other_rows(count: int, rng: np.random.Generator) -> Ints:
    """Return for each row another row, all equally likely, or the row itself if it is the only one."""
    if count < 2:
        return np.zeros(count, dtype=np.int64)
    draws = rng.integers(count - 1, size=count)
    return draws + (draws >= np.arange(count))


def _is_circular(question: Question, answering: Sequence[Segment], observed: Floats) -> npt.NDArray[np.bool_]:
    """Return (segments,) whether the question defines the segment's attribute.

    Its options name the value of every answering segment of the attribute, and these give their own values at least `CIRCULAR_SHARE` on
    average. A single segment proves that only for a known attribute: a yes/no question must not match.
    """
    circular = np.zeros(len(answering), dtype=bool)
    parts: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for row, s in enumerate(answering):
        for attribute, value in s.parts:
            parts[attribute].append((row, value))
    for attribute, members in parts.items():
        options = {_strip_full_stop(canonical(attribute, option)): i for i, option in enumerate(question.options)}
        pairs = [(row, options.get(_strip_full_stop(canonical(attribute, value)))) for row, value in members]
        distinct = len({value for _, value in members})
        shares = [observed[row, i] for row, i in pairs if i is not None]
        if len(shares) == len(pairs) and np.mean(shares) >= CIRCULAR_SHARE and (distinct > 1 or attribute in load_vocabulary()):
            circular[[row for row, _ in pairs]] = True
    return circular


def _strip_full_stop(text: str) -> str:
    """Return the text by which an option is recognised as a segment's value, without punctuation at its end."""
    return normalize_text(text).rstrip(".,;: ")


def _build_responses(survey: Survey, usable: Sequence[_Usable], seed: int) -> pa.Table:
    rows_by_question: list[list[int]] = [[] for _ in survey.questions]
    for row, pair in enumerate(usable):
        rows_by_question[pair.question].append(row)
    references: dict[str, list[Any]] = defaultdict(lambda: [None] * len(usable))
    for index, (question, rows) in enumerate(zip(survey.questions, rows_by_question, strict=True)):
        pairs, rng = [usable[row] for row in rows], np.random.default_rng([seed, index])
        for name, values in _compute_references(question, pairs, survey.segments, rng).items():
            column = references[name]
            for row, value in zip(rows, values, strict=True):
                column[row] = value
    circular = [np.array([references["circular"][row] for row in rows], dtype=bool) for rows in rows_by_question]
    sizes = [s.n or 0 for s in survey.segments]
    for p in usable:  # a segment is never smaller than the n of one of its questions
        sizes[p.segment] = max(sizes[p.segment], p.n or 0)
    columns = {
        **_build_segment_columns(survey, [p.segment for p in usable]),
        **_build_question_columns(survey, circular, [p.question for p in usable]),
        **references,
        "n": [p.n for p in usable],
        "n_source": [None if p.n is None else "segment" if p.answer.n is None else "question" for p in usable],
        "n_effective": [p.n_effective for p in usable],
        "segment_n": [sizes[p.segment] or None for p in usable],
    }
    names = ("battery", "question_id", "attribute", "segment")
    frame = pd.DataFrame({name: pd.Series(columns[name], dtype=str) for name in names})
    put_off = np.array(columns["circular"], dtype=bool) | np.array(columns["non_answer"], dtype=bool)
    columns["segment_order"] = draw_segment_order(survey.round, frame.assign(put_off=put_off))
    arrays = [c if isinstance(c := columns[f.name], pa.Array) else pa.array(c, type=f.type) for f in SURVEY_RESPONSES]
    return pa.Table.from_arrays(arrays, schema=SURVEY_RESPONSES)


def _build_segment_columns(survey: Survey, rows: Sequence[int]) -> dict[str, Any]:
    segments = [survey.segments[i] for i in rows]
    return {
        "round": [survey.round] * len(rows),
        "segment": [s.key for s in segments],
        "attribute": [s.attribute for s in segments],
        "value": [s.value for s in segments],
        "non_answer": [is_non_answer(s.key) for s in segments],
    }


def _build_question_columns(survey: Survey, circular: Sequence[npt.NDArray[np.bool_]], rows: Sequence[int]) -> dict[str, Any]:
    """Return the columns that are the same for all segments, computed once per question and repeated over the rows."""
    questions, named, duplicates = survey.questions, assign_batteries(survey.questions), _find_duplicates(survey.questions)
    scales = [detect_scale(q.options, q.scale, roles=q.roles, positions=q.positions) for q in questions]
    per_question: dict[str, list[Any]] = {
        "question_id": [q.id for q in questions],
        "question_order": list(range(len(questions))),
        "question_text": [q.text for q in questions],
        "options": [list(q.options) for q in questions],
        "scale": [s.kind for s in scales],
        "scale_reason": [s.reason for s in scales],
        "dont_know": [list(s.dont_know) for s in scales],
        "positions": [s.positions for s in scales],
        "duplicate_of": duplicates,
        "battery": named,
        "draw_order": draw_order(survey.round, named, duplicates, circular),
    }
    indices = pa.array(rows, type=pa.int64())
    return {name: pa.array(c, type=SURVEY_RESPONSES.field(name).type).take(indices) for name, c in per_question.items()}


def _find_duplicates(questions: Sequence[Question]) -> list[str | None]:
    """Return for each question the id of the round's first one with the same text and options, or None."""
    first: dict[tuple[str, ...], str] = {}
    originals: list[str | None] = []
    for q in questions:
        key = make_question_key(q.text, q.options)
        originals.append(first.get(key))
        first.setdefault(key, q.id)
    return originals


def _check_own_observations(survey: Survey, responses: pa.Table) -> Iterator[Finding]:
    texts: Mapping[str, str] = {q.id: q.text for q in survey.questions}
    circular = sorted(set(responses.filter(responses["circular"])["question_id"].to_pylist()))
    duplicates = sorted(q.id for q, d in zip(survey.questions, _find_duplicates(survey.questions), strict=True) if d)
    if circular:
        message = "These questions define segments; boards and contexts of those segments leave them out."
        yield Finding("info", "circular-question", message, tuple(texts[i] for i in circular))
    if duplicates:
        message = "Repeats a question of the round with the same text and options."
        yield Finding("info", "duplicate-question", message, tuple(texts[i] for i in duplicates))
    if unknown := responses["n"].null_count:
        yield Finding("warning", "n-unknown", _N_UNKNOWN, (f"{unknown:,} of {format_count(len(responses), 'pair')}",))
    if silent := sorted(set(responses.filter(responses["non_answer"])["segment"].to_pylist())):
        message = "These segments are people who did not answer; boards show them only with --non-answers."
        yield Finding("warning", "non-answer-segment", message, tuple(silent))
    if responses.num_rows == 0:
        yield Finding("error", "nothing-usable", "All pairs are in quarantine (see its reasons).")


def _make_survey_finding_row(round_id: str, finding: Finding) -> dict[str, Any]:
    return {
        "round": round_id,
        "level": finding.level,
        "code": finding.code,
        "message": finding.message,
        "items": list(finding.items),
    }


_CODE = "design-effect"
_WITHOUT_N = "these pairs have no ceiling, skill, worth, corrected error or expected gap, and their intervals ignore the choice of respondents"


def report_design_effect(design_effect: float) -> tuple[Finding, ...]:
    """Return the finding of a round whose effective respondents are n / `design_effect`, or none if it is 1."""
    message = "A design effect is given; ceilings, corrected errors and intervals use n / design effect respondents."
    return (Finding("info", _CODE, message, (f"{design_effect:g}",)),) if design_effect != 1 else ()


def describe_n(connection: duckdb.DuckDBPyConnection, rounds: Collection[str] = ()) -> list[str]:
    """Return lines on the n of the `rounds` (empty: all): given design effects, and rounds with an unknown n; empty if there are none."""
    if not has_table(connection, "survey_findings"):
        return []
    rows = connection.execute(
        "SELECT code, round, items[1] FROM survey_findings WHERE code IN (?, 'n-unknown')", [_CODE]
    ).fetchall()
    rows = sorted((row for row in rows if not rounds or row[1] in rounds), key=lambda row: make_round_order(row[1]))
    by_effect: dict[str, list[str]] = {}
    for code, round_id, effect in rows:
        if code == _CODE:
            by_effect.setdefault(effect, []).append(round_id)
    effects = "; ".join(f"{effect} for {', '.join(names)}" for effect, names in by_effect.items())
    unknown = ", ".join(f"{round_id} ({pairs})" for code, round_id, pairs in rows if code != _CODE)
    lines = []
    if effects:
        lines.append(f"design effect given at ingest: {effects}; ceilings, corrected errors and intervals use n divided by it")
    if unknown:
        lines.append(f"n is unknown in {unknown}: {_WITHOUT_N}")
    return lines

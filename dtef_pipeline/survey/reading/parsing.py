"""Conversion of a model's free text to a distribution over a question's options.

`parse_response` reads one response, `parse_responses` a column of them, with the same result. A `Reading` is the requested form: one
distribution (`distribution`), the answers of single people (`individuals`), or the answer to one of several questions
(`several_questions`), and the order of the options. The result is always in the survey's order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from dtef_pipeline.survey.reading.distribution import (
    NO_DISTRIBUTION,
    ParsedResponse,
    explain_empty,
    is_refusal,
    make_unparseable,
    read_distribution,
)
from dtef_pipeline.survey.reading.individuals import read_individuals
from dtef_pipeline.survey.reading.several_questions import split_by_question
from dtef_pipeline.text.labels import Labels, build_labels
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.plain import extract_answer_text


class Reading(NamedTuple):
    """How to read the answer to a prompt: a row of `tables.READING`. By default: one distribution in the survey's order."""

    task: str | None = None
    order: tuple[int, ...] | None = None
    place: int | None = None
    individuals: int | None = None
    size: int | None = None
    marked: bool | None = None

    @classmethod
    def parse_reading(cls, row: Mapping[str, Any] | None) -> Reading:
        if row is None:
            return AS_IN_THE_SURVEY
        order = row["order"]
        return cls(**{**row, "order": None if order is None else tuple(order)})


AS_IN_THE_SURVEY = Reading()


def parse_response(
    text: str | None, n_options: int, options: Sequence[str] | None = None, reading: Reading = AS_IN_THE_SURVEY
) -> ParsedResponse:
    """Return the distribution over `n_options` in a response. With `options`, values may have labels.

    `options` and the result are in the survey's order, regardless of the order in the prompt. Never raises on any text. Raises ValueError
    if the number of `options` is not `n_options`.
    """
    if options is not None and len(options) != n_options:
        raise ValueError(f"n_options is {n_options}, but got {format_count(len(options), 'option')}: {list(options)!r}")
    if n_options < 2:
        return make_unparseable(f"a question with {format_count(n_options, 'option')} has no distribution to predict")
    order = reading.order
    if order is None:
        return _read_as_listed(text, n_options, options, reading)
    if sorted(order) != list(range(n_options)):
        return ParsedResponse("missing", None, f"the prompt lists options {list(order)}, but the survey has {n_options}")
    labels = None if options is None else [options[option] for option in order]
    response = _read_as_listed(text, n_options, labels, reading)
    if response.distribution is None:
        return response
    shares = dict(zip(order, response.distribution, strict=True))
    return ParsedResponse(response.status, tuple(shares[option] for option in range(n_options)), response.reason)


def _read_as_listed(text: str | None, n: int, options: Sequence[str] | None, reading: Reading) -> ParsedResponse:
    labels = build_labels(tuple(options)) if options is not None else None
    has_marker = bool(reading.marked)
    if reading.task == "individuals":
        # Without labels, only letters are understood.
        return read_individuals(text, labels or build_labels(("",) * n), reading.individuals, has_marker=has_marker)
    if reading.place is None:
        return read_distribution(text, n, labels, has_marker=has_marker)
    return _read_own_part(text or "", n, labels, reading)


def _read_own_part(text: str, n: int, labels: Labels | None, reading: Reading) -> ParsedResponse:
    """Return the answer to one question of a batch, from its own part of the response only."""
    size, number = reading.size or 0, (reading.place or 0) + 1
    parts = split_by_question(text, size, has_marker=bool(reading.marked))
    if not parts:
        return _explain_missing_parts(text, labels, bool(reading.marked))
    if 0 in parts:
        return make_unparseable("the questions are not numbered from 1")
    own_parts = list(dict.fromkeys(part for part in parts.get(number, ()) if part.strip()))
    if not own_parts:
        return ParsedResponse("missing", None, f"no answer to question {number} of {size or 'the batch'}")
    read = [read_distribution(part, n, labels) for part in own_parts]
    answers = [response for response in read if response.reason != NO_DISTRIBUTION] or read[:1]
    if any((answer.status, answer.distribution) != (answers[0].status, answers[0].distribution) for answer in answers):
        return make_unparseable(f"two answers to question {number}")
    return answers[0]


def _explain_missing_parts(text: str, labels: Labels | None, has_marker: bool) -> ParsedResponse:
    plain = extract_answer_text(text)
    if not plain:
        return make_unparseable(explain_empty(text))
    if is_refusal(plain, labels, has_marker=has_marker):
        return ParsedResponse("refused", None, "an apology or a refusal without a distribution")
    return make_unparseable(
        "no answers by question after the reasoning" if has_marker else "no answers by question in the response"
    )


class ParsedColumns(NamedTuple):
    """`ParsedResponse` of many responses, as columns of equal length: text, list of float64 (null unless ok), text."""

    status: pa.Array
    distribution: pa.Array
    reason: pa.Array


def parse_responses(
    texts: pa.Array | pa.ChunkedArray | Sequence[str | None],
    options: pa.Array,
    reading: pa.StructArray | pa.ChunkedArray | None = None,
) -> ParsedColumns:
    """Return `parse_response` for a column of texts, with their lists of `options` and readings (schema `tables.READING`).

    `options` may be a dictionary array, as many rows have the same ones. Each distinct text is parsed once. Raises ValueError if the columns
    differ in length.
    """
    if len(texts) != len(options):
        raise ValueError(f"{format_count(len(texts), 'text')}, but {format_count(len(options), 'list')} of options")
    has_codes = isinstance(options, pa.DictionaryArray)
    lists = (options.dictionary if has_codes else options).to_pylist()
    codes = options.indices.to_pylist() if has_codes else range(len(options))
    column = texts if isinstance(texts, Sequence) else texts.to_pylist()
    layouts = [None] * len(column) if reading is None else reading.to_pylist()
    responses: dict[tuple[object, ...], ParsedResponse] = {}
    keys = [(text, code, Reading.parse_reading(layout)) for text, code, layout in zip(column, codes, layouts, strict=True)]
    for key in keys:
        if key not in responses:
            text, code, how = key
            responses[key] = parse_response(text, len(lists[code] or ()), lists[code], how)
    rows = [responses[key] for key in keys]
    return ParsedColumns(
        pa.array([row.status for row in rows], pa.string()),
        pa.array([row.distribution for row in rows], pa.list_(pa.float64())),
        pa.array([row.reason for row in rows], pa.string()),
    )

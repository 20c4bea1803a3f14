"""Conversion of a model's free text to a distribution over a question's options.

`parse_response` reads one response, `parse_responses` a column of them, with the same result. A `Reading` is the requested form: one
distribution (`distribution`), the answers of single people (`read_individuals`), or the answer to one of several questions
(`split_by_question`), and the order of the options. The result is always in the survey's order.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from dtef_pipeline.survey.reading.candidates import COMMA_NUMBER, PERCENT
from dtef_pipeline.survey.reading.distribution import (
    NO_DISTRIBUTION,
    ONE_ARRAY,
    ParsedResponse,
    explain_empty,
    is_refusal,
    iterate_regions,
    make_unparseable,
    read_distribution,
)
from dtef_pipeline.text.json_values import (
    LOOK_BACK_IN_JSON,
    Pairs,
    decode_json,
    decode_value_at,
    extract_answer,
    find_objects,
    format_json_value,
    strip_fence,
)
from dtef_pipeline.text.labels import Labels, build_labels
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.plain import LOOK_BACK_FAR, extract_answer_text, strip_thinking

_PERSON = r"(?:person|individual|respondent|participant|people|p|r)"
_PEOPLE_FOLLOW = re.compile(
    r"(?m)(?:^[^\w\n\[{]{0,8}|[.!?)] )(?:(?:my |the )?(?:final )?(?:answer|response)s?|final|individuals) ?(?:\([^()\n]{0,60}\) ?)?: ?"
)
_LIST = re.compile(r"\[([^\[\]]*)\]")
_NUMBERED = re.compile(
    rf"(?:[-•·] )?(?:{_PERSON} ?(?:no\.? ?|#)?[0-9]{{1,4}}(?: ?\([^()\n]{{0,80}}\))?|#?[0-9]{{1,4}}) ?[:.)=–-]+ ?"
    rf"|{_PERSON} ?#?[0-9]{{1,4}} |[-•·] "
)
_LETTERED = re.compile(r"\(?(?:option |answer )?([a-z]{1,2})(?:[).:]+|(?= ?[-–=(]|\Z))[ )=–:-]*(.*)", re.DOTALL)
_PERSON_KEY = re.compile(rf"\s*(?:{_PERSON}\s*)?#?[0-9]{{1,4}}\s*", re.IGNORECASE)
_ANSWER_KEYS = ("answer", "response", "choice", "option", "letter")
_MAX_ENTRIES = 1001
"""Entries looked at: one more than twice the most people that can be asked."""
_PROSE_LINES = 100
"""Lines looked at beyond those of twice as many people as were asked."""
_SHARE = re.compile(rf"(?:^|[ :=]){COMMA_NUMBER}{PERCENT}[ )}}]*\Z")
_LISTS = 20
"""Lists looked at, from the end."""


def read_individuals(text: str | None, labels: Labels, size: int | None, *, has_marker: bool = False) -> ParsedResponse:
    """Return how many individuals chose each option, as a distribution in the order in which the options are listed.

    Accepted are a JSON array of option letters, `{"answers": [...]}`, letters on a line (`a, c, b`) or one per line (`1. a`, `Person 1: a`),
    and labels of options instead of letters. The text after the last `ANSWERS:` is read first. An entry that is not an option makes the
    response `unparseable`: an answer is never guessed or left out. From half to twice the requested number of people are counted, with their
    number in the reason; fewer or more make it `wrong_length`.

    `size`: the requested number of people, or None for any. Never raises on any text.
    """
    outside = strip_thinking(text) if text else ""
    response = extract_answer_text(
        extract_answer(_extract_people_answers(outside), "answers", has_marker=has_marker), LOOK_BACK_FAR
    )
    if not response:
        return make_unparseable(explain_empty(text))
    regions = iterate_regions(response, _PEOPLE_FOLLOW, has_marker=has_marker, is_answer=ONE_ARRAY.fullmatch)
    entries = next(filter(None, (_split_entries(part, labels, size) for part in regions)), [])
    if _name_options(entries, labels):
        return _count_entries(entries, labels, size)
    if entries and all(map(_SHARE.search, entries)):
        return make_unparseable("percentages instead of answers of individuals")
    if is_refusal(response, labels, has_marker=has_marker):
        return ParsedResponse("refused", None, "an apology or a refusal without answers of individuals")
    if entries:
        return make_unparseable(f"individuals: {entries[0][:60]!r} is not an option")
    return make_unparseable("no answers after the reasoning" if has_marker else "no answers of individuals in the response")


def _extract_people_answers(text: str) -> str:
    """Return a response that is one JSON value reduced to people's answers: `[{"person": 1, "answer": "a"}]`, `{"Person 1": "a"}`."""
    value = decode_json(strip_fence(text[-LOOK_BACK_IN_JSON:]))
    people = value.named("answers")[-1:] if isinstance(value, Pairs) else []
    answers = _list_answers_of_people(people[0] if people else value)
    return text if answers is None else f"ANSWERS: {format_json_value(answers)}"


def _list_answers_of_people(value: Any) -> list[Any] | None:
    if isinstance(value, Pairs) and value and all(_PERSON_KEY.fullmatch(key[:40]) for key, _ in value):
        return [inner for _, inner in value]
    if isinstance(value, list) and value and all(isinstance(entry, Pairs) for entry in value):
        answer_lists = [[inner for key, inner in entry if key.strip().casefold() in _ANSWER_KEYS] for entry in value]
        return [answers[0] for answers in answer_lists] if all(len(answers) == 1 for answers in answer_lists) else None
    return None


def _split_entries(part: str, labels: Labels, size: int | None) -> list[str]:
    """Return the answer of each person as text: of the last list in brackets that names an option, else of the lines."""
    lists = [_split(inside, labels) for inside in _LIST.findall(part)[-_LISTS:]]
    naming = [entries for entries in lists if _name_options(entries, labels)]
    if len(naming) > 1 and size is not None and len(naming[-1]) != size:
        return [f"{format_count(len(naming), 'list')}, the last of {len(naming[-1])} people"]
    if naming:
        return naming[-1]
    if "[" in part and not lists:
        return [part[part.rindex("[") :]]  # a list without its end
    by_line = _split_entries_by_line(part, labels, _MAX_ENTRIES if size is None else 2 * size + _PROSE_LINES)
    return lists[-1] if lists and not _name_options(by_line, labels) else by_line


def _name_options(entries: Sequence[str], labels: Labels) -> bool:
    return any(find_option(entry, labels) is not None for entry in entries)


def _split_entries_by_line(part: str, labels: Labels, n_lines: int) -> list[str]:
    """Return the entries of the last `n_lines` lines, without prose before the first and after the last entry."""
    lines = [line.strip() for line in part.split("\n")[-n_lines:]]
    line_entries = {line: _split(line, labels) for line in dict.fromkeys(lines)}
    line_entries = {line: [] if _is_prose(line, entries, labels) else entries for line, entries in line_entries.items()}
    by_line = [line_entries[line] for line in lines]
    entry_places = [place for place, entries in enumerate(by_line) if entries]
    if not entry_places:
        return []
    first, last = entry_places[0], entry_places[-1]
    return [entry for place in range(first, last + 1) for entry in by_line[place] or [lines[place]]]


def _is_prose(line: str, entries: Sequence[str], labels: Labels) -> bool:
    if _NUMBERED.match(line) or _name_options(entries, labels):
        return False
    return line in ("", "json") or line.endswith((":", "!")) or sum(len(word) > 2 for word in line.split()) > 3


def _split(line: str, labels: Labels) -> list[str]:
    """Return the entries of a line or a list. A text that is an option as a whole (`No, never`) is not split."""
    if find_option(line, labels) is not None:
        return [line]
    separator = next((s for s in (";", ",", "|", "\n") if s in line), None)
    if separator is None:
        words = line.split(" ")[:_MAX_ENTRIES]
        return words if all(find_option(word, labels) is not None for word in words) else [line]
    entries = [item.strip() for item in line.strip(" \n,;|").split(separator)][:_MAX_ENTRIES]
    return _join_split_labels(entries, labels) if separator == "," and any("," in name for name in labels.names) else entries


def _join_split_labels(items: Sequence[str], labels: Labels) -> list[str]:
    """Return the items rejoined if a label contains a comma. Quotes are already removed, so only the labels show this."""
    n_parts = max(name.count(",") for name in labels.names) + 1
    entries: list[str] = []
    place = 0
    while place < len(items):
        texts = (", ".join(items[place:stop]) for stop in range(min(place + n_parts, len(items)), place, -1))
        entry = next((text for text in texts if find_option(text, labels) is not None), items[place])
        entries.append(entry)
        place += entry.count(", ") + 1
    return entries


@lru_cache(maxsize=4096)
def find_option(entry: str, labels: Labels) -> int | None:
    """Return the option that an entry names by label, letter or both, with or without a person's number before it.

    None if it names none, or if label and letter disagree.
    """
    named = _find_named_option(entry, labels)
    match = _NUMBERED.match(entry) if named is None else None
    return _find_named_option(entry[match.end() :], labels) if match else named


def _find_named_option(entry: str, labels: Labels) -> int | None:
    entry = entry.strip(" .,;")
    by_label, by_letter = labels.match_exactly(entry), _read_letter(entry, labels)
    if by_label is None:
        return by_letter
    return by_label if by_letter in (None, by_label) else None


def _read_letter(entry: str, labels: Labels) -> int | None:
    match = _LETTERED.fullmatch(entry)
    if match is None:
        return None
    place = 0
    for letter in match[1]:
        place = 26 * place + ord(letter) - ord("a") + 1
    label = match[2].strip().rstrip(")")
    if place > len(labels.names) or (label and labels.match_exactly(label) != place - 1):
        return None
    return place - 1


def _count_entries(entries: Sequence[str], labels: Labels, size: int | None) -> ParsedResponse:
    options = [find_option(entry, labels) for entry in entries]
    if None in options:
        strange = entries[options.index(None)]
        return make_unparseable(f"individuals: {strange[:60]!r} is not an option")
    people = len(options)
    if size is not None and not size <= 2 * people <= 4 * size:
        return ParsedResponse("wrong_length", None, f"{people} of {format_count(size, 'individual')}")
    shares = tuple(options.count(option) / people for option in range(len(labels.names)))
    return ParsedResponse(
        "ok",
        shares,
        f"{people} of {format_count(size, 'individual')}" if size not in (None, people) else format_count(people, "individual"),
    )


Parts = dict[int, list[str]]
"""The texts that answer each question, by its number: Q1 is 1."""

_ANSWERS_FOLLOW = re.compile(
    r"(?im)(?:^[^\w\n\[{]{0,8}|[.!?)] )(?:(?:my |the )?(?:final |predicted |estimated ){0,2}distributions|"
    r"(?:my |the )?final (?:answer|distribution|prediction|estimate)s?|answers)[*_ ]{0,4}:"
)
_QUESTION_NUMBER = re.compile(r"\s*(?:(?:q|question)[\s_#-]*)?([0-9]{1,2})\s*[:.]?\s*", re.IGNORECASE)
_HEADER = re.compile(
    r"(?im)(?<!\w)(?:q|question)[ _#]?([0-9]{1,2})(?!\w)[\"'*_` )\]]{0,4}(?:\([^()\n]{0,80}\)[*_ ]{0,4})?[:=]"
    r"|^[^\w\n]{0,8}(?:q|question)[ _#]?([0-9]{1,2})(?!\w)[\"'*_` )\]]{0,4}(?:[.)–—-]|$)"
)
_NUMBERED_ARRAY = re.compile(r"(?m)^[^\w\n\[]{0,6}([0-9]{1,2})[.):] ?[*_]{0,2} ?(?=\[)")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_ARRAY_OF_ARRAYS = re.compile(r"\[\s{0,9}\[")
_HEADERS = 60
"""Headers looked at, from the end of the text."""
_NAMING_KEYS = ("question", "id", "question_id")


def split_by_question(text: str, size: int, *, has_marker: bool = False) -> Parts:
    """Return the texts that answer each of `size` questions, by number from 1; empty if the response has no answers by question.

    Accepted are a JSON object with the keys Q1, Q2, ... (in any order; also `Question 1` and `1`; each value an array, an object or a text),
    lines that begin with `Q1:` or `Question 1`, and exactly as many arrays as there are questions, in one array. The text after the last
    `DISTRIBUTIONS:` is read first. A question without its own part has no answer, and never another's.
    A question with several texts was answered more than once. Number 0 means that the response does not count from 1.
    """
    outside = strip_thinking(text)[-LOOK_BACK_FAR:]
    for region in iterate_regions(outside, _ANSWERS_FOLLOW, has_marker=has_marker, is_answer=_is_json):
        parts = (
            _split_objects(region)
            or _split_lines(region, _HEADER)
            or _split_lines(region, _NUMBERED_ARRAY)
            or _split_arrays(region, size)
        )
        if parts:
            return parts
    return {}


def _is_json(text: str) -> bool:
    return decode_json(strip_fence(text)) is not None


def _split_objects(text: str) -> Parts:
    parts: Parts = {}
    for entry in find_objects(text):
        for number, value in _list_answers(entry.pairs):
            try:
                part = "" if value is None else format_json_value(value)
            except RecursionError:
                part = "nested too deeply"
            parts.setdefault(number, []).append(part)
    return parts


def _list_answers(pairs: Pairs) -> list[tuple[int, Any]]:
    """Return question numbers and answers of an object: by its keys, the keys of its objects, or its key `question`."""
    if answers := _list_numbered_keys(pairs):
        return answers
    named = [value for key, value in pairs if key.strip().casefold() in _NAMING_KEYS]
    number = _parse_question_number(str(named[0])[:40]) if len(named) == 1 else None
    if number is not None:
        members = [pair for pair in pairs if pair[0].strip().casefold() not in _NAMING_KEYS]
        return [(number, members[0][1] if len(members) == 1 else Pairs(members))]
    return [answer for _, inner in pairs if isinstance(inner, Pairs) for answer in _list_numbered_keys(inner)]


def _list_numbered_keys(pairs: Pairs) -> list[tuple[int, Any]]:
    answers = [(_parse_question_number(key), value) for key, value in pairs if not _is_number(value)]
    return [(number, value) for number, value in answers if number is not None]


def _parse_question_number(key: str) -> int | None:
    match = _QUESTION_NUMBER.fullmatch(key) if len(key) < 40 else None
    return int(match[1]) if match else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)  # `{"1": 40, "2": 60}` numbers options


def _split_lines(text: str, header: re.Pattern[str]) -> Parts:
    """Return the text after each header, up to the next one or to the first blank line."""
    headers = list(deque(header.finditer(text), maxlen=_HEADERS))
    parts: Parts = {}
    for place, match in enumerate(headers):
        stop = headers[place + 1].start() if place + 1 < len(headers) else len(text)
        part = _BLANK_LINE.split(text[match.end() : stop].strip(), 1)[0]
        parts.setdefault(int(match[1] or match[2]), []).append(part)
    return parts


def _split_arrays(text: str, size: int) -> Parts:
    """Return the arrays of numbers in one array if they are as many as questions and there is no other."""
    opening = _ARRAY_OF_ARRAYS.search(text)
    outer = decode_value_at(text, opening.start()) if opening else None
    if outer is None or not isinstance(outer.value, list) or _ARRAY_OF_ARRAYS.search(text, outer.end):
        return {}
    arrays = outer.value
    if len(arrays) != size or not all(isinstance(inner, list) and all(map(_is_number, inner)) for inner in arrays):
        return {}
    return {place: [format_json_value(inner)] for place, inner in enumerate(arrays, start=1)}


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

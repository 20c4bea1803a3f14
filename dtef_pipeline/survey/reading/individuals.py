"""The answers of single people in the text of a response, counted into a distribution.

Accepted are a JSON array of option letters, `{"answers": [...]}`, letters on a line (`a, c, b`) or one per line (`1. a`, `Person 1: a`),
and labels of options instead of letters. The text after the last `ANSWERS:` is read first. An entry that is not an option makes the
response `unparseable`: an answer is never guessed or left out. From half to twice the requested number of people are counted, with their
number in the reason; fewer or more make it `wrong_length`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from dtef_pipeline.survey.reading.candidates import COMMA_NUMBER, PERCENT
from dtef_pipeline.survey.reading.distribution import ONE_ARRAY, ParsedResponse, explain_empty, is_refusal, make_unparseable
from dtef_pipeline.text.json_values import LOOK_BACK_IN_JSON, Pairs, decode_json, extract_answer, format_json_value, strip_fence
from dtef_pipeline.text.labels import Labels
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

    `size`: the requested number of people, or None for any. Never raises on any text.
    """
    outside = strip_thinking(text) if text else ""
    response = extract_answer_text(
        extract_answer(_extract_people_answers(outside), "answers", has_marker=has_marker), LOOK_BACK_FAR
    )
    if not response:
        return make_unparseable(explain_empty(text))
    entries = next(
        filter(None, (_split_entries(part, labels, size) for part in _iterate_answer_parts(response, has_marker))), []
    )
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


def _iterate_answer_parts(response: str, has_marker: bool) -> Iterator[str]:
    """Yield the text after the last marker, then the whole text if the answer needs no marker, or is only a list."""
    end = 0
    for marker in _PEOPLE_FOLLOW.finditer(response):
        end = marker.end()
    if end:
        yield response[end:]
    if not has_marker or (not end and ONE_ARRAY.fullmatch(response)):
        yield response


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

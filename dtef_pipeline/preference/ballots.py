"""What a reviewer hands in, read strictly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from dtef_pipeline.errors import BallotError
from dtef_pipeline.preference.votes import CHOICES, LONGEST_JUSTIFICATION, MOST_CONFIDENT, Choice
from dtef_pipeline.text.quantity_words import format_count
from dtef_pipeline.text.well_formed import replace_surrogates

BALLOT_FIELDS = ("pair_id", "reviewer_id", "choice", "confidence", "justification")
LONGEST_ID = 200
"""Characters of an id of a pair or reviewer."""
_ECHOED = 60
_MOST_UNKNOWN = 20
_ID_IN_WORDS = f"a text of 1 to {format_count(LONGEST_ID, 'printable character')}"


@dataclass(frozen=True, slots=True)
class Ballot:
    """A vote before it is stored: nobody has said yet which response was A, or when it came."""

    pair_id: str
    reviewer_id: str
    choice: Choice
    confidence: int
    """1 to 5: higher is more certain."""
    justification: str = ""


def read_ballot(values: object) -> Ballot:
    """The ballot of parsed JSON: an object with `BALLOT_FIELDS` and nothing else, of which the justification alone may be left out.

    Raises BallotError: for all fields at fault, what arrived and what is allowed.
    """
    if not isinstance(values, Mapping):
        _refuse("a vote", values, f"an object with {', '.join(BALLOT_FIELDS)}")
    if faults := list(_find_faults(values)):
        raise BallotError("; ".join(f"{field}: {message}" for field, message in faults), faults)
    pair_id, reviewer_id, choice, confidence = (values[name] for name in BALLOT_FIELDS[:-1])
    return Ballot(pair_id, reviewer_id, choice, confidence, replace_surrogates(values.get("justification") or ""))


def _find_faults(values: Mapping[object, object]) -> Iterator[tuple[str, str]]:
    """(field, what is wrong there), the fields of a ballot first."""
    for field, (holds, choices) in _HOLDS_AND_ALLOWED.items():
        if field not in values and field != "justification":
            yield field, f"is missing; allowed: {choices}"
        elif not holds(values.get(field)):
            yield field, f"got {_format_value(values[field])}; allowed: {choices}"
    for name in sorted(str(key) for key in values if key not in BALLOT_FIELDS)[:_MOST_UNKNOWN]:
        yield name[:_ECHOED], f"unknown field; allowed: {', '.join(BALLOT_FIELDS)}"


def read_id(field: str, value: object) -> str:
    """An id: a text in one line, as it was given. Raises BallotError for anything else."""
    if not is_id(value):
        _refuse(field, value, _ID_IN_WORDS)
    return str(value)


def is_id(value: object, longest: int = LONGEST_ID) -> bool:
    """Whether it can name a reviewer or a pair: printable characters, not only blanks."""
    return isinstance(value, str) and 1 <= len(value) <= longest and value.isprintable() and bool(value.strip())


def _is_confidence(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_CONFIDENT


def _is_justification(value: object) -> bool:
    return value is None or (isinstance(value, str) and len(value) <= LONGEST_JUSTIFICATION)


_HOLDS_AND_ALLOWED: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "pair_id": (is_id, _ID_IN_WORDS),
    "reviewer_id": (is_id, _ID_IN_WORDS),
    "choice": (lambda value: isinstance(value, str) and value in CHOICES, ", ".join(CHOICES)),
    "confidence": (_is_confidence, f"a whole number from 1 to {MOST_CONFIDENT}"),
    "justification": (_is_justification, f"a text of at most {format_count(LONGEST_JUSTIFICATION, 'character')}, or none"),
}
"""By field, whether a value can be its own, and which can."""


def _refuse(field: str, value: object, choices: str) -> NoReturn:
    message = f"got {_format_value(value)}; allowed: {choices}"
    raise BallotError(f"{field}: {message}", [(field, message)] if field in BALLOT_FIELDS else ())


def _format_value(value: object) -> str:
    # A text is cut before it is spelled: it may be long.
    if not isinstance(value, str):
        # As JSON spells them: null, true.
        return json.dumps(value)[: _ECHOED + 4] if value is None or isinstance(value, int | float) else _describe_kind(value)
    text = repr(value[: _ECHOED + 1])[: _ECHOED + 4]
    return text if len(value) <= _ECHOED else f"{text}..."


def _describe_kind(value: object) -> str:
    return "a mapping" if isinstance(value, Mapping) else "a list" if isinstance(value, list) else type(value).__name__

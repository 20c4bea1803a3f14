"""What a reviewer hands in: read strictly, and what becomes of it said as HTTP has it (201 taken, 409 repeated, 422 faulty)."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import NoReturn

from dtef_pipeline.errors import BallotError
from dtef_pipeline.preference.votes import CHOICES, LONGEST_JUSTIFICATION, MOST_CONFIDENT, Choice
from dtef_pipeline.text.counted import counted
from dtef_pipeline.text.well_formed import well_formed

VOTE_TAKEN, VOTE_REPEATED, VOTE_FAULTY = 201, 409, 422
"""The status of a vote: it is stored; the reviewer has voted on the pair before, and the first vote stays; it cannot be read."""
BALLOT_FIELDS = ("pair_id", "reviewer_id", "choice", "confidence", "justification")
LONGEST_ID = 200
"""Characters of an id of a pair or reviewer."""
_ECHOED = 60


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

    Raises BallotError: which field, what arrived, what is allowed.
    """
    if not isinstance(values, Mapping):
        _refuse("a vote", values, f"an object with {', '.join(BALLOT_FIELDS)}")
    if unknown := [str(name) for name in values if name not in BALLOT_FIELDS]:
        raise BallotError(f"unknown field {_echo(', '.join(sorted(unknown)))}; allowed: {', '.join(BALLOT_FIELDS)}")
    if missing := [name for name in BALLOT_FIELDS[:-1] if name not in values]:
        raise BallotError(f"{missing[0]} is missing; needed: {', '.join(BALLOT_FIELDS[:-1])}")
    choice, confidence, said = values["choice"], values["confidence"], values.get("justification")
    if not isinstance(choice, str) or choice not in CHOICES:
        _refuse("choice", choice, ", ".join(CHOICES))
    if not isinstance(confidence, int) or isinstance(confidence, bool) or not 1 <= confidence <= MOST_CONFIDENT:
        _refuse("confidence", confidence, f"a whole number from 1 to {MOST_CONFIDENT}")
    if said is not None and (not isinstance(said, str) or len(said) > LONGEST_JUSTIFICATION):
        _refuse("justification", said, f"a text of at most {counted(LONGEST_JUSTIFICATION, 'character')}, or none")
    return Ballot(
        read_id("pair_id", values["pair_id"]),
        read_id("reviewer_id", values["reviewer_id"]),
        choice,  # type: ignore[arg-type]
        confidence,
        well_formed(said or ""),
    )


def read_id(field: str, value: object) -> str:
    """An id: a text in one line, as it was given. Raises BallotError for anything else."""
    if not is_id(value):
        _refuse(field, value, f"a text of 1 to {counted(LONGEST_ID, 'printable character')}")
    return str(value)


def is_id(value: object, longest: int = LONGEST_ID) -> bool:
    """Whether it can name a reviewer or a pair: printable characters, not blanks alone."""
    return isinstance(value, str) and 1 <= len(value) <= longest and value.isprintable() and bool(value.strip())


def ballot_status(values: object, voted: Container[tuple[str, str]]) -> int:
    """What becomes of a vote on a pair that is there. `voted`: (pair id, reviewer id) of the votes so far."""
    try:
        ballot = read_ballot(values)
    except BallotError:
        return VOTE_FAULTY
    return VOTE_REPEATED if (ballot.pair_id, ballot.reviewer_id) in voted else VOTE_TAKEN


def _refuse(field: str, arrived: object, allowed: str) -> NoReturn:
    raise BallotError(f"{field}: got {_echo(arrived)}; allowed: {allowed}")


def _echo(value: object) -> str:
    # A text is cut before it is spelled: it may be long.
    if not isinstance(value, str):
        return "null" if value is None else repr(value)[: _ECHOED + 4] if isinstance(value, int | float) else _kind_of(value)
    said = repr(value[: _ECHOED + 1])[: _ECHOED + 4]
    return said if len(value) <= _ECHOED else f"{said}..."


def _kind_of(value: object) -> str:
    return "a mapping" if isinstance(value, Mapping) else "a list" if isinstance(value, list) else type(value).__name__

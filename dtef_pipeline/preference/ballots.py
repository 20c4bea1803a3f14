"""A reviewer's vote, parsed strictly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, WithJsonSchema

from dtef_pipeline.documents import Part, format_path, format_value, reasons
from dtef_pipeline.errors import BallotError
from dtef_pipeline.preference.votes import LONGEST_JUSTIFICATION, MOST_CONFIDENT, Choice
from dtef_pipeline.text.quantity_words import format_count
from dtef_pipeline.text.well_formed import replace_surrogates

LONGEST_ID = 200
"""Longest id of a pair or reviewer, in characters."""
ID_IN_WORDS = f"a text of 1 to {format_count(LONGEST_ID, 'printable character')}, not only blanks"


def is_id(value: object, longest: int = LONGEST_ID) -> bool:
    """Return whether it can identify a reviewer or a pair: printable characters, not only blanks."""
    return isinstance(value, str) and 1 <= len(value) <= longest and value.isprintable() and bool(value.strip())


def _require_id(value: Any) -> Any:
    if not is_id(value):
        raise ValueError(f"got {format_value(value)}; allowed: {ID_IN_WORDS}")
    return value


def _replace_surrogates(value: Any) -> Any:
    return replace_surrogates(value) if isinstance(value, str) else value


Id = Annotated[
    str,
    BeforeValidator(_require_id),
    # Printability is described in words, since patterns cannot express it.
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": LONGEST_ID, "pattern": r"\S"}),
]
Confidence = Annotated[int, Field(ge=1, le=MOST_CONFIDENT)]


@dataclass(frozen=True, slots=True)
class Ballot:
    """A vote before storage, without the side shown as A and the time."""

    pair_id: str
    reviewer_id: str
    choice: Choice
    confidence: int
    """1 to 5: higher is more certain."""
    justification: str = ""


class SentBallot(Part):
    """A vote as submitted by a reviewer."""

    pair_id: Id
    """The id served with the pair: printable characters, not only blanks."""
    reviewer_id: Id
    """The voter's id; with a reviewer's token, the token's name: printable characters, not only blanks."""
    choice: Choice
    """Which response is better."""
    confidence: Confidence
    """Higher is more certain."""
    justification: Annotated[str, Field(max_length=LONGEST_JUSTIFICATION), BeforeValidator(_replace_surrogates)] | None = None
    """The reviewer's reasons. Omitted or null: none."""

    def to_ballot(self) -> Ballot:
        return Ballot(self.pair_id, self.reviewer_id, self.choice, self.confidence, self.justification or "")


def read_ballot(values: object) -> Ballot:
    """Return the ballot of parsed JSON. Raises BallotError with found and allowed values of all faulty fields."""
    try:
        return SentBallot.model_validate(values).to_ballot()
    except ValidationError as error:
        faults = [(format_path(reason.place) or "body", reason.message) for reason in reasons(error, SentBallot)]
        raise BallotError("; ".join(f"{field}: {message}" for field, message in faults), faults) from None

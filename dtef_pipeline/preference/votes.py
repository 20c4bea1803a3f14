"""Votes and their subjects: responses of players, pairs of them, and which one a reviewer prefers."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, ValidationError, WithJsonSchema

from dtef_pipeline.documents import Part, format_path, format_value, reasons
from dtef_pipeline.errors import BallotError
from dtef_pipeline.identity import digest
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.well_formed import replace_surrogates

Choice = Literal["A", "B", "tie"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
Side = Literal["left", "right"]
PreferredSide = Literal["left", "right", "tie"]
ReviewerKind = Literal["person", "judge"]
REVIEWER_KINDS: tuple[ReviewerKind, ...] = get_args(ReviewerKind)
MAX_CONFIDENT = 5
LONGEST_JUSTIFICATION = 2_000
"""Maximum length in characters."""


@dataclass(frozen=True, slots=True)
class PairedResponse:
    """A player's response to an item, for use in pairs. Reviewers see `prompt` and the scrubbed `text`."""

    response_id: str
    """Hash of family, item, player, draw, snapshot and text."""
    family: str
    item_id: str
    """Equal for responses to the same item, with the partition first: `mmlu/anatomy/17`."""
    player: str
    """The evaluated player: a model variant, or a persona played by one."""
    draw: int
    snapshot: str
    prompt: str
    text: str
    names: tuple[str, ...]
    """Names that would reveal the author: of the model, its maker, its id at the provider, the persona."""
    request_keys: tuple[str, ...] = ()
    """Keys of its stored responses; empty if it came from elsewhere."""


@dataclass(frozen=True, slots=True)
class VotePair:
    """Two responses to one item. The pair's id and the project's salt decide which is shown as A."""

    pair_id: str
    """The pair's public id. In a store it depends on the project's salt, so that the responses do not reveal it."""
    family: str
    item_id: str
    draw: int
    left: str
    """A response id, the lower of the two; independent of which is shown as A."""
    right: str


@dataclass(frozen=True, slots=True)
class Vote:
    """One reviewer's vote on one pair."""

    pair_id: str
    reviewer_id: str
    choice: Choice
    """`A`: the response that was shown as A is better."""
    confidence: int | None
    """1 to 5: higher is more certain; None if unknown, as in votes of other tools."""
    justification: str
    voted_at: datetime | None
    """Time when the server received it; None if unknown, as in votes of other tools."""
    reviewer_kind: ReviewerKind = "person"
    shown_as_a: Side = "left"
    """The response shown as A for this vote, so that it stays correct in a store with another salt."""

    @property
    def preferred_side(self) -> PreferredSide:
        """The side with the better response."""
        return find_preferred_side(self.choice, self.shown_as_a)


@dataclass(frozen=True, slots=True)
class PlayersVote:
    """A vote for fits, by players instead of A and B."""

    family: str
    item_id: str
    left: str
    """A player."""
    right: str
    preferred_side: PreferredSide
    """The side with the better response."""
    reviewer_id: str
    reviewer_kind: str
    confidence: int | None
    """1 to 5: higher is more certain; None if unknown."""
    leak_risk: bool
    """Whether a name was removed from one of the texts, which may still reveal the author."""
    left_length: int
    """Characters of the text, here and below."""
    right_length: int
    justification: str = ""
    """For a judge, its verdicts in both orders (`pair_verdicts.parse_order_verdicts`)."""


def find_preferred_side(choice: Choice, shown_as_a: Side) -> PreferredSide:
    """Return the side of a pair whose response a vote prefers."""
    if choice == "tie":
        return "tie"
    if choice == "A":
        return shown_as_a
    return "right" if shown_as_a == "left" else "left"


def make_paired_response(
    family: str,
    item_id: str,
    player: str,
    text: str,
    *,
    prompt: str,
    draw: int = 0,
    snapshot: str = "",
    names: tuple[str, ...] = (),
    request_keys: tuple[str, ...] = (),
) -> PairedResponse:
    """Return a response with its id. NUL and lone surrogates, which databases reject, become U+FFFD."""
    family, item_id, player, snapshot, text = (replace_surrogates(part) for part in (family, item_id, player, snapshot, text))
    return PairedResponse(
        response_id=digest("paired response", family, item_id, player, draw, snapshot, text),
        family=family,
        item_id=item_id,
        player=player,
        draw=draw,
        snapshot=snapshot,
        prompt=replace_surrogates(prompt),
        text=text,
        names=tuple(sorted({replace_surrogates(name) for name in names})),
        request_keys=request_keys,
    )


def vote_pair(left: PairedResponse, right: PairedResponse) -> VotePair:
    """Return the pair of two responses, independent of their order, so that no pair is made twice."""
    sides = sorted((left.response_id, right.response_id))
    return VotePair(digest("vote pair", *sides), left.family, left.item_id, left.draw, *sides)


def make_keyed_pair(pair: VotePair, salt: str) -> VotePair:
    """Return the pair with its id in a store with this salt: 32 hexadecimal digits of HMAC-SHA-256 of the two response ids."""
    sides = f"vote pair\n{pair.left}\n{pair.right}".encode()
    return replace(pair, pair_id=hmac.new(salt.encode(), sides, "sha256").hexdigest()[:32])


VOTE_TITLE = "Which text is better?"
VOTE_FIELD_TITLES: Mapping[str, str] = {"choice": "Better", "confidence": "How certain", "justification": "Why"}
"""Form labels by field of a vote."""
CONFIDENCE_WORDS: Mapping[str, str] = {
    str(place): {1: "1 hardly", MAX_CONFIDENT: f"{MAX_CONFIDENT} fully"}.get(place, str(place))
    for place in range(1, MAX_CONFIDENT + 1)
}
"""Labels by value of the field."""
CHOICE_WORDS: Mapping[str, str] = {"A": "A", "tie": "tie", "B": "B"}
"""Labels by value of the field, in the order of the texts."""


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
Confidence = Annotated[int, Field(ge=1, le=MAX_CONFIDENT)]


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

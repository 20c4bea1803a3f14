"""Votes and their subjects: responses of players, pairs of them, and which one a reviewer prefers."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, get_args

from dtef_pipeline.identity import digest
from dtef_pipeline.text.well_formed import replace_surrogates

Choice = Literal["A", "B", "tie"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
Side = Literal["left", "right"]
PreferredSide = Literal["left", "right", "tie"]
ReviewerKind = Literal["person", "judge"]
REVIEWER_KINDS: tuple[ReviewerKind, ...] = get_args(ReviewerKind)
MOST_CONFIDENT = 5
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
    str(place): {1: "1 hardly", MOST_CONFIDENT: f"{MOST_CONFIDENT} fully"}.get(place, str(place))
    for place in range(1, MOST_CONFIDENT + 1)
}
"""Labels by value of the field."""
CHOICE_WORDS: Mapping[str, str] = {"A": "A", "tie": "tie", "B": "B"}
"""Labels by value of the field, in the order of the texts."""

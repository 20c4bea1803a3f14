"""What a vote is about and what it says: responses of players, pairs of them, and which one a reviewer prefers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

CHOICES = ("A", "B", "tie")
Choice = Literal["A", "B", "tie"]
REVIEWER_KINDS = ("person", "judge")
MOST_CONFIDENT = 5
LONGEST_JUSTIFICATION = 2_000
"""Characters."""


@dataclass(frozen=True, slots=True)
class PairedResponse:
    """One response that may stand in pairs: what a player wrote to an item. What reviewers see of it is `prompt` and the scrubbed `text`."""

    response_id: str
    """Hash of family, item, player, draw, snapshot and text."""
    family: str
    item_id: str
    """Equal in responses that answer the same: with the partition in front, `mmlu/anatomy/17`."""
    player: str
    """Who is measured: a model variant, or a persona played by one."""
    draw: int
    snapshot: str
    prompt: str
    text: str
    names: tuple[str, ...]
    """All that would tell a reviewer who wrote it: names of the model, its maker, its id at the provider, the persona."""
    request_keys: tuple[str, ...] = ()
    """Of the stored responses that it consists of; none: it came from elsewhere."""


@dataclass(frozen=True, slots=True)
class VotePair:
    """Two responses to one item. Which of them is shown as A follows from the pair's id and the project's salt."""

    pair_id: str
    family: str
    item_id: str
    draw: int
    left: str
    """A response id; left and right are as they were made or imported, and say nothing of what is shown as A."""
    right: str


@dataclass(frozen=True, slots=True)
class Vote:
    """What one reviewer says of one pair."""

    pair_id: str
    reviewer_id: str
    choice: Choice
    """`A`: the response that was shown as A is better."""
    confidence: int | None
    """1 to 5: higher is more certain; None: it was not asked, as in votes of other tools."""
    justification: str
    voted_at: datetime | None
    """When the server took it; None: nobody says, as in votes of other tools."""
    reviewer_kind: Literal["person", "judge"] = "person"

"""Messages of a negotiation: words, and with them at most one offer or an acceptance; as commands, and as other parties read them.

The command of a message is canonical JSON: `{"propose":{"A":["boat"],"B":["clock"]},"words":"..."}`, `{"accept":true}`, `{"words":"..."}`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dtef_pipeline.text.printable import printable
from dtef_pipeline.text.well_formed import well_formed

LONGEST_WORDS_TOLD = 1_000
"""Characters of one message that others read; what is longer ends in an ellipsis."""
_CUT_OFF = "…"
_canonical_command = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


@dataclass(frozen=True, slots=True)
class NegotiationMessage:
    """What one party said in its turn."""

    words: str = ""
    """As `words_told` makes them."""
    offer: tuple[int, ...] | None = None
    """By item, the seat that is to have it; None: it offers nothing."""
    accepts: bool = False

    def command(self, items: Sequence[str], parties: Sequence[str]) -> str:
        """The message as a canonical command."""
        values: dict[str, Any] = {"words": self.words} if self.words or (self.offer is None and not self.accepts) else {}
        if self.accepts:
            values["accept"] = True
        if self.offer is not None:
            values["propose"] = bundles_of(self.offer, items, parties)
        return _canonical_command(values)


def bundles_of(owners: Sequence[int], items: Sequence[str], parties: Sequence[str]) -> dict[str, list[str]]:
    """By party, the items that it gets, in the order of the items."""
    return {
        party: [item for item, owner in zip(items, owners, strict=True) if owner == seat] for seat, party in enumerate(parties)
    }


def owners_of(bundles: dict[str, list[str]], items: Sequence[str], parties: Sequence[str]) -> tuple[int, ...]:
    """By item, the seat that gets it: of a proposal that has each item once."""
    owner = {item: parties.index(party) for party, bundle in bundles.items() for item in bundle}
    return tuple(owner[item] for item in items)


def words_told(text: str) -> str:
    """A player's words as others may read them: no character that a terminal would obey, no blank line, cut at `LONGEST_WORDS_TOLD`."""
    lines = (line.strip() for line in printable(well_formed(text)[: 8 * LONGEST_WORDS_TOLD]).split("\n"))
    told = "\n".join(line for line in lines if line)
    return told if len(told) <= LONGEST_WORDS_TOLD else told[: LONGEST_WORDS_TOLD - 1].rstrip() + _CUT_OFF


def quoted_words(words: str, party: str) -> list[str]:
    """The words line by line, each with the party's name in front: no line of theirs can be taken for one of the referee."""
    return [f"{party}> {line}" for line in words.split("\n") if line]


def message_of(command: str, items: Sequence[str], parties: Sequence[str]) -> NegotiationMessage:
    """The message of a canonical command. Raises ValueError for a text that is none."""
    try:
        values = json.loads(command)
        offer = owners_of(values["propose"], items, parties) if "propose" in values else None
        message = NegotiationMessage(values.get("words", ""), offer, values.get("accept", False))
        says_one_thing = offer is None or not message.accepts
        canonical = says_one_thing and words_told(message.words) == message.words and message.command(items, parties) == command
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        canonical = False
    if not canonical:
        raise ValueError(f"got {command!r}; allowed: a message as canonical JSON")
    return message


def choice_in_words(command: str) -> str:
    """A canonical command without words, as people read it: `accept`, `A: boat, drum; B: nothing`, `say nothing`."""
    values = json.loads(command)
    if "propose" not in values:
        return "accept" if values.get("accept") else values.get("words") or "say nothing"
    return "; ".join(f"{party}: {', '.join(bundle) or 'nothing'}" for party, bundle in values["propose"].items())

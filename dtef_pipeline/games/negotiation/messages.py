"""Messages of a negotiation, which have words and at most one offer or acceptance: as commands, and as other parties read them.

The command of a message is canonical JSON: `{"propose":{"A":["boat"],"B":["clock"]},"words":"..."}`, `{"accept":true}`, `{"words":"..."}`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dtef_pipeline.text.printable import escape_terminal
from dtef_pipeline.text.well_formed import replace_surrogates

LONGEST_SHOWN_WORDS = 1_000
"""Largest number of characters of a message that others read; a longer one ends in an ellipsis."""
_CUT_OFF = "…"
_canonical_command = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


@dataclass(frozen=True, slots=True)
class NegotiationMessage:
    """The message of one party in its turn."""

    words: str = ""
    """Words in the form of `clean_words`."""
    offer: tuple[int, ...] | None = None
    """By item, the seat that is to get it; None: there is no offer."""
    accepts: bool = False

    def command(self, items: Sequence[str], parties: Sequence[str]) -> str:
        """Return the message as a canonical command."""
        values: dict[str, Any] = {"words": self.words} if self.words or (self.offer is None and not self.accepts) else {}
        if self.accepts:
            values["accept"] = True
        if self.offer is not None:
            values["propose"] = group_by_owner(self.offer, items, parties)
        return _canonical_command(values)


def group_by_owner(owners: Sequence[int], items: Sequence[str], parties: Sequence[str]) -> dict[str, list[str]]:
    """Return by party the items that it gets, in the order of the items."""
    return {
        party: [item for item, owner in zip(items, owners, strict=True) if owner == seat] for seat, party in enumerate(parties)
    }


def list_owners(bundles: dict[str, list[str]], items: Sequence[str], parties: Sequence[str]) -> tuple[int, ...]:
    """Return by item the seat that gets it, for a proposal that has each item once."""
    owner = {item: parties.index(party) for party, bundle in bundles.items() for item in bundle}
    return tuple(owner[item] for item in items)


def clean_words(text: str) -> str:
    """Clean a player's words for others: without control characters and blank lines, cut off at `LONGEST_SHOWN_WORDS`."""
    lines = (line.strip() for line in escape_terminal(replace_surrogates(text)[: 8 * LONGEST_SHOWN_WORDS]).split("\n"))
    shown_words = "\n".join(line for line in lines if line)
    return (
        shown_words if len(shown_words) <= LONGEST_SHOWN_WORDS else shown_words[: LONGEST_SHOWN_WORDS - 1].rstrip() + _CUT_OFF
    )


def quote_words(words: str, party: str) -> list[str]:
    """Prefix each line of the words with the party's name, so that no line can be mistaken for one of the referee."""
    return [f"{party}> {line}" for line in words.split("\n") if line]


def parse_message(command: str, items: Sequence[str], parties: Sequence[str]) -> NegotiationMessage:
    """Parse a canonical command. Raises ValueError for any other text."""
    try:
        values = json.loads(command)
        offer = list_owners(values["propose"], items, parties) if "propose" in values else None
        message = NegotiationMessage(values.get("words", ""), offer, values.get("accept", False))
        says_one_thing = offer is None or not message.accepts
        canonical = (
            says_one_thing and clean_words(message.words) == message.words and message.command(items, parties) == command
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        canonical = False
    if not canonical:
        raise ValueError(f"got {command!r}; allowed: a message as canonical JSON")
    return message


def format_choice(command: str) -> str:
    """Format a canonical command without words for people: `accept`, `A: boat, drum; B: nothing`, `say nothing`."""
    values = json.loads(command)
    if "propose" not in values:
        return "accept" if values.get("accept") else values.get("words") or "say nothing"
    return "; ".join(f"{party}: {', '.join(bundle) or 'nothing'}" for party, bundle in values["propose"].items())

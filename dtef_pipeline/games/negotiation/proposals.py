"""The text of a negotiation: the JSON object that counts, as an offer or acceptance, and the words around it.

The last object outside the thinking with the key `propose` or `accept` counts, wherever it is. A text without one is talk, unless it contains an
unreadable proposal. Objects are searched for in the last `_MAX_CHARACTERS_READ` characters, with at most `_MAX_OPENINGS` openings of objects,
so that the time is bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from dtef_pipeline.games.contract import Illegal
from dtef_pipeline.games.negotiation.messages import NegotiationMessage, clean_words, list_owners
from dtef_pipeline.games.negotiation.referee import (
    ITEM_TWICE,
    MISSING_ITEM,
    NO_PROPOSAL,
    UNKNOWN_ITEM,
    UNKNOWN_PARTY,
    find_proposal_fault,
)
from dtef_pipeline.games.reading import find_action
from dtef_pipeline.text.json_values import Pairs, decode_value_at
from dtef_pipeline.text.plain import strip_thinking

PROPOSE, ACCEPT, MESSAGE_KEYS = "propose", "accept", "words"
_MAX_CHARACTERS_READ = 15_000
_MAX_OPENINGS = 64
_OPENING = re.compile(r"\{\s{0,50}\"")
_SPEAKS_OF_ONE = re.compile(
    r"\{\s{0,50}[\"'“”]?(?:propose|accept)[\"'“”]?\s{0,50}:|[\"'](?:propose|accept)[\"']\s{0,50}:", re.IGNORECASE
)
_BEFORE_AN_OBJECT = re.compile(r"(?:```(?:json)?|[*_]{0,3}action[*_]{0,3}\s{0,3}:[*_]{0,3}|[*`])\s{0,20}\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NegotiationTable:
    """Context of a message: the items, the parties, and whether its writer may accept now."""

    items: tuple[str, ...]
    parties: tuple[str, ...]
    seat: int
    offering_seat: int | None
    """Seat whose offer is open."""
    has_accepted: bool = False
    """Whether the writer has already accepted this offer."""


class _PlacedObject(NamedTuple):
    """A JSON object in a text, and its place."""

    pairs: Pairs
    start: int
    end: int


def read_message(text: str, table: NegotiationTable) -> NegotiationMessage | Illegal:
    """Return the message in a text, or why there is none. A text without a JSON object is talk; a blank one is an error."""
    reply = strip_thinking(text)
    placed_object = _find_counting_object(reply)
    if placed_object is None:
        return _read_talk(reply, text)
    around = _strip_label(reply[: placed_object.start]) + "\n" + reply[placed_object.end :].strip().removeprefix("```")
    inside = _list_values_here(placed_object.pairs, MESSAGE_KEYS)
    words = clean_words("\n".join([around, *(value for value in inside if isinstance(value, str))]))
    proposals, accepts = _list_values_here(placed_object.pairs, PROPOSE), _list_values_here(placed_object.pairs, ACCEPT)
    if not proposals and not accepts:
        if len(inside) == len(placed_object.pairs) == 1 and isinstance(inside[0], str):
            return NegotiationMessage(words)
        return _reject_proposal('the JSON has neither "propose" nor "accept"')
    if len(proposals) + len(accepts) > 1:
        return _reject_proposal('the JSON says more than one thing; allowed: "propose" or "accept", once')
    return _read_acceptance(accepts[0], words, table) if accepts else _read_offer(proposals[0], words, table)


def _find_counting_object(text: str) -> _PlacedObject | None:
    """Find the last object with a key that counts, else the last outermost object, or None."""
    first = max(0, len(text) - _MAX_CHARACTERS_READ)
    best: _PlacedObject | None = None
    openings = [match.start() for match in _OPENING.finditer(text, first)]
    for start in islice(reversed(openings), _MAX_OPENINGS):
        span = decode_value_at(text, start)
        if span is None or not isinstance(span.value, Pairs):
            if _SPEAKS_OF_ONE.match(text, start):
                return None
            continue
        if _list_values_here(span.value, PROPOSE) or _list_values_here(span.value, ACCEPT):
            return _PlacedObject(span.value, start, span.end)
        if best is None or span.end >= best.end:
            best = _PlacedObject(span.value, start, span.end)
    return best


def _list_values_here(pairs: Pairs, name: str) -> list[Any]:
    return [value for key, value in pairs if key.strip().casefold() == name]


def _read_talk(reply: str, text: str) -> NegotiationMessage | Illegal:
    if _SPEAKS_OF_ONE.search(reply, max(0, len(reply) - _MAX_CHARACTERS_READ)):
        return Illegal(
            'broken JSON: the offer cannot be read; allowed: {"propose": {"A": [...], "B": [...]}} or {"accept": true}'
        )
    if find_action(text) is not None:
        return _reject_proposal("what follows ACTION: is no JSON")
    words = clean_words(reply)
    return NegotiationMessage(words) if words else Illegal("The message is empty.", "unparsed")


def _read_acceptance(value: Any, words: str, table: NegotiationTable) -> NegotiationMessage | Illegal:
    if value is not True:
        return _reject_proposal('"accept" is true or left out: write words without JSON to decline')
    if table.offering_seat is None:
        return Illegal("accept without an offer: nobody has offered anything yet.")
    if table.offering_seat == table.seat:
        return Illegal("accepting one's own offer: the offer that stands is yours; others may accept it.")
    if table.has_accepted:
        return Illegal("accepting twice: you have accepted this offer already.")
    return NegotiationMessage(words, accepts=True)


def _read_offer(value: Any, words: str, table: NegotiationTable) -> NegotiationMessage | Illegal:
    bundles = _normalise_names(value, table)
    if isinstance(bundles, Illegal):
        return bundles
    if fault := find_proposal_fault(bundles, table.items, table.parties):
        return Illegal(_explain_fault(fault, table))
    return NegotiationMessage(words, list_owners(bundles, table.items, table.parties))


def _normalise_names(value: Any, table: NegotiationTable) -> Any:
    """Return the proposal with the canonical spelling of parties and items, ignoring case."""
    if not isinstance(value, Pairs):
        return value
    parties = {party.casefold(): party for party in table.parties}
    items = {item.casefold(): item for item in table.items}
    bundles: dict[str, Any] = {}
    for key, bundle in value:
        party = parties.get(key.strip().casefold(), key)
        if party in bundles:
            return _reject_proposal("a party stands in it twice")
        bundles[party] = (
            [items.get(entry.strip().casefold(), entry) if isinstance(entry, str) else entry for entry in bundle]
            if isinstance(bundle, list) and not isinstance(bundle, Pairs)
            else None
        )
    return bundles


def _explain_fault(fault: str, table: NegotiationTable) -> str:
    hints = {
        ITEM_TWICE: "allowed: each item once",
        MISSING_ITEM: f"allowed: each item once, of {', '.join(table.items)}",
        UNKNOWN_ITEM: f"allowed: {', '.join(table.items)}",
        UNKNOWN_PARTY: f"allowed: {', '.join(table.parties)}",
        NO_PROPOSAL: "allowed: by party the list of its items",
    }
    return f"{fault}; {hints[fault]}."


def _reject_proposal(reason: str) -> Illegal:
    return Illegal(f"{NO_PROPOSAL}: {reason}.")


def _strip_label(before: str) -> str:
    """Return the words before an object without the code fence and the `ACTION:` that introduce it."""
    before = before.rstrip()
    for _ in range(4):
        match = _BEFORE_AN_OBJECT.search(before, max(0, len(before) - 80))
        if match is None:
            break
        before = before[: match.start()].rstrip()
    return before

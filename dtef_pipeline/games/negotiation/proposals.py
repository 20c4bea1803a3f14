"""The text of a negotiation: the JSON object that counts, as an offer or acceptance, the words around it, and the referee.

A message has words and at most one offer or acceptance. Its command is canonical JSON: `{"propose":{"A":["boat"],"B":["clock"]},"words":"..."}`,
`{"accept":true}`, `{"words":"..."}`.

The last object outside the thinking with the key `propose` or `accept` counts, wherever it is. A text without one is talk, unless it contains an
unreadable proposal. Objects are searched for in the last `_MAX_CHARACTERS_READ` characters, with at most `_MAX_OPENINGS` openings of objects,
so that the time is bounded.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dtef_pipeline.games.contract import Illegal
from dtef_pipeline.games.reading import find_action
from dtef_pipeline.text.json_values import FoundObject, Pairs, decode_value_at
from dtef_pipeline.text.plain import strip_thinking
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


PartyValues = Mapping[str, Mapping[str, int]]
Division = Mapping[str, Collection[str]]
NO_PROPOSAL = "not a proposal"
UNKNOWN_PARTY = "unknown party"
UNKNOWN_ITEM = "unknown item"
ITEM_TWICE = "item twice"
MISSING_ITEM = "missing item"


@dataclass(frozen=True, slots=True)
class Fairness:
    """The referee's numbers on one division, some of them by party."""

    utility: Mapping[str, int]
    """Points, 0 or more; higher is better."""
    normalised: Mapping[str, float | None]
    """Share of the total value of all items to the party, 0 to 1; higher is better; None if the total is 0."""
    envy: Mapping[str, int]
    """Points, 0 or more; lower is better."""
    ef1: Mapping[str, bool]
    """Whether the party envies nobody by more than one item."""
    jain: float | None
    """1/n to 1; higher is more even; None if all utilities are 0."""
    nash: float
    """Geometric mean of the utilities, in points, 0 if one party has nothing; higher is better."""
    efficiency: float | None
    """Sum of the utilities over the highest possible sum, in which each item goes to the party that values it most, 0 to 1; higher is better;
    None if all values are 0."""
    pareto: bool
    """Whether no party could get more without another getting less."""


def measure_fairness(values: PartyValues, division: Division) -> Fairness:
    """Compute all numbers on a division. Raises ValueError if it is not a division of the items among the parties."""
    items = list(next(iter(values.values())))
    if fault := find_proposal_fault({party: list(bundle) for party, bundle in division.items()}, items, list(values)):
        raise ValueError(f"{fault}: {division}")
    utility = {party: sum_bundle_value(points, division.get(party, ())) for party, points in values.items()}
    best_sum = sum(max(points[item] for points in values.values()) for item in items)
    normalised = {party: compute_share(points, sum(values[party].values())) for party, points in utility.items()}
    return Fairness(
        utility,
        normalised,
        envy={party: compute_envy(values[party], division, party) for party in values},
        ef1={party: is_envy_free_but_one(values[party], division, party) for party in values},
        jain=compute_jain_index([share or 0.0 for share in normalised.values()]),
        nash=math.pow(math.prod(utility.values()), 1 / len(utility)),
        efficiency=compute_share(sum(utility.values()), best_sum),
        pareto=is_pareto(values, list(utility.values())),
    )


def find_proposal_fault(proposal: Any, items: Sequence[str], parties: Sequence[str]) -> str | None:
    """Return why a decoded JSON value is not a proposal, or None.

    A proposal is an object with a list of items by party, and each item exactly once. A party that is left out gets nothing.
    """
    if not isinstance(proposal, Mapping) or not proposal:
        return NO_PROPOSAL
    bundles = list(proposal.values())
    if not all(isinstance(bundle, list) and all(isinstance(item, str) for item in bundle) for bundle in bundles):
        return NO_PROPOSAL
    all_items = [item for bundle in bundles for item in bundle]
    if not set(proposal) <= set(parties):
        return UNKNOWN_PARTY
    if not set(all_items) <= set(items):
        return UNKNOWN_ITEM
    if len(all_items) > len(set(all_items)):
        return ITEM_TWICE
    return None if len(all_items) == len(items) else MISSING_ITEM


def sum_bundle_value(values: Mapping[str, int], bundle: Collection[str]) -> int:
    """Return the sum of the values of the items of a bundle, in points."""
    return sum(values[item] for item in bundle)


def compute_share(part: int, total: int) -> float | None:
    """Return part / whole, from 0 to 1; None if the whole is 0."""
    return part / total if total else None


def compute_envy(values: Mapping[str, int], division: Division, party: str) -> int:
    """Return max(0, value of another party's best bundle - value of the own bundle), in points by the party's own values; 0 is best."""
    return max(0, *(sum_bundle_value(values, bundle) for bundle in division.values())) - sum_bundle_value(
        values, division.get(party, ())
    )


def is_envy_free_but_one(values: Mapping[str, int], division: Division, party: str) -> bool:
    """Return EF1: whether every other party's bundle has one item without which it is worth at most the party's own. (Budish 2011.)"""
    mine = sum_bundle_value(values, division.get(party, ()))
    bundles = (bundle for owner, bundle in division.items() if owner != party and bundle)
    return all(mine >= sum_bundle_value(values, bundle) - max(values[item] for item in bundle) for bundle in bundles)


def compute_jain_index(shares: Sequence[float]) -> float | None:
    """Return (sum u)^2 / (n sum u^2), 1/n (one has all) to 1 (all are equal); None if all are 0. (Jain, Chiu and Hawe 1984.)"""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else None


def is_pareto(values: PartyValues, points: Sequence[int]) -> bool:
    """Return whether no other division gives all parties at least these utilities and one more; tries n ** items divisions."""
    target = tuple(points)
    totals = {(0,) * len(target)}
    for item in next(iter(values.values())):
        gains = [party_values[item] for party_values in values.values()]
        totals = {(*total[:i], total[i] + gain, *total[i + 1 :]) for total in totals for i, gain in enumerate(gains)}
    return not any(total != target and all(map(int.__ge__, total, target)) for total in totals)


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


def read_message(text: str, table: NegotiationTable) -> NegotiationMessage | Illegal:
    """Return the message in a text, or why there is none. A text without a JSON object is talk; a blank one is an error."""
    reply = strip_thinking(text)
    placed_object = _find_counting_object(reply)
    if placed_object is None:
        return _read_talk(reply, text)
    around = _strip_label(reply[: placed_object.start]) + "\n" + reply[placed_object.end :].strip().removeprefix("```")
    inside = placed_object.pairs.find_values(MESSAGE_KEYS)
    words = clean_words("\n".join([around, *(value for value in inside if isinstance(value, str))]))
    proposals, accepts = placed_object.pairs.find_values(PROPOSE), placed_object.pairs.find_values(ACCEPT)
    if not proposals and not accepts:
        if len(inside) == len(placed_object.pairs) == 1 and isinstance(inside[0], str):
            return NegotiationMessage(words)
        return _reject_proposal('the JSON has neither "propose" nor "accept"')
    if len(proposals) + len(accepts) > 1:
        return _reject_proposal('the JSON says more than one thing; allowed: "propose" or "accept", once')
    return _read_acceptance(accepts[0], words, table) if accepts else _read_offer(proposals[0], words, table)


def _find_counting_object(text: str) -> FoundObject | None:
    """Find the last object with a key that counts, else the last outermost object, or None."""
    first = max(0, len(text) - _MAX_CHARACTERS_READ)
    best: FoundObject | None = None
    openings = [match.start() for match in _OPENING.finditer(text, first)]
    for start in islice(reversed(openings), _MAX_OPENINGS):
        span = decode_value_at(text, start)
        if span is None or not isinstance(span.value, Pairs):
            if _SPEAKS_OF_ONE.match(text, start):
                return None
            continue
        if span.value.find_values(PROPOSE) or span.value.find_values(ACCEPT):
            return FoundObject(start, span.end, span.value)
        if best is None or span.end >= best.end:
            best = FoundObject(start, span.end, span.value)
    return best


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

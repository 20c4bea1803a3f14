"""What a reviewer gets of a pair: its id, what was asked, and two texts without names. Nothing else, so that nothing else can tell."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.identity import normalize_text
from dtef_pipeline.judging.hidden_names import Blinding, Name
from dtef_pipeline.preference.votes import PairedResponse, Side, VotePair
from dtef_pipeline.text.folding import fold_text

_MANY_DECIMALS = re.compile(r"[0-9]{1,20}(?:\.[0-9]{3,25}(?:e-[0-9]{1,3})?|(?:\.[0-9]{1,2})?e-[0-9]{1,3})")


class BlindedPair(NamedTuple):
    """What is served, by the names it is served under."""

    pair_id: str
    prompt: str
    run_a: str
    run_b: str

    def serialize(self) -> dict[str, str]:
        """An object with these four fields and no other."""
        return self._asdict()


def choose_shown_as_a(pair_id: str, salt: str) -> Side:
    """Which response of a pair is shown as A: `right` where the first bit is 1 of the SHA-256 of the pair's id, a line feed and the salt.

    The texts are hashed as UTF-8, and the first bit is the highest of the first byte. Who does not know the salt cannot tell.
    """
    return "right" if hashlib.sha256(f"{pair_id}\n{salt}".encode()).digest()[0] >> 7 else "left"


def build_blinded_pair(pair: VotePair, left: PairedResponse, right: PairedResponse, names: Blinding, salt: str) -> BlindedPair:
    """The pair as a reviewer gets it. `names`: those of everybody who might have written one of the texts, not of these two alone."""
    names = names.add_pair_names((*left.names, *right.names))
    first, second = (left, right) if choose_shown_as_a(pair.pair_id, salt) == "left" else (right, left)
    texts = (read_text(response.text, response.player, names) for response in (first, second))
    return BlindedPair(pair.pair_id, names.scrub(left.prompt).text, *texts)


def read_text(text: str, player: str, names: Blinding) -> str:
    """What a reviewer reads of a response: its text without names; of a player that computes, its numbers with 2 decimals."""
    readable = _MANY_DECIMALS.sub(lambda match: f"{float(match[0]):.2f}", text) if is_computed(player) else text
    return names.scrub(readable).text


def normalize_for_comparison(text: str, player: str, names: Blinding) -> str:
    """What two texts have in common that nobody can tell apart: what a reviewer reads, whatever its case and white space."""
    return normalize_text(read_text(text, player, names))


def count_replaced_names(names: Blinding, pairs: Iterable[tuple[str, PairedResponse, PairedResponse]]) -> dict[str, int]:
    """By id of each pair, how many names are taken out of its two texts."""
    cache: dict[tuple[str, frozenset[Name]], int] = {}
    sure_names = frozenset(names.sure)

    def count(response: PairedResponse, blinding: Blinding, further: frozenset[Name]) -> int:
        # Of most pairs no further name stands in the text, which is then looked through once for all of them.
        plain = fold_text(response.text)[0]
        present = frozenset(name for name in further if name.core in plain)
        key = response.response_id, present
        if key not in cache:
            cache[key] = (blinding if present else names).scrub(response.text).replaced
        return cache[key]

    counts = {}
    for pair_id, left, right in pairs:
        blinding = names.add_pair_names((*left.names, *right.names))
        further = frozenset(blinding.sure) - sure_names
        counts[pair_id] = count(left, blinding, further) + count(right, blinding, further)
    return counts

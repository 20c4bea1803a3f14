"""What a reviewer gets of a pair: its id, what was asked, and two texts without names. Nothing else, so that nothing else can tell."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.identity import normalized
from dtef_pipeline.preference.blinding import Blinding
from dtef_pipeline.preference.votes import PairedResponse, Side, VotePair

_MANY_DECIMALS = re.compile(r"[0-9]{1,20}(?:\.[0-9]{3,25}(?:e-[0-9]{1,3})?|(?:\.[0-9]{1,2})?e-[0-9]{1,3})")


class BlindedPair(NamedTuple):
    """What is served, by the names it is served under."""

    pair_id: str
    prompt: str
    run_a: str
    run_b: str

    def as_json(self) -> dict[str, str]:
        """An object with these four fields and no other."""
        return self._asdict()


def shown_as_a(pair_id: str, salt: str) -> Side:
    """Which response of a pair is shown as A: `right` where the first bit is 1 of the SHA-256 of the pair's id, a line feed and the salt.

    The texts are hashed as UTF-8, and the first bit is the highest of the first byte. Who does not know the salt cannot tell.
    """
    return "right" if hashlib.sha256(f"{pair_id}\n{salt}".encode()).digest()[0] >> 7 else "left"


def blinded_pair(pair: VotePair, left: PairedResponse, right: PairedResponse, names: Blinding, salt: str) -> BlindedPair:
    """The pair as a reviewer gets it. `names`: those of everybody who might have written one of the texts, not of these two alone."""
    first, second = (left, right) if shown_as_a(pair.pair_id, salt) == "left" else (right, left)
    texts = (read_text(one.text, one.player, names) for one in (first, second))
    return BlindedPair(pair.pair_id, names.scrub(left.prompt).text, *texts)


def read_text(text: str, player: str, names: Blinding) -> str:
    """What a reviewer reads of a response: its text without names; of a player that computes, its numbers with 2 decimals."""
    shown = _MANY_DECIMALS.sub(lambda found: f"{float(found[0]):.2f}", text) if is_computed(player) else text
    return names.scrub(shown).text


def compared_text(text: str, player: str, names: Blinding) -> str:
    """What two texts have in common that nobody can tell apart: what a reviewer reads, whatever its case and white space."""
    return normalized(read_text(text, player, names))

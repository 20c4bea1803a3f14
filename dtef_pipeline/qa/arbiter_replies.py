"""Reading what the arbiter wrote: a score from 0 to 1 with a reason, or why there is none."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from dtef_pipeline.judging.replies import EMPTY, UNREADABLE
from dtef_pipeline.text.plain import without_thinking
from dtef_pipeline.text.well_formed import well_formed

LONGEST_REASON = 4_000
"""Characters of a judge's reason that are kept; the reply is stored whole."""
_OPENS_AN_OBJECT = re.compile(r'\{\s*+"')


@dataclass(frozen=True, slots=True)
class ArbiterReply:
    """What one reply says."""

    score: float | None
    """0 to 1: higher is better; None: there is none, for the reason given."""
    reason: str | None
    """unreadable | empty; None: there is a score."""
    explanation: str | None = None
    """What the judge gave as its reason; None: it gave none."""


def read_arbiter_reply(text: str) -> ArbiterReply:
    """The score of the last JSON object with a key `score` that is a number from 0 to 1.

    Thinking is dropped first. A number out of 0-1, as text, true, NaN, given twice, and one in prose are no scores. An object that begins and
    is no JSON makes the whole reply unreadable: what looks like an object behind its beginning may be a quotation in it. Takes any text, in
    time linear in its length.
    """
    seen = without_thinking(text).strip()
    if not seen:
        return ArbiterReply(None, EMPTY)
    found: ArbiterReply | None = None
    place = 0
    while (opening := _OPENS_AN_OBJECT.search(seen, place)) is not None:
        try:
            value, place = _DECODER.raw_decode(seen, opening.start())
        except (ValueError, RecursionError):
            return ArbiterReply(None, UNREADABLE)
        found = _scored(value) or found
    return found or ArbiterReply(None, UNREADABLE)


def _scored(value: Any) -> ArbiterReply | None:
    score = value.get("score") if isinstance(value, dict) else None
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        return None
    reason = value.get("reason")
    explanation = well_formed(reason)[:LONGEST_REASON].strip() if isinstance(reason, str) else ""
    return ArbiterReply(abs(float(score)), None, explanation or None)


def _unlike(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object, without a score where it names several."""
    found = dict(pairs)
    if sum(name == "score" for name, _ in pairs) > 1:
        del found["score"]
    return found


def _no_number(name: str) -> None:
    """NaN and infinities, which JSON does not have."""


_DECODER = json.JSONDecoder(object_pairs_hook=_unlike, strict=False, parse_constant=_no_number)

"""Identities of the survey family: its partitions, the identity of questions, and the order of rounds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtef_pipeline.identity import normalize_text
from dtef_pipeline.keys import Space


def make_question_key(text: str, options: Sequence[str]) -> tuple[str, ...]:
    """Return a key that is equal for the same question: same text and options, up to `normalize_text` and the final mark.

    (GD5 asks one before and after its deliberation, once with a question mark and once with a colon.)
    """
    plain = normalize_text(text)
    return (plain.rstrip(" ?:.!…;,-–—") or plain, *map(normalize_text, options))


def make_round_order(round_id: str) -> tuple[str, int, str]:
    """Return the sort key of a round: GD2 before GD10, GD6 before GD6UK. Rounds of one series share the first element."""
    match = re.fullmatch(r"(.*?)(\d+)(\D*)", round_id)
    return (match[1], int(match[2]), match[3]) if match else (round_id, 0, "")


SPACE = Space("round_segment", first="round", second="segment", order=make_round_order)
"""One partition is one segment of one round: `GD4/country:kenya`."""

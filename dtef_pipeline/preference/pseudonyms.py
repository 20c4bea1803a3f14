"""What reviewers are called in an export who have not said that it may show their ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from dtef_pipeline.preference.vote_records import Record, record_line

PSEUDONYM_PREFIX = "reviewer-"


def exported_names(records: Mapping[str, Iterable[Record]], known: Mapping[str, Record], salt: str) -> dict[str, str]:
    """By reviewer id, what an export of these votes calls the reviewer. `known`: what holds of each reviewer.

    The pseudonym is a hash of the id, of all that is exported and of the salt: the same store gives the same names again, another one gives
    others, and who does not know the salt cannot tell whose they are. A reviewer with consent keeps the id, and so does one who came in as a
    pseudonym: so what is exported, imported and exported again stays the same.
    """
    everything = hashlib.sha256(salt.encode())
    for kind in ("reviewer", "vote", "void"):
        for record in records.get(kind, ()):
            everything.update(record_line(kind, record).encode())
            everything.update(b"\n")
    key = everything.digest()
    everybody = {record["reviewer_id"] for kind in ("reviewer", "vote") for record in records.get(kind, ())}
    return {one: one if _is_shown(known.get(one)) else _pseudonym(key, one) for one in everybody}


def _is_shown(reviewer: Record | None) -> bool:
    return reviewer is not None and (reviewer["consent"] or reviewer["pseudonymous"])


def _pseudonym(key: bytes, reviewer_id: str) -> str:
    return PSEUDONYM_PREFIX + hashlib.sha256(key + reviewer_id.encode()).hexdigest()[:24]

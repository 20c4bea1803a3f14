"""What an export calls reviewers who have not said that it may show their ids, and how it tells of their votes."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from dtef_pipeline.preference.vote_records import Record, record_line, void_id

PSEUDONYM_PREFIX = "reviewer-"
_HIDDEN_TIMES = ("said_at", "voted_at", "voided_at")


@dataclass(frozen=True, slots=True)
class ExportNames:
    """The names of one export. Nobody can join two exports by them, and only who knows the salt can tell whose they are."""

    key: bytes

    def reviewer(self, reviewer_id: str) -> str:
        """What the reviewer is called: reviewer- and 24 hexadecimal digits."""
        return PSEUDONYM_PREFIX + self._hash("reviewer", reviewer_id)[:24]

    def vote(self, vote_id: str) -> str:
        """The id of a vote of such a reviewer: 32 hexadecimal digits."""
        return self._hash("vote", vote_id)[:32]

    def hidden(self, kind: str, record: Record) -> Record:
        """A record of such a reviewer, of a vote or of a void of it: under other names, with the days of its times (UTC) alone."""
        public_record = dict(record)
        if "reviewer_id" in record:
            public_record["reviewer_id"] = self.reviewer(record["reviewer_id"])
        if "vote_id" in record:
            public_record["vote_id"] = self.vote(record["vote_id"])
        if kind == "void":
            public_record["void_id"] = void_id(public_record["vote_id"])
        if kind == "reviewer":
            public_record["pseudonymous"] = True
        for name in _HIDDEN_TIMES:
            if isinstance(time := public_record.get(name), datetime):
                public_record[name] = time.replace(hour=0, minute=0, second=0, microsecond=0)
        return public_record

    def _hash(self, *parts: str) -> str:
        return hmac.new(self.key, "\n".join(parts).encode(), "sha256").hexdigest()


def hash_export_contents(records: Mapping[str, Iterable[Record]]) -> str:
    """64 hexadecimal digits of what an export tells of reviewers: the same only where all of it is."""
    everything = hashlib.sha256()
    for kind in ("reviewer", "vote", "void"):
        for record in records.get(kind, ()):
            everything.update(f"{record_line(kind, record)}\n".encode())
    return everything.hexdigest()


def export_names(contents: str, salt: str) -> ExportNames:
    """The names of the export of these contents: the same again for the same, others for any other."""
    return ExportNames(hmac.new(salt.encode(), contents.encode(), "sha256").digest())


def is_shown(reviewer: Record | None) -> bool:
    """Whether exports keep the id: by consent, or because it is a pseudonym already, so that an export of what was imported is the same."""
    return reviewer is not None and bool(reviewer["consent"] or reviewer["pseudonymous"])

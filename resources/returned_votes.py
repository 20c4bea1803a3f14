"""Votes that come back: an export of this very store, in which reviewers stand under pseudonyms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import sqlalchemy as sa

from dtef_pipeline.preference.pseudonyms import ExportNames, export_names
from dtef_pipeline.preference.vote_records import Record, void_id
from resources import vote_tables as tables
from resources.responses.database import ResponseDatabase, chunks
from resources.vote_lines import Line, Lines

EXPORT_ACTION = "export"
"""What the actions of administrators call an export. `contents` in it is what the names of the export were made of."""


@dataclass(slots=True)
class _Known:
    """What a file has under names that this store gave it."""

    reviewers: set[str] = field(default_factory=set)
    """Pseudonyms."""
    votes: dict[str, Record] = field(default_factory=dict)
    """The votes here, by their ids in the file."""
    voided: dict[str, Record] = field(default_factory=dict)
    """What voids them, by the ids that they have here."""


def under_own_names(connection: sa.Connection, database: ResponseDatabase, salt: str, lines: Lines) -> Lines:
    """The lines with the ids and times that their votes have here, where they come from an export of this store. No vote comes in twice."""
    pseudonyms = {line.record["reviewer_id"] for line in lines["reviewer"] if line.record["pseudonymous"]}
    known = _known(connection, database, salt, pseudonyms) if pseudonyms else _Known()
    if not known.reviewers:
        return lines
    return {kind: [one for line in of_kind if (one := _back(kind, line, known))] for kind, of_kind in lines.items()}


def _back(kind: str, line: Line, known: _Known) -> Line | None:
    """The line as the store would say it; None for a pseudonym of a reviewer who is known here by another name."""
    if kind == "reviewer":
        return None if line.record["reviewer_id"] in known.reviewers else line
    if kind not in ("vote", "void") or (vote := known.votes.get(line.record["vote_id"])) is None:
        return line
    if kind == "vote":
        return line.having(**{name: vote[name] for name in ("vote_id", "reviewer_id", "voted_at")})
    voided = known.voided.get(vote["vote_id"], line.record)
    return line.having(vote_id=vote["vote_id"], void_id=void_id(vote["vote_id"]), voided_at=voided["voided_at"])


def _known(connection: sa.Connection, database: ResponseDatabase, salt: str, pseudonyms: set[str]) -> _Known:
    found = _Known()
    everybody = {
        one
        for table in (tables.votes, tables.reviewers)
        for one in connection.scalars(sa.select(table.c.reviewer_id).distinct())
    }
    for names in _names_given(connection, salt):
        told = {name: one for one in everybody if (name := names.reviewer(one)) in pseudonyms}
        found.reviewers |= told.keys()
        for vote in _of(connection, database, "vote", "reviewer_id", set(told.values())):
            found.votes[names.vote(vote["vote_id"])] = vote
    by_id = {vote["vote_id"] for vote in found.votes.values()}
    found.voided = {one["vote_id"]: one for one in _of(connection, database, "void", "vote_id", by_id)}
    return found


def _names_given(connection: sa.Connection, salt: str) -> Iterator[ExportNames]:
    said = connection.scalars(sa.select(tables.actions.c.after).where(tables.actions.c.what == EXPORT_ACTION))
    for contents in {json.loads(one)["contents"] for one in said}:
        yield export_names(contents, salt)


def _of(connection: sa.Connection, database: ResponseDatabase, kind: str, name: str, wanted: set[str]) -> Iterator[Record]:
    table = tables.TABLE_OF_KIND[kind]
    statement = sa.select(table).where(table.c[name].in_(database.listed))
    for chunk in chunks(sorted(wanted)):
        for row in connection.execute(statement, database.keys(chunk)).mappings():
            yield tables.record_of(kind, row)

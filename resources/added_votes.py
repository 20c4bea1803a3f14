"""Adding records from elsewhere to the store of votes: all of them or none, and nothing that contradicts what is there."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa

from dtef_pipeline.errors import SourceError
from dtef_pipeline.preference.ballots import Ballot
from dtef_pipeline.preference.vote_records import BALLOT_KIND, Record, key_field, vote_of
from dtef_pipeline.text.counted import and_more
from resources import vote_tables as tables
from resources.judge_ids import JUDGE_KIND, NOT_OF_A_JUDGE, judges_among, of_a_judge
from resources.responses.database import ResponseDatabase, chunks
from resources.returned_votes import under_own_names
from resources.vote_lines import Line, Lines, under_own_pairs
from resources.votes import VoteStore

_NEITHER = "is neither in the store nor in the file"
_MAY_DIFFER: Mapping[str, frozenset[str]] = {
    "response": frozenset({"manifest_id", "names"}),
    "request": frozenset({"run_id"}),
    "pair": frozenset({"replaced", "blinding", "made_at"}),
    "vote": frozenset({"vote_id", "reviewer_id", "choice", "shown_as_a"}),
}
"""Fields in which two records of one thing may differ: who asked or paired first does not matter, and more names are known later."""
_OF_THE_STORE = frozenset({"voted_at", "reviewer_kind"})
"""Fields of a vote that no reviewer hands in."""
_ALLOWED_AGAIN = {"vote": "one vote of a reviewer on a pair, of which the first stays, also when it was voided"}
_CLOCKS_DIFFER_BY = timedelta(days=1)
"""How far ahead of this computer's clock a time of another one may be."""
_LENGTH_OF_PAIR_ID = 32
_SHARED_BY_SIDES = ("family", "item_id", "draw")


class AddedVotes(NamedTuple):
    """What became of a file: how many records of each kind are new, and how many were there already."""

    added: dict[str, int]
    known: int


def add_lines(store: VoteStore, lines: Sequence[Line], who: str, source: str) -> AddedVotes:
    """Add records in one transaction, all or none of them; what is there already with the same content stays as it is.

    Raises SourceError, with file and line, for one that contradicts what is there, and for one that is about something that is neither there
    nor among the records.
    """
    now = store.clock()
    by_kind: dict[str, list[Line]] = {kind: [] for kind in tables.TABLE_OF_KIND}
    for line in lines:
        _check_times(line, now)
        if line.kind == BALLOT_KIND:
            # A ballot becomes a vote here: only this store knows what it showed as A.
            record = store.vote_record(Ballot(**line.record), now)
            line = line._replace(kind="vote", record=record, is_ballot=True)
        by_kind[line.kind].append(line)

    def work(connection: sa.Connection) -> AddedVotes:
        told = under_own_names(connection, store.database, store.salt, by_kind)
        here = under_own_pairs(connection, store.database, told)
        fresh = {kind: _fresh(connection, store.database, kind, of_kind) for kind, of_kind in here.items()}
        _check_references(connection, store.database, fresh)
        _check_judges(connection, store.database, fresh)
        fresh["reviewer"] = _who_is_new(fresh, here)
        added = {
            kind: tables.add_rows(connection, store.database, kind, [line.record for line in of_kind])
            for kind, of_kind in fresh.items()
            if of_kind
        }
        if added:
            tables.note_action(connection, who, now, "import", {}, {"file": source, "new": added})
        return AddedVotes(added, len(lines) - sum(added.values()))

    return store.database.write(work, alone=True)


def _check_times(line: Line, now: datetime) -> None:
    """Raises SourceError for a record of the future."""
    for name, value in line.record.items():
        if isinstance(value, datetime) and value > now + _CLOCKS_DIFFER_BY:
            raise _refused(line, f"{name}: {value.isoformat()} has not come yet", f"a time until now, {now.isoformat()}")


def _fresh(connection: sa.Connection, database: ResponseDatabase, kind: str, lines: Sequence[Line]) -> list[Line]:
    """The lines of a kind that are not there yet. Raises SourceError for one that contradicts what is there, or before it in the file."""
    known: dict[Hashable, Record] = {}
    for record in _there(connection, database, kind, lines):
        known |= dict.fromkeys(_keys(kind, record), record)
    fresh = []
    for line in lines:
        keys = _keys(kind, line.record)
        earlier = [known[key] for key in keys if key in known]
        content = _content(line, line.record)
        if any(_content(line, record) != content for record in earlier):
            raise _refused(
                line, f"{kind} {line.record[key_field(kind)]} is there already with other content", _ALLOWED_AGAIN.get(kind)
            )
        if not earlier:
            known |= dict.fromkeys(keys, line.record)
            fresh.append(line)
    return fresh


def _there(connection: sa.Connection, database: ResponseDatabase, kind: str, lines: Sequence[Line]) -> Iterator[Record]:
    """The records that are there under the ids of the lines; of votes also those of the same reviewers on the same pairs."""
    table, key = tables.TABLE_OF_KIND[kind], key_field(kind)
    looks: list[tuple[sa.ColumnElement[bool], set[str]]] = [
        (table.c[key].in_(database.listed), {line.record[key] for line in lines})
    ]
    if kind == "vote":
        # Pairs may have many more votes than those that are asked for. The ids of pairs are equally long, and looked up by an index.
        asked = database.listed.subquery()
        pair_ids = sa.select(sa.func.substr(asked.c[0], 1, _LENGTH_OF_PAIR_ID))
        same = sa.and_(table.c.pair_id.in_(pair_ids), (table.c.pair_id + table.c.reviewer_id).in_(database.listed))
        looks.append((same, {line.record["pair_id"] + line.record["reviewer_id"] for line in lines}))
    for found, keys in looks:
        statement = sa.select(table).where(found)
        for chunk in chunks(sorted(keys)):
            for row in connection.execute(statement, database.keys(chunk)).mappings():
                yield tables.record_of(kind, row)


def _keys(kind: str, record: Record) -> tuple[Hashable, ...]:
    """What no two records have in common."""
    if kind == "reviewer":
        return ((record["reviewer_id"], record["said_at"]),)
    if kind == "vote":
        return record["vote_id"], (record["pair_id"], record["reviewer_id"])
    return (record[key_field(kind)],)


def _content(line: Line, record: Record) -> Record:
    """What has to be the same in two records of one key. A vote under the same id may have come back under a pseudonym."""
    ignored = _MAY_DIFFER.get(line.kind, frozenset()) | (_OF_THE_STORE if line.is_ballot else frozenset())
    if line.kind == "vote" and not line.is_ballot and not line.record["justification"]:
        # An export may have left it out.
        ignored |= {"justification"}
    content = {name: value for name, value in record.items() if name not in ignored}
    # "A" of left and right is "B" of right and left: what counts is which response was preferred.
    return content | {"preferred": vote_of(record).preferred} if line.kind == "vote" else content


def _check_references(connection: sa.Connection, database: ResponseDatabase, fresh: Lines) -> None:
    """Raises SourceError for a record about something that is not there."""
    for kind, name, other in (
        ("response", "manifest_id", "manifest"),
        ("request", "run_id", "run"),
        ("request", "response_id", "response"),
        ("vote", "pair_id", "pair"),
        ("void", "vote_id", "vote"),
    ):
        wanted = {line.record[name] for line in fresh[kind]} - {None}
        found = _found(connection, database, other, wanted, fresh)
        for line in fresh[kind]:
            if line.record[name] is not None and line.record[name] not in found:
                raise _refused(line, f"{name}: {line.record[name]} {_NEITHER}")
    _check_requests(connection, database, fresh)
    wanted = {line.record[name] for line in fresh["pair"] for name in ("left_id", "right_id")}
    responses = _found(connection, database, "response", wanted, fresh)
    for line in fresh["pair"]:
        for name in ("left_id", "right_id"):
            response = responses.get(line.record[name])
            if response is None:
                raise _refused(line, f"{name}: {line.record[name]} {_NEITHER}")
            if any(response[one] != line.record[one] for one in _SHARED_BY_SIDES):
                raise _refused(line, f"{name}: {line.record[name]} is of another family, item or draw than the pair")


def _check_requests(connection: sa.Connection, database: ResponseDatabase, fresh: Lines) -> None:
    wanted = {line.record["response_id"] for line in fresh["request"]}
    found = _found(connection, database, "response", wanted, fresh)
    for line in fresh["request"]:
        if line.record["request_key"] not in (keys := found[line.record["response_id"]]["request_keys"]):
            raise _refused(line, "request_key: no request of the response has it", and_more(keys, 3) or "none")


def _check_judges(connection: sa.Connection, database: ResponseDatabase, fresh: Lines) -> None:
    """Raises SourceError for a person's vote under the id of a judge, known here or in the file. One that another store took before this was
    refused comes in: its exports can be imported."""
    of_people = [line for line in fresh["vote"] if line.is_ballot or line.is_of_another_tool]
    judges = judges_among(connection, database, {line.record["reviewer_id"] for line in of_people})
    judges |= {
        line.record["reviewer_id"]
        for kind in ("reviewer", "vote")
        for line in fresh[kind]
        if line.record["reviewer_kind"] == JUDGE_KIND
    }
    for line in of_people:
        if line.record["reviewer_id"] in judges:
            raise _refused(line, of_a_judge(line.record["reviewer_id"]), NOT_OF_A_JUDGE)


def _found(
    connection: sa.Connection, database: ResponseDatabase, kind: str, wanted: Iterable[str], fresh: Lines
) -> dict[str, Record]:
    """The records of these ids that are in the file or there."""
    key = key_field(kind)
    found = {line.record[key]: line.record for line in fresh[kind]}
    table = tables.TABLE_OF_KIND[kind]
    statement = sa.select(table).where(table.c[key].in_(database.listed))
    for chunk in chunks(sorted(set(wanted) - found.keys())):
        for row in connection.execute(statement, database.keys(chunk)).mappings():
            found[row[key]] = tables.record_of(kind, row)
    return found


def _who_is_new(fresh: Lines, by_kind: Lines) -> list[Line]:
    """The reviewers to add. A pseudonym all of whose votes are there already is somebody who is known by another name."""
    voting = {line.record["reviewer_id"] for line in fresh["vote"]}
    voted = {line.record["reviewer_id"] for line in by_kind["vote"]}
    return [
        line
        for line in fresh["reviewer"]
        if not line.record["pseudonymous"] or line.record["reviewer_id"] in voting or line.record["reviewer_id"] not in voted
    ]


def _refused(line: Line, problem: str, allowed: str | None = None) -> SourceError:
    return SourceError(problem, where=line.where, line=line.number, allowed=allowed or "a record that agrees with all others")

"""Votes, pairs and their responses as JSON lines, to archive them and to move them between stores.

An export is sorted and canonical: exported, imported into an empty store and exported again, it has the same bytes. An import reads all of
its file first and adds all of it or nothing, and nothing that contradicts the store.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

import sqlalchemy as sa

from dtef_pipeline.errors import BallotError, SourceError, StoreError
from dtef_pipeline.preference.vote_records import (
    BALLOT_KIND,
    ExportNames,
    Record,
    export_names,
    get_key_field,
    hash_export_contents,
    is_shown,
    read_record,
    record_line,
    vote_of,
)
from dtef_pipeline.preference.votes import Ballot
from dtef_pipeline.text.json_values import JsonFault, parse_json
from dtef_pipeline.text.number_words import list_first_names
from resources.file_systems import open_whole_file
from resources.responses.database import ResponseDatabase
from resources.votes import vote_tables as tables
from resources.votes.vote_queries import JUDGE_KIND, NOT_OF_A_JUDGE, find_judges, format_judge_refusal
from resources.votes.vote_store import VoteStore

EXPORT_ACTION = "export"
"""The name of an export in the actions of administrators. Its `contents` determine the pseudonyms of the export."""
_LONGEST_LINE = 8_000_000
"""Maximum bytes of a line."""
_NEITHER = "is neither in the store nor in the file"
_MAY_DIFFER: Mapping[str, frozenset[str]] = {
    "response": frozenset({"manifest_id", "names"}),
    "request": frozenset({"run_id"}),
    "pair": frozenset({"replaced", "blinding", "made_at"}),
    "vote": frozenset({"vote_id", "reviewer_id", "choice", "shown_as_a"}),
}
"""Fields in which two records of the same object may differ: who requested or paired it first does not matter, and more names may be known
later."""
_OF_THE_STORE = frozenset({"voted_at", "reviewer_kind"})
"""Fields of a vote that the store adds."""
_ALLOWED_AGAIN = {"vote": "one vote of a reviewer on a pair, of which the first stays, even if it is void"}
_CLOCKS_DIFFER_BY = timedelta(days=1)
"""Maximum time by which another computer's clock may be ahead of this one's."""
_LENGTH_OF_PAIR_ID = 32
_SHARED_BY_SIDES = ("family", "item_id", "draw")


class Line(NamedTuple):
    """One record of a file, with its position."""

    where: str
    number: int | None
    kind: str
    record: Record
    is_ballot: bool = False
    """Whether it is a reviewer's ballot, which has no time."""
    is_of_another_tool: bool = False
    """Whether it is from another tool and not from such a store."""

    def replace_values(self, **values: object) -> Line:
        """Return the line with these values in its record."""
        return self._replace(record=self.record | values)


Lines = Mapping[str, Sequence[Line]]
"""Lines by kind."""


def map_pair_ids(connection: sa.Connection, database: ResponseDatabase, lines: Lines) -> Lines:
    """Return the lines with the ids that pairs of the same responses have already here, or earlier in the file.

    Stores with different salts assign different ids. A ballot is on a pair that this store has shown, so it keeps its id.
    """
    pair_ids = {_get_sides(line.record): line.record["pair_id"] for line in reversed(lines["pair"])}
    columns = tables.pairs.c
    statement = sa.select(columns.pair_id, columns.left_id, columns.right_id).where(columns.left_id.in_(database.key_query))
    for row in tables.query_listed_rows(connection, database, statement, {left for left, _ in pair_ids}):
        pair_ids[_get_sides(row)] = row["pair_id"]
    own_id = {line.record["pair_id"]: pair_ids[_get_sides(line.record)] for line in lines["pair"]}
    return {
        kind: [
            line.replace_values(pair_id=own_id.get(line.record["pair_id"], line.record["pair_id"]))
            if kind in ("pair", "vote") and not line.is_ballot
            else line
            for line in kind_lines
        ]
        for kind, kind_lines in lines.items()
    }


def _get_sides(record: Mapping[str, Any] | sa.RowMapping) -> tuple[str, str]:
    return record["left_id"], record["right_id"]


def export_votes(store: VoteStore, path: Path, user: str = "", *, justifications: bool = True) -> int:
    """Write the store's content, except its salt and the actions of administrators, as JSON lines; return their number.

    Reviewers without consent appear under pseudonyms, their votes under ids of this export and with only the day. `user`: the exporter, for
    the record. `justifications`: False leaves out the texts of all people. Raises StoreError also if the file cannot be written.
    """
    records = store.database.read(_read_all_records)
    records["reviewer"] = _merge_reviewers(records)
    if not justifications:
        records["vote"] = [row | {"justification": ""} if row["reviewer_kind"] == "person" else row for row in records["vote"]]
    contents = hash_export_contents(records)
    lines = sorted(
        (kind, str(record[get_key_field(kind)]), record_line(kind, record))
        for kind, rows in _hide_reviewers(records, export_names(contents, store.salt)).items()
        for record in rows
    )
    details = {"file": str(path), "lines": len(lines), "contents": contents, "justifications": justifications}
    store.database.write(lambda connection: tables.record_action(connection, user, store.clock(), EXPORT_ACTION, {}, details))
    _write(path, (line for _, _, line in lines))
    return len(lines)


def import_votes(store: VoteStore, path: Path, user: str = "") -> VoteImportResult:
    """Add the records of a file. Existing records with the same content are left unchanged.

    Raises SourceError, with file and line, for a line that is no record, that contradicts the store, or whose pair or response is neither
    in the store nor in the file: nothing was added. Raises StoreError for an unreadable file.
    """
    return add_lines(store, list(read_lines(path)), user, str(path))


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the checked records of a file; blank lines are skipped. Raises SourceError with file and line."""
    try:
        with path.open("rb") as file:
            stream = gzip.GzipFile(fileobj=file) if _is_compressed(path) else file
            for number, line in enumerate(cast(Iterable[bytes], stream), 1):
                if line.strip():
                    yield Line(str(path), number, *_read(str(path), number, line))
    except (OSError, EOFError, zlib.error) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from None


def _read_all_records(connection: sa.Connection) -> dict[str, list[Record]]:
    """Return all records of one moment, by kind and ordered by id."""
    records = {}
    for kind, table in tables.TABLE_OF_KIND.items():
        rows = connection.execute(sa.select(table).order_by(*table.primary_key.columns)).mappings()
        records[kind] = [tables.record_of(kind, row) for row in rows]
    return records


def _merge_reviewers(records: Mapping[str, Sequence[Record]]) -> list[Record]:
    """Return the current record of each reviewer with a vote or a record; without a record, one without consent."""
    reviewers = tables.choose_latest_reviewers(records["reviewer"])
    for vote in records["vote"]:
        reviewers.setdefault(
            vote["reviewer_id"],
            {
                "reviewer_id": vote["reviewer_id"],
                "reviewer_kind": vote["reviewer_kind"],
                "consent": False,
                "pseudonymous": False,
                "said_at": None,
            },
        )
    return [reviewers[reviewer_id] for reviewer_id in sorted(reviewers)]


def _hide_reviewers(records: Mapping[str, list[Record]], names: ExportNames) -> Mapping[str, list[Record]]:
    """Return the records as exported: reviewers who may not be shown are hidden, with their votes and voids."""
    hidden = {row["reviewer_id"] for row in records["reviewer"] if not is_shown(row)}
    theirs = {row["vote_id"] for row in records["vote"] if row["reviewer_id"] in hidden}
    return {
        kind: [
            names.hide_names(kind, row) if row.get("reviewer_id") in hidden or row.get("vote_id") in theirs else row
            for row in rows
        ]
        for kind, rows in records.items()
    }


def _read(where: str, number: int, line: bytes) -> tuple[str, Record]:
    try:
        if len(line) > _LONGEST_LINE:
            raise BallotError(f"got a line of {len(line):,} bytes; allowed: {_LONGEST_LINE:,}")
        return read_record(parse_json(line))
    except BallotError as error:
        raise SourceError(str(error), where=where, line=number) from None
    except JsonFault as fault:
        raise SourceError(f"not JSON ({fault})", where=where, line=number, allowed="one JSON object a line") from None


def _write(path: Path, lines: Iterable[str]) -> None:
    # Without name and time in the compressed file, so that equal contents give equal bytes.
    with (
        open_whole_file(path) as file,
        gzip.GzipFile("", "wb", 6, file, mtime=0) if _is_compressed(path) else nullcontext(file) as stream,
    ):
        stream.writelines(f"{line}\n".encode() for line in lines)


def _is_compressed(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


class VoteImportResult(NamedTuple):
    """The result of an import: how many records of each kind are new, and how many existed already."""

    added: dict[str, int]
    known: int


def add_lines(store: VoteStore, lines: Sequence[Line], user: str, source: str) -> VoteImportResult:
    """Add records in one transaction, all or none; existing ones with the same content are left unchanged.

    Raises SourceError, with file and line, for a record that contradicts the store, or that refers to one neither there nor among the
    records.
    """
    now = store.clock()
    by_kind: dict[str, list[Line]] = {kind: [] for kind in tables.TABLE_OF_KIND}
    for line in lines:
        _check_times(line, now)
        if line.kind == BALLOT_KIND:
            # Only this store knows which response was shown as A, so a ballot becomes a vote here.
            record = store.vote_record(Ballot(**line.record), now)
            line = line._replace(kind="vote", record=record, is_ballot=True)
        by_kind[line.kind].append(line)

    def work(connection: sa.Connection) -> VoteImportResult:
        new_lines = _drop_own_pseudonyms(connection, store.salt, by_kind)
        local_lines = map_pair_ids(connection, store.database, new_lines)
        fresh = {kind: _filter_new(connection, store.database, kind, kind_lines) for kind, kind_lines in local_lines.items()}
        _check_references(connection, store.database, fresh)
        _check_judges(connection, store.database, fresh)
        fresh["reviewer"] = _find_new_reviewers(fresh, local_lines)
        counts = {
            kind: tables.add_rows(connection, store.database, kind, [line.record for line in kind_lines])
            for kind, kind_lines in fresh.items()
            if kind_lines
        }
        if counts:
            tables.record_action(connection, user, now, "import", {}, {"file": source, "new": counts})
        return VoteImportResult(counts, len(lines) - sum(counts.values()))

    return store.database.write(work, exclusive=True)


def _check_times(line: Line, now: datetime) -> None:
    """Raise SourceError for a future time."""
    for name, value in line.record.items():
        if isinstance(value, datetime) and value > now + _CLOCKS_DIFFER_BY:
            raise _make_refusal(line, f"{name}: {value.isoformat()} has not come yet", f"a time until now, {now.isoformat()}")


def _filter_new(connection: sa.Connection, database: ResponseDatabase, kind: str, lines: Sequence[Line]) -> list[Line]:
    """Return the new lines of a kind. Raises SourceError for one that contradicts the store or an earlier line."""
    by_key: dict[Hashable, Record] = {}
    for record in _read_existing(connection, database, kind, lines):
        by_key |= dict.fromkeys(_list_record_keys(kind, record), record)
    fresh = []
    for line in lines:
        keys = _list_record_keys(kind, line.record)
        earlier = [by_key[key] for key in keys if key in by_key]
        content = _extract_content(line, line.record)
        if any(_extract_content(line, record) != content for record in earlier):
            raise _make_refusal(
                line, f"{kind} {line.record[get_key_field(kind)]} exists already with other content", _ALLOWED_AGAIN.get(kind)
            )
        if not earlier:
            by_key |= dict.fromkeys(keys, line.record)
            fresh.append(line)
    return fresh


def _read_existing(connection: sa.Connection, database: ResponseDatabase, kind: str, lines: Sequence[Line]) -> Iterator[Record]:
    """Yield stored records with the ids of the lines; for votes also those of the same reviewers on the same pairs."""
    key = get_key_field(kind)
    yield from _read_records(connection, database, kind, key, {line.record[key] for line in lines})
    if kind == "vote":
        # Pairs may have many more votes than the requested ones. Pair ids have a fixed length and are found through an index.
        vote, subquery = tables.votes, database.key_query.subquery()
        pair_ids = sa.select(sa.func.substr(subquery.c[0], 1, _LENGTH_OF_PAIR_ID))
        condition = sa.and_(vote.c.pair_id.in_(pair_ids), (vote.c.pair_id + vote.c.reviewer_id).in_(database.key_query))
        keys = {line.record["pair_id"] + line.record["reviewer_id"] for line in lines}
        for row in tables.query_listed_rows(connection, database, sa.select(vote).where(condition), keys):
            yield tables.record_of(kind, row)


def _list_record_keys(kind: str, record: Record) -> tuple[Hashable, ...]:
    """Return the unique keys of a record."""
    if kind == "reviewer":
        return ((record["reviewer_id"], record["said_at"]),)
    if kind == "vote":
        return record["vote_id"], (record["pair_id"], record["reviewer_id"])
    return (record[get_key_field(kind)],)


def _extract_content(line: Line, record: Record) -> Record:
    """Return the fields that must agree in two records of one key. A vote with the same id may return under a pseudonym."""
    ignored_fields = _MAY_DIFFER.get(line.kind, frozenset()) | (_OF_THE_STORE if line.is_ballot else frozenset())
    if line.kind == "vote" and not line.is_ballot and not line.record["justification"]:
        # An export may lack it.
        ignored_fields |= {"justification"}
    content = {name: value for name, value in record.items() if name not in ignored_fields}
    # If left and right are swapped, A becomes B: the preferred response counts.
    return content | {"preferred": vote_of(record).preferred_side} if line.kind == "vote" else content


def _check_references(connection: sa.Connection, database: ResponseDatabase, fresh: Lines) -> None:
    """Raise SourceError for a record that refers to a missing one."""
    for kind, name, target in (
        ("response", "manifest_id", "manifest"),
        ("request", "run_id", "run"),
        ("request", "response_id", "response"),
        ("vote", "pair_id", "pair"),
        ("void", "vote_id", "vote"),
    ):
        ids = {line.record[name] for line in fresh[kind]} - {None}
        records = _find_records(connection, database, target, ids, fresh)
        for line in fresh[kind]:
            if line.record[name] is not None and line.record[name] not in records:
                raise _make_refusal(line, f"{name}: {line.record[name]} {_NEITHER}")
    _check_requests(connection, database, fresh)
    ids = {line.record[name] for line in fresh["pair"] for name in ("left_id", "right_id")}
    responses = _find_records(connection, database, "response", ids, fresh)
    for line in fresh["pair"]:
        for name in ("left_id", "right_id"):
            response = responses.get(line.record[name])
            if response is None:
                raise _make_refusal(line, f"{name}: {line.record[name]} {_NEITHER}")
            if any(response[column] != line.record[column] for column in _SHARED_BY_SIDES):
                raise _make_refusal(line, f"{name}: {line.record[name]} has another family, item or draw than the pair")


def _check_requests(connection: sa.Connection, database: ResponseDatabase, fresh: Lines) -> None:
    ids = {line.record["response_id"] for line in fresh["request"]}
    responses = _find_records(connection, database, "response", ids, fresh)
    for line in fresh["request"]:
        if line.record["request_key"] not in (keys := responses[line.record["response_id"]]["request_keys"]):
            raise _make_refusal(line, "request_key: no request of the response has it", list_first_names(keys, 3) or "none")


def _check_judges(connection: sa.Connection, database: ResponseDatabase, fresh: Lines) -> None:
    """Raise SourceError for a person's vote under the id of a judge, known here or in the file. Another store's vote from before this check
    is admitted, so that its exports can be imported.
    """
    person_votes = [line for line in fresh["vote"] if line.is_ballot or line.is_of_another_tool]
    judges = find_judges(connection, database, {line.record["reviewer_id"] for line in person_votes})
    judges |= {
        line.record["reviewer_id"]
        for kind in ("reviewer", "vote")
        for line in fresh[kind]
        if line.record["reviewer_kind"] == JUDGE_KIND
    }
    for line in person_votes:
        if line.record["reviewer_id"] in judges:
            raise _make_refusal(line, format_judge_refusal(line.record["reviewer_id"]), NOT_OF_A_JUDGE)


def _find_records(
    connection: sa.Connection, database: ResponseDatabase, kind: str, ids: Iterable[str], fresh: Lines
) -> dict[str, Record]:
    """Return the records with these ids in the file or the store."""
    key = get_key_field(kind)
    records = {line.record[key]: line.record for line in fresh[kind]}
    stored_records = _read_records(connection, database, kind, key, set(ids) - records.keys())
    return records | {record[key]: record for record in stored_records}


def _read_records(
    connection: sa.Connection, database: ResponseDatabase, kind: str, name: str, values: set[str]
) -> Iterator[Record]:
    """Yield stored records of a kind with one of these values in a field."""
    table = tables.TABLE_OF_KIND[kind]
    statement = sa.select(table).where(table.c[name].in_(database.key_query))
    return (tables.record_of(kind, row) for row in tables.query_listed_rows(connection, database, statement, values))


def _find_new_reviewers(fresh: Lines, by_kind: Lines) -> list[Line]:
    """Return the reviewers to add. A pseudonym whose votes all exist already is a reviewer known by another name."""
    voting = {line.record["reviewer_id"] for line in fresh["vote"]}
    voters = {line.record["reviewer_id"] for line in by_kind["vote"]}
    return [
        line
        for line in fresh["reviewer"]
        if not line.record["pseudonymous"] or line.record["reviewer_id"] in voting or line.record["reviewer_id"] not in voters
    ]


def _make_refusal(line: Line, problem: str, choices: str | None = None) -> SourceError:
    return SourceError(problem, where=line.where, line=line.number, allowed=choices or "a record that agrees with all others")


def _drop_own_pseudonyms(connection: sa.Connection, salt: str, lines: Lines) -> Lines:
    """Return the lines without the votes, voids and reviewers that this store's own exports show under pseudonyms: they are here already."""
    pseudonyms = {line.record["reviewer_id"] for line in lines["reviewer"] if line.record["pseudonymous"]}
    if not pseudonyms:
        return lines
    votes_of: dict[str, list[str]] = {name: [] for name in connection.scalars(sa.select(tables.reviewers.c.reviewer_id))}
    for vote_id, reviewer_id in connection.execute(sa.select(tables.votes.c.vote_id, tables.votes.c.reviewer_id)):
        votes_of.setdefault(reviewer_id, []).append(vote_id)
    exports = connection.scalars(sa.select(tables.actions.c.after).where(tables.actions.c.what == EXPORT_ACTION))
    own_ids = set[str]()
    for contents in {json.loads(text)["contents"] for text in exports}:
        names = export_names(contents, salt)
        for reviewer_id, vote_ids in votes_of.items():
            if (pseudonym := names.make_pseudonym(reviewer_id)) in pseudonyms:
                own_ids |= {pseudonym, *map(names.vote, vote_ids)}
    return {
        kind: [line for line in entries if own_ids.isdisjoint((line.record.get("reviewer_id"), line.record.get("vote_id")))]
        for kind, entries in lines.items()
    }

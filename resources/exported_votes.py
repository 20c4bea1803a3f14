"""Votes, pairs and their responses as JSON lines, to keep them and to move them between stores.

An export is sorted and canonical: exported, imported into an empty store and exported again, it is the same bytes. An import reads all of
its file first and adds all of it or nothing.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import sqlalchemy as sa

from dtef_pipeline.errors import BallotError, SourceError, StoreError
from dtef_pipeline.preference.pseudonyms import ExportNames, export_names, exported_contents, is_shown
from dtef_pipeline.preference.vote_records import Record, key_field, parsed_line, read_record, record_line
from resources import vote_tables as tables
from resources.added_votes import AddedVotes, add_lines
from resources.returned_votes import EXPORT_ACTION
from resources.vote_lines import Line
from resources.votes import VoteStore

_LONGEST_LINE = 8_000_000
"""Bytes."""


def export_votes(store: VoteStore, path: Path, who: str = "", *, justifications: bool = True) -> int:
    """Write the lines of `exported_lines` to a file; returns their number. Raises StoreError also when the file cannot be written."""
    lines = exported_lines(store, str(path), who, justifications=justifications)
    _write(path, lines)
    return len(lines)


def exported_lines(store: VoteStore, where: str, who: str = "", *, justifications: bool = True) -> list[str]:
    """All that the store holds, but its salt and the actions of administrators, as lines without their ends.

    Reviewers without consent are written under pseudonyms, their votes under ids of this export and with the day alone. `where` and `who`:
    what is written and who exports, for the record. `justifications`: False leaves out what people wrote, of all of them.

    Raises StoreError when the store cannot be read.
    """
    records = store.database.read(_everything)
    records["reviewer"] = _all_reviewers(records)
    if not justifications:
        records["vote"] = [one | {"justification": ""} if one["reviewer_kind"] == "person" else one for one in records["vote"]]
    contents = exported_contents(records)
    lines = sorted(
        (kind, str(record[key_field(kind)]), record_line(kind, record))
        for kind, rows in _renamed(records, export_names(contents, store.salt)).items()
        for record in rows
    )
    done = {"file": where, "lines": len(lines), "contents": contents, "justifications": justifications}
    store.database.write(lambda one: tables.note_action(one, who, store.clock(), EXPORT_ACTION, {}, done))
    return [line for _, _, line in lines]


def import_votes(store: VoteStore, path: Path, who: str = "") -> AddedVotes:
    """Add the records of a file. Those that are there already with the same content stay as they are.

    Raises SourceError, with file and line, for a line that is no record, that contradicts what is there, or that is about a pair or response
    that is neither there nor in the file: nothing was added. Or StoreError for a file that cannot be read.
    """
    return add_lines(store, list(read_lines(path)), who, str(path))


def read_lines(path: Path) -> Iterator[Line]:
    """The checked records of a file. Raises SourceError with file and line."""
    try:
        with path.open("rb") as file:
            opened = gzip.GzipFile(fileobj=file) if path.name.lower().endswith(".gz") else file
            yield from checked_lines(str(path), cast(Iterable[bytes], opened))
    except (OSError, EOFError, zlib.error) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from None


def checked_lines(where: str, lines: Iterable[bytes]) -> Iterator[Line]:
    """The checked records of lines; blank ones are passed over. Raises SourceError with `where` and the line."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield Line(where, number, *_read(where, number, line))


def _everything(connection: sa.Connection) -> dict[str, list[Record]]:
    """All records of one moment, by kind and in the order of their ids."""
    found = {}
    for kind, table in tables.TABLE_OF_KIND.items():
        rows = connection.execute(sa.select(table).order_by(*table.primary_key.columns)).mappings()
        found[kind] = [tables.record_of(kind, row) for row in rows]
    return found


def _all_reviewers(records: Mapping[str, Sequence[Record]]) -> list[Record]:
    """What holds of each reviewer who voted or of whom something was said; of one without a word, that nothing was."""
    found = tables.latest_reviewers(records["reviewer"])
    for vote in records["vote"]:
        found.setdefault(
            vote["reviewer_id"],
            {
                "reviewer_id": vote["reviewer_id"],
                "reviewer_kind": vote["reviewer_kind"],
                "consent": False,
                "pseudonymous": False,
                "said_at": None,
            },
        )
    return [found[one] for one in sorted(found)]


def _renamed(records: Mapping[str, list[Record]], names: ExportNames) -> Mapping[str, list[Record]]:
    """The records as they are told, with reviewers hidden who may not be shown, and what they did."""
    hidden = {one["reviewer_id"] for one in records["reviewer"] if not is_shown(one)}
    theirs = {one["vote_id"] for one in records["vote"] if one["reviewer_id"] in hidden}
    return {
        kind: [
            names.hidden(kind, one) if one.get("reviewer_id") in hidden or one.get("vote_id") in theirs else one for one in rows
        ]
        for kind, rows in records.items()
    }


def _read(where: str, number: int, line: bytes) -> tuple[str, Record]:
    try:
        if len(line) > _LONGEST_LINE:
            raise BallotError(f"got a line of {len(line):,} bytes; allowed: {_LONGEST_LINE:,}")
        return read_record(parsed_line(line))
    except BallotError as error:
        raise SourceError(str(error), where=where, line=number) from None
    except (ValueError, RecursionError) as error:
        said = f"{error.msg}, character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else "cannot be decoded"
        raise SourceError(f"not JSON ({said})", where=where, line=number, allowed="one JSON object a line") from None


def _write(path: Path, lines: Iterable[str]) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            # No name and no time in the compressed file, which would make it other bytes each time.
            compressed = path.name.lower().endswith(".gz")
            opened = gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) if compressed else file
            for line in lines:
                opened.write(f"{line}\n".encode())
            if compressed:
                opened.close()
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            part.unlink()

"""Reading a corpus: a JSON list of documents with metadata, or a folder with interviews as CSV files and a table of metadata.

Unusable entries are left out and reported.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dtef_pipeline.qa.model import ItemError
from dtef_pipeline.qa.transcripts.metadata import (
    FILE_FIELD,
    METADATA_FIELDS,
    Corpus,
    MetadataValue,
    SpokenTurn,
    Transcript,
    check_metadata,
    has_unreadable_text,
    read_metadata_cells,
    shorten_arrived_value,
)

INTERVIEW_COLUMNS = ("turn", "speaker", "role", "text")
_INTERVIEWS, _METADATA_TABLE = "interviews", "metadata.csv"
_DOCUMENT_FORM = '{"page_content": text, "metadata": {"FILE": text, ...}}'
_CORPUS_FORM = f"a JSON list of {_DOCUMENT_FORM}, or a folder with {_METADATA_TABLE} and {_INTERVIEWS}/*.csv"
_JSON_WHITE = " \t\r\n"
_MOST_TURN_DIGITS = 9


class CsvRow(NamedTuple):
    """One row of a CSV file with its first line, from 1."""

    line: int
    cells: list[str]


class _Log:
    """A log of errors in a corpus. `strict`: raise the first one."""

    def __init__(self, strict: bool) -> None:
        self._strict, self.found, self.ignored = strict, list[ItemError](), dict[str, None]()

    def add(self, error: ItemError) -> None:
        if self._strict:
            raise error
        self.found.append(error)

    def ignore(self, names: Iterable[Any]) -> None:
        self.ignored.update((str(name), None) for name in names if name not in METADATA_FIELDS)


def load_corpus(path: Path, *, strict: bool = False) -> Corpus:
    """Load the corpus of a file (a JSON list of `{page_content, metadata}`) or a folder (`metadata.csv` and `interviews/*.csv`).

    Documents of a list are numbered within their FILE, each as one turn without a speaker. Raises ItemError for a path without a usable
    corpus, and with `strict` for the first unusable entry.
    """
    log = _Log(strict)
    if path.is_dir():
        transcripts = _read_corpus_folder(path, log)
    elif path.is_file():
        transcripts = _read_corpus_list(path, log)
    else:
        raise ItemError("no corpus", where=str(path), arrived="no such file or folder", allowed=_CORPUS_FORM)
    if not transcripts:
        raise log.found[0] if log.found else ItemError("an empty corpus", where=str(path), allowed=_CORPUS_FORM)
    return Corpus(tuple(transcripts), tuple(log.found), tuple(log.ignored))


def _read_corpus_list(path: Path, log: _Log) -> list[Transcript]:
    numbers: Counter[str] = Counter()
    transcripts = []
    for line, value in _iterate_entries(_read_utf8(path), str(path)):
        try:
            metadata, content = _read_document(value, str(path), line)
        except ItemError as error:
            log.add(error)
            continue
        log.ignore(value["metadata"])
        file = str(metadata[FILE_FIELD])
        transcripts.append(Transcript(file, (SpokenTurn(numbers[file], content),), metadata))
        numbers[file] += 1
    return transcripts


def _read_document(value: Any, where: str, line: int) -> tuple[dict[str, MetadataValue], str]:
    """Return metadata and text of one entry. Raises ItemError if it is not a document."""
    content = value.get("page_content") if isinstance(value, dict) else None
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(content, str) or not isinstance(metadata, dict):
        raise ItemError("not a document", where=where, line=line, arrived=_describe_kinds(value), allowed=_DOCUMENT_FORM)
    if not content.strip() or has_unreadable_text(content):
        form = "text without NUL and unpaired surrogates, not blank"
        raise ItemError("page_content", where=where, line=line, arrived=shorten_arrived_value(content), allowed=form)
    return check_metadata(metadata, where, line), content


def _describe_kinds(value: Any) -> str:
    if not isinstance(value, dict):
        return f"a {type(value).__name__}"
    return (
        "{"
        + ", ".join(f"{shorten_arrived_value(str(key))}: {type(entry).__name__}" for key, entry in list(value.items())[:5])
        + "}"
    )


def _iterate_entries(text: str, where: str) -> Iterator[tuple[int, Any]]:
    """Yield line and value of each entry of a JSON list. Raises ItemError if the file is none."""
    decoder = json.JSONDecoder()
    place, line = _skip_white_space(text, 0), 1
    if not text.startswith("[", place):
        raise ItemError("not a corpus", where=where, line=1, arrived=shorten_arrived_value(text[:200]), allowed=_CORPUS_FORM)
    place, last_place, first = place + 1, 0, True
    while not text.startswith("]", place := _skip_white_space(text, place)):
        if not first:
            if not text.startswith(",", place):
                raise _make_corpus_json_error(text, place, where, "a comma or ] is missing")
            place = _skip_white_space(text, place + 1)
        first = False
        line, last_place = line + text.count("\n", last_place, place), place
        try:
            value, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            raise _make_corpus_json_error(text, error.pos, where, error.msg) from None
        except (ValueError, RecursionError):  # a number of thousands of digits, thousands of brackets
            raise _make_corpus_json_error(text, place, where, "too large or too deeply nested") from None
        yield line, value
    if text[place + 1 :].strip():
        raise _make_corpus_json_error(text, place + 1, where, "text after the list")


def _skip_white_space(text: str, place: int) -> int:
    while place < len(text) and text[place] in _JSON_WHITE:
        place += 1
    return place


def _make_corpus_json_error(text: str, place: int, where: str, problem: str) -> ItemError:
    line = text.count("\n", 0, place) + 1
    return ItemError("not JSON", where=where, line=line, arrived=problem, allowed=_CORPUS_FORM)


def _read_corpus_folder(path: Path, log: _Log) -> list[Transcript]:
    table = path / _METADATA_TABLE
    if not table.is_file():
        raise ItemError("no corpus", where=str(path), arrived=f"a folder without {_METADATA_TABLE}", allowed=_CORPUS_FORM)
    records = _read_metadata_rows(table, log)
    files = sorted((path / _INTERVIEWS).glob("*.csv"))
    for name in sorted(records.keys() - {file.name for file in files}):
        form = f"the name of a file in {_INTERVIEWS}/"
        log.add(ItemError("an interview without a file", where=str(table), line=records[name][0], arrived=name, allowed=form))
    transcripts = (_read_interview(file, records, log) for file in files)
    return [transcript for transcript in transcripts if transcript is not None]


def _read_metadata_rows(table: Path, log: _Log) -> dict[str, tuple[int, dict[str, MetadataValue]]]:
    """Return line and metadata by FILE. Raises ItemError if the nine columns are incomplete."""
    rows = iterate_csv_rows(table, log.add)
    header = _read_header(rows, METADATA_FIELDS, str(table))
    log.ignore(header)
    records: dict[str, tuple[int, dict[str, MetadataValue]]] = {}
    for row in rows:
        try:
            metadata = read_metadata_cells(_zip_cells(row, header, str(table)), str(table), row.line)
            file = str(metadata[FILE_FIELD])
            if file in records:
                raise ItemError("FILE occurs twice", where=str(table), line=row.line, arrived=file, allowed="one row per FILE")
            records[file] = row.line, metadata
        except ItemError as error:
            log.add(error)
    return records


def _read_interview(file: Path, records: dict[str, tuple[int, dict[str, MetadataValue]]], log: _Log) -> Transcript | None:
    """Return one interview, or None if it is unusable."""
    if file.name not in records:
        form = f"a row of {_METADATA_TABLE} for each interview"
        log.add(ItemError("an interview without metadata", where=str(file), arrived=file.name, allowed=form))
        return None
    try:
        rows = iterate_csv_rows(file, log.add)
        header = _read_header(rows, INTERVIEW_COLUMNS, str(file))
    except ItemError as error:
        log.add(error)
        return None
    turns: list[SpokenTurn] = []
    for row in rows:
        try:
            turns.append(_read_turn(row, header, str(file), turns[-1].number if turns else -1))
        except ItemError as error:
            log.add(error)
    if not turns:
        log.add(ItemError("an interview without turns", where=str(file), allowed=f"rows of {', '.join(INTERVIEW_COLUMNS)}"))
        return None
    return Transcript(file.name, tuple(turns), records[file.name][1])


def _read_turn(row: CsvRow, header: Sequence[str], where: str, before: int) -> SpokenTurn:
    """Read one turn. Raises ItemError for a row without text, and for an invalid number or one not above the last, `before`."""
    cells = _zip_cells(row, header, where)
    number, text = cells["turn"].strip(), cells["text"]
    is_number = number.isascii() and number.isdigit() and len(number) <= _MOST_TURN_DIGITS
    if not is_number or int(number) <= before:
        form = f"a whole number above {before}" if before >= 0 else "a whole number, 0 or more"
        raise ItemError("number of a turn", where=where, line=row.line, arrived=shorten_arrived_value(number), allowed=form)
    if not text.strip() or any(map(has_unreadable_text, row.cells)):
        raise ItemError(
            "text of a turn", where=where, line=row.line, arrived=shorten_arrived_value(text), allowed="text without NUL"
        )
    return SpokenTurn(int(number), text, cells["speaker"].strip() or "Unknown", cells["role"].strip() or None)


def iterate_csv_rows(path: Path, log: Any) -> Iterator[CsvRow]:
    """Yield the rows of a CSV file in UTF-8, including the header. A row that is not CSV is passed to `log` as an ItemError, and reading
    continues.

    Raises ItemError if the file is not UTF-8.
    """
    reader = csv.reader(io.StringIO(_read_utf8(path), newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            form = "cells of at most 131,072 characters between commas; a quotation mark inside a quoted cell is doubled"
            log(ItemError("not a row of CSV", where=str(path), line=line, arrived=str(error), allowed=form))
            continue
        if any(cell.strip() for cell in cells):
            yield CsvRow(line, cells)


def _read_header(rows: Iterator[CsvRow], columns: Sequence[str], where: str) -> list[str]:
    """Return the column names. Raises ItemError if one of `columns` is missing or duplicate."""
    header = [cell.strip() for cell in next(rows, CsvRow(1, [])).cells]
    if missing := [name for name in columns if header.count(name) != 1]:
        names = shorten_arrived_value(", ".join(header))
        raise ItemError(f"column {missing[0]} is missing or occurs twice", where=where, line=1, arrived=names, allowed=columns)
    return header


def _zip_cells(row: CsvRow, header: Sequence[str], where: str) -> dict[str, str]:
    if len(row.cells) != len(header):
        form = f"{len(header)}: {', '.join(header)}"
        raise ItemError("number of cells", where=where, line=row.line, arrived=len(row.cells), allowed=form)
    return dict(zip(header, row.cells, strict=True))


def _read_utf8(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        detail = f"byte 0x{data[error.start]:02x} at byte {error.start + 1:,} of the file"
        raise ItemError("the text is not UTF-8", where=str(path), line=line, arrived=detail, allowed="UTF-8") from None

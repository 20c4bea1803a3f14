"""Reading a corpus: a JSON list of documents with metadata, or a folder with interviews as CSV files and a table of metadata.

Unusable entries are left out and reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dtef_pipeline.qa.item_files.item_log import ItemLog, RowFault
from dtef_pipeline.qa.item_files.rows import find_member_lines, has_invalid_text, read_csv_cells, read_whole_json
from dtef_pipeline.qa.model import ItemError
from dtef_pipeline.qa.transcripts.metadata import (
    CORPUS_CODE,
    FILE_FIELD,
    METADATA_FIELDS,
    Corpus,
    MetadataValue,
    SpokenTurn,
    Transcript,
    check_metadata,
    read_metadata_cells,
)
from dtef_pipeline.text.shortening import shorten_to_line

INTERVIEW_COLUMNS = ("turn", "speaker", "role", "text")
_INTERVIEWS, _METADATA_TABLE = "interviews", "metadata.csv"
_DOCUMENT_FORM = '{"page_content": text, "metadata": {"FILE": text, ...}}'
_CORPUS_FORM = f"a JSON list of {_DOCUMENT_FORM}, or a folder with {_METADATA_TABLE} and {_INTERVIEWS}/*.csv"
_TEXT_FORM = "text without NUL and unpaired surrogates, not blank"
_MAX_TURN_DIGITS = 9
MetadataRows = Mapping[str, tuple[int, dict[str, MetadataValue]]]
"""Line and metadata by FILE."""


def load_corpus(path: Path, *, strict: bool = False) -> Corpus:
    """Load the corpus of a file (a JSON list of `{page_content, metadata}`) or a folder (`metadata.csv` and `interviews/*.csv`).

    Documents of a list are numbered within their FILE, each as one turn without a speaker. Raises ItemError for a path without a usable
    corpus, and with `strict` for the first unusable entry.
    """
    log = ItemLog(strict)
    if not path.exists():
        raise ItemError("no corpus", where=str(path), arrived="no such file or folder", allowed=_CORPUS_FORM)
    try:
        transcripts = _read_corpus_folder(path, log) if path.is_dir() else _read_corpus_list(path, log)
    except RowFault as fault:
        raise ItemError(fault.text, where=str(path), arrived=fault.found, allowed=_CORPUS_FORM) from None
    if not transcripts:
        if not log.findings:
            raise ItemError("an empty corpus", where=str(path), allowed=_CORPUS_FORM)
        raise ItemError(f"no document can be used: {log.findings[0]}", where=str(path))
    return Corpus(tuple(transcripts), log.findings)


def _make_fault(text: str, found: object, allowed: object) -> RowFault:
    return RowFault(CORPUS_CODE, text, found=found, allowed=str(allowed))


def _read_corpus_list(path: Path, log: ItemLog) -> list[Transcript]:
    file = read_whole_json(path)
    if not isinstance(file.value, list):
        raise _make_fault("not a corpus", type(file.value).__name__, _CORPUS_FORM)
    numbers: Counter[str] = Counter()
    transcripts = []
    for line, value in zip(find_member_lines(file.text), file.value, strict=True):
        try:
            metadata, content = _read_document(value)
        except RowFault as fault:
            log.log_error(fault, path, line)
            continue
        name = str(metadata[FILE_FIELD])
        transcripts.append(Transcript(name, (SpokenTurn(numbers[name], content),), metadata))
        numbers[name] += 1
    return transcripts


def _read_document(value: Any) -> tuple[dict[str, MetadataValue], str]:
    """Return metadata and text of one entry. Raises RowFault if it is not a document."""
    content, metadata = (value.get(key) if isinstance(value, dict) else None for key in ("page_content", "metadata"))
    if not isinstance(content, str) or not isinstance(metadata, dict):
        raise _make_fault("not a document", value, _DOCUMENT_FORM)
    if not content.strip() or has_invalid_text(content):
        raise _make_fault("page_content is not text", content, _TEXT_FORM)
    return check_metadata(metadata), content


def _read_corpus_folder(path: Path, log: ItemLog) -> list[Transcript]:
    table = path / _METADATA_TABLE
    if not table.is_file():
        raise _make_fault("no corpus", f"a folder without {_METADATA_TABLE}", _CORPUS_FORM)
    try:
        records = _read_metadata_rows(table, log)
    except RowFault as fault:
        raise ItemError(fault.text, where=str(table), arrived=fault.found, allowed=fault.allowed) from None
    files = sorted((path / _INTERVIEWS).glob("*.csv"))
    for name in sorted(records.keys() - {file.name for file in files}):
        lost = _make_fault("an interview without a file", name, f"the name of a file in {_INTERVIEWS}/")
        log.log_error(lost, table, records[name][0])
    transcripts = []
    for file in files:
        try:
            transcripts.append(_read_interview(file, records, log))
        except RowFault as fault:
            log.log_error(fault, file)
    return transcripts


def _read_table(path: Path, columns: Sequence[str], log: ItemLog) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and cells by column, without rows of blank cells. A row with another number of cells is logged.

    Raises RowFault if one of `columns` is missing.
    """
    rows = ((line, cells) for line, cells in read_csv_cells(path, log, strict=True) if any(cell.strip() for cell in cells))
    header = [cell.strip() for cell in next(rows, (1, []))[1]]
    if missing := [name for name in columns if header.count(name) != 1]:
        raise _make_fault(
            f"column {missing[0]} is missing or occurs twice", shorten_to_line(", ".join(header)), ", ".join(columns)
        )
    for line, cells in rows:
        if len(cells) == len(header):
            yield line, dict(zip(header, cells, strict=True))
        else:
            fault = _make_fault("too few or too many cells", len(cells), f"{len(header)}: {', '.join(header)}")
            log.log_error(fault, path, line)


def _read_metadata_rows(table: Path, log: ItemLog) -> MetadataRows:
    """Return line and metadata by FILE. Raises RowFault if the nine columns are incomplete."""
    records: dict[str, tuple[int, dict[str, MetadataValue]]] = {}
    for line, cells in _read_table(table, METADATA_FIELDS, log):
        try:
            metadata = read_metadata_cells(cells)
            if metadata[FILE_FIELD] in records:
                raise _make_fault("FILE occurs twice", metadata[FILE_FIELD], "one row per FILE")
            records[str(metadata[FILE_FIELD])] = line, metadata
        except RowFault as fault:
            log.log_error(fault, table, line)
    return records


def _read_interview(file: Path, records: MetadataRows, log: ItemLog) -> Transcript:
    """Return one interview. Raises RowFault if it is unusable."""
    if file.name not in records:
        raise _make_fault("an interview without metadata", file.name, f"a row of {_METADATA_TABLE} for each interview")
    turns: list[SpokenTurn] = []
    for line, cells in _read_table(file, INTERVIEW_COLUMNS, log):
        try:
            turns.append(_read_turn(cells, turns[-1].number if turns else -1))
        except RowFault as fault:
            log.log_error(fault, file, line)
    if not turns:
        raise _make_fault("an interview without turns", None, f"rows of {', '.join(INTERVIEW_COLUMNS)}")
    return Transcript(file.name, tuple(turns), records[file.name][1])


def _read_turn(cells: Mapping[str, str], before: int) -> SpokenTurn:
    """Read one turn. Raises RowFault for a row without text, and for an invalid number or one not above the last, `before`."""
    number, text = cells["turn"].strip(), cells["text"]
    is_number = number.isascii() and number.isdigit() and len(number) <= _MAX_TURN_DIGITS
    if not is_number or int(number) <= before:
        form = f"a whole number above {before}" if before >= 0 else "a whole number, 0 or more"
        raise _make_fault("number of a turn", number, form)
    if not text.strip() or any(map(has_invalid_text, cells.values())):
        raise _make_fault("text of a turn", text, _TEXT_FORM)
    return SpokenTurn(int(number), text, cells["speaker"].strip() or "Unknown", cells["role"].strip() or None)

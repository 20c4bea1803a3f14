"""Interviews: their metadata, from a file or as a filter, and the reading of a corpus.

A corpus is a JSON list of documents with metadata, or a folder with interviews as CSV files and a table of metadata. Unusable entries are
left out and reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.item_files.item_log import ItemFinding, ItemLog, RowFault
from dtef_pipeline.qa.item_files.rows import NEVER_IN_TEXT, find_member_lines, has_invalid_text, read_csv_cells, read_whole_json
from dtef_pipeline.qa.model import ItemError
from dtef_pipeline.text.shortening import shorten_to_line, shorten_value

METADATA_FIELDS = ("PROJECT", "YEAR", "MONTH", "NAME", "COUNTRY", "GEOGRAPHY", "FILE", "TYPE", "RECORD LANG")
"""Metadata fields of an interview. YEAR is a whole number, all others are text; FILE identifies the interview."""
YEAR_FIELD, FILE_FIELD = "YEAR", "FILE"
BETWEEN_TURNS = "\n\n"
"""Separator of two turns of a transcript."""

MetadataValue = str | int | None


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """One turn of a person in an interview."""

    number: int
    """From 0 in each interview, as quotations name it."""
    text: str
    speaker: str | None = None
    """None: the text is a whole document, which includes its speakers."""

    @property
    def transcript_line(self) -> str:
        """The turn as a line of the transcript: `Speaker: text`."""
        return self.text if self.speaker is None else f"{self.speaker}: {self.text}"


@dataclass(frozen=True)
class Transcript:
    """One interview, or one document of a file of documents."""

    file: str
    turns: tuple[SpokenTurn, ...]
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    """Keys are METADATA_FIELDS; None or absent: unknown."""

    @cached_property
    def text(self) -> str:
        """All turns, joined."""
        return BETWEEN_TURNS.join(turn.transcript_line for turn in self.turns)


@dataclass(frozen=True)
class Corpus:
    """The transcripts that could be read, and the errors of the others."""

    transcripts: tuple[Transcript, ...]
    errors: tuple[ItemFinding, ...] = ()
    """Findings on what was left out."""

    @cached_property
    def turns(self) -> Mapping[tuple[str, int], SpokenTurn]:
        """The turns by file and number."""
        return {(transcript.file, turn.number): turn for transcript in self.transcripts for turn in transcript.turns}

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The whole text of each file."""
        parts: dict[str, list[str]] = {}
        for transcript in self.transcripts:
            parts.setdefault(transcript.file, []).append(transcript.text)
        return {file: BETWEEN_TURNS.join(texts) for file, texts in parts.items()}

    def turn_text(self, file: str, turn: int | None) -> str | None:
        """Return the text of a turn, or of the whole file if `turn` is None or the file is a document without marked turns.

        Returns None if the file or the turn does not exist.
        """
        first = self.turns.get((file, 0))
        if turn is None or (first is not None and first.speaker is None):
            return self.texts.get(file)
        entry = self.turns.get((file, turn))
        return None if entry is None else entry.text


_LATEST_YEAR = 9999
_YEAR_DIGITS = re.compile(r"[0-9]{1,4}")
_A_YEAR = f"a whole number, 0-{_LATEST_YEAR}"
CORPUS_CODE = "corpus"
"""Code of findings on documents."""

METADATA_COLUMNS = {name: name.lower().replace(" ", "_") for name in METADATA_FIELDS}
"""The column of each field in tables: `RECORD LANG` is in `record_lang`."""


def check_metadata(values: Mapping[str, Any]) -> dict[str, MetadataValue]:
    """Return the known metadata fields of one interview. Raises RowFault for a value of the wrong kind, and without a FILE."""
    fields = {name: value for name in METADATA_FIELDS if (value := values.get(name)) is not None}
    for name, value in fields.items():
        if form := _describe_allowed_metadata(name, value):
            raise RowFault(CORPUS_CODE, f"metadata {name}", found=value, allowed=form)
    if not str(fields.get(FILE_FIELD, "")).strip():
        raise RowFault(CORPUS_CODE, "metadata without a FILE", allowed="the name of the interview")
    return fields


def read_metadata_cells(cells: Mapping[str, str]) -> dict[str, MetadataValue]:
    """Return `check_metadata` of a table's text cells: YEAR is read as a number, and an empty cell is missing."""
    values: dict[str, Any] = {name: cell for name, cell in cells.items() if cell.strip()}
    year = values.get(YEAR_FIELD, "").strip()
    if _YEAR_DIGITS.fullmatch(year):
        values[YEAR_FIELD] = int(year)
    return check_metadata(values)


def check_filter(where: Any) -> dict[str, str | int]:
    """Check the metadata that documents must have. None and an empty mapping match all documents.

    Raises ConfigError for a value that is not a mapping, for a key outside METADATA_FIELDS and for a value of the wrong kind: YEAR is a
    whole number, all others are text.
    """
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise ConfigError(
            f"filter: got {shorten_value(where)!r}; allowed: metadata and their values, such as {{'PROJECT': 'US-001'}}"
        )
    if unknown := [shorten_value(key) for key in where if key not in METADATA_COLUMNS]:
        raise ConfigError(f"filter: got the key {unknown[0]!r}; allowed: {', '.join(METADATA_FIELDS)}")
    for name, value in where.items():
        if form := _describe_allowed_metadata(name, value):
            raise ConfigError(
                f"filter: {name}: got {shorten_value(value)!r}; allowed: {form}; keys: {', '.join(METADATA_FIELDS)}"
            )
    return dict(where)


def parse_filter(texts: Sequence[str]) -> dict[str, str | int]:
    """Parse texts such as `PROJECT=US-002` and `YEAR=2024`. Raises ConfigError as `check_filter`, and for a text without `=` or a repeated
    key.
    """
    fields: dict[str, str | int] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name in fields:
            detail = f"{name} twice" if equals else repr(shorten_value(text))
            raise ConfigError(f"filter: got {detail}; allowed: KEY=VALUE, with each key once: {', '.join(METADATA_FIELDS)}")
        fields[name] = int(value) if name == YEAR_FIELD and _YEAR_DIGITS.fullmatch(value) else value
    return check_filter(fields)


def format_filter(where: Mapping[str, str | int]) -> str:
    """Return the canonical spelling of a filter, `PROJECT=US-002,YEAR=2024`: in the order of METADATA_FIELDS, with %2C and %25 for commas
    and percent signs."""
    values = {name: str(where[name]).replace("%", "%25").replace(",", "%2C") for name in METADATA_FIELDS if name in where}
    return ",".join(f"{name}={value}" for name, value in values.items())


def read_filter(text: str) -> dict[str, str | int]:
    """Read the spelling of `format_filter`. Raises ConfigError as `parse_filter`."""
    parts = text.split(",") if text else []
    return parse_filter([part.replace("%2C", ",").replace("%25", "%") for part in parts])


def replace_unreadable(text: str) -> str:
    """Replace NUL and unpaired surrogates, which no table can store, by U+FFFD."""
    return NEVER_IN_TEXT.sub("\ufffd", text)


def is_of_field(name: str, value: Any) -> bool:
    """Return whether a value is valid for this field."""
    return _describe_allowed_metadata(name, value) is None


def _describe_allowed_metadata(name: str, value: Any) -> str | None:
    """Describe the allowed values; None: the value is valid."""
    if name == YEAR_FIELD:
        is_year = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LATEST_YEAR
        return None if is_year else _A_YEAR
    return None if isinstance(value, str) and not has_invalid_text(value) else "text"


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
    return SpokenTurn(int(number), text, cells["speaker"].strip() or "Unknown")

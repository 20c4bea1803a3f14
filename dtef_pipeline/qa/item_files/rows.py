"""Rows of files in bounded memory: lines of JSON (also gzipped), CSV and Parquet. No file content raises any other error than RowFault."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from dtef_pipeline.qa.item_files.item_log import ItemLog, RowFault
from dtef_pipeline.text.number_words import format_count

JSON_LINES, CSV_ENDING, PARQUET_ENDING = (".jsonl", ".jsonl.gz"), ".csv", ".parquet"
TABLE_ENDINGS = (*JSON_LINES, CSV_ENDING, PARQUET_ENDING)
MAX_UNPACKED_BYTES = 200_000_000
"""Largest size of an uncompressed file; the largest published set has a tenth of it."""
LONGEST_ROW = 1_000_000
"""Largest size of one line of JSON, in bytes."""
_MAX_PARQUET_ROWS, _PARQUET_BATCH = 1_000_000, 1_000
_HEADER_CELLS = {"question", "answer"}
NEVER_IN_TEXT = re.compile("[\x00\ud800-\udfff]")
_OTHER_ENCODINGS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


class SourceRow(NamedTuple):
    """One row of a file."""

    number: int
    """Number of the row in the file, from 0, without the header; for lines of JSON, the number of the line."""
    line: int | None
    """First line of the row, from 1; None: the file has no lines."""
    values: Any
    """Cells of a CSV file without a header, else the row's value: a mapping if it is valid."""


class DuplicateKeys(dict[str, Any]):
    """A JSON object in which a key occurs twice."""

    duplicate_key: str


def has_invalid_text(text: str) -> bool:
    """Return whether a text contains an unpaired surrogate, an invalid byte, or the character NUL."""
    return bool(NEVER_IN_TEXT.search(text))


def read_json_lines(path: Path, log: ItemLog) -> Iterator[SourceRow]:
    """Yield the objects of a file with one JSON value per line; blank lines are skipped, invalid ones are logged."""
    with _open_rows(path) as file:
        for number, line in enumerate(_iterate_lines(file)):
            if isinstance(line, RowFault):
                log.log_error(line, path, number + 1)
            elif line.strip():
                try:
                    yield SourceRow(number, number + 1, parse_json_value(line, number + 1))
                except RowFault as fault:
                    log.log_error(fault, path, number + 1)


def parse_json_value(data: bytes, line: int | None = None) -> Any:
    """Parse a JSON value. Raises RowFault for other bytes. `line`: whether the data is one line of many, so that errors give its column
    only."""
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_mark_doubled_keys)
    except UnicodeDecodeError as error:
        raise RowFault(
            "encoding", "the text is not UTF-8", found=f"byte 0x{error.object[error.start]:02x}", allowed="UTF-8"
        ) from error
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if line else f"line {error.lineno}, column {error.colno}"
        around = error.doc[max(0, error.pos - 20) : error.pos + 20]
        problem = error.msg.removesuffix(" at")  # `Invalid control character at`
        raise RowFault("json", f"not readable as JSON ({problem} at {place})", found=around, allowed="JSON") from error
    except (ValueError, RecursionError) as error:
        reason = "lists are nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"
        raise RowFault("json", f"not readable as JSON: {reason}", allowed="JSON") from error


def _mark_doubled_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) == len(pairs):
        return mapping
    keys: set[str] = set()
    result = DuplicateKeys(mapping)
    result.duplicate_key = next(key for key, _ in pairs if key in keys or keys.add(key))  # type: ignore[func-returns-value]
    return result


def read_csv_rows(path: Path, log: ItemLog) -> Iterator[SourceRow]:
    """Yield the rows of a CSV file with all cells as text. Rows without cells are skipped and not counted.

    A first row with the cells `question` and `answer` is a header: each row is then a mapping by its names, in lower case.
    """
    header: list[str] = []
    for number, (line, cells) in enumerate(read_csv_cells(path, log)):
        names = [cell.strip().lower() for cell in cells]
        if number == 0 and set(names) >= _HEADER_CELLS:
            header = names
        elif header and len(cells) == len(header):
            yield SourceRow(number - 1, line, dict(zip(header, cells, strict=True)))
        elif header and cells:
            fault = RowFault(
                "columns", "too few or too many cells", found=len(cells), allowed=f"{len(header)}: {', '.join(header)}"
            )
            log.log_error(fault, path, line)
        elif cells:
            yield SourceRow(number, line, cells)


def read_csv_cells(path: Path, log: ItemLog, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield line and cells of each row; no cells if a row is unreadable, which is logged. `strict`: also a stray quotation mark is an error."""
    with _open_rows(path) as file:
        data = file.read(MAX_UNPACKED_BYTES + 1)
    if len(data) > MAX_UNPACKED_BYTES:
        raise _make_size_fault()
    reader = csv.reader(io.StringIO(data.decode("utf-8-sig", "surrogateescape"), newline=""), strict=strict)
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            text = "the row is not valid CSV, perhaps because a quotation mark is never closed"
            log.log_error(RowFault("csv", text, found=str(error), allowed="cells of at most 131,072 characters"), path, line)
            yield line, []
        else:
            if cells:
                yield line, cells
        line = reader.line_num + 1


def read_parquet_rows(path: Path, log: ItemLog) -> Iterator[SourceRow]:
    """Yield the rows of a Parquet file as mappings. Raises RowFault for a file that is not Parquet or is too large."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows > _MAX_PARQUET_ROWS:
                count = format_count(file.metadata.num_rows, "row")
                raise RowFault("too_large", "the file has too many rows", found=count, allowed=f"{_MAX_PARQUET_ROWS:,}")
            size = number = 0
            for batch in file.iter_batches(batch_size=_PARQUET_BATCH):
                size += batch.nbytes
                if size > MAX_UNPACKED_BYTES:
                    raise _make_size_fault()
                for values in batch.to_pylist():
                    yield SourceRow(number, None, values)
                    number += 1
    except RowFault:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise RowFault("unreadable", f"not readable as Parquet: {error}", allowed="a Parquet file") from error


def read_rows(path: Path, log: ItemLog) -> Iterator[SourceRow]:
    """Yield the rows of a file with any of the known endings. An error that ends the reading is logged."""
    total, is_empty = log.total, True
    try:
        for row in choose_reader(path)(path, log):
            is_empty = False
            yield row
    except RowFault as fault:
        log.log_error(fault, path)
    except (OSError, EOFError, zlib.error) as error:
        log.log_error(make_unreadable_fault(error), path)
    if is_empty and log.total == total:
        log.log_error(RowFault("empty", "the file has no rows"), path)


def choose_reader(path: Path) -> Callable[[Path, ItemLog], Iterator[SourceRow]]:
    """Return the reader of a file by the ending of its name, in any case. Raises RowFault for an unknown ending."""
    name = path.name.lower()
    if name.endswith(JSON_LINES):
        return read_json_lines
    if name.endswith(CSV_ENDING):
        return read_csv_rows
    if name.endswith(PARQUET_ENDING):
        return read_parquet_rows
    raise RowFault("ending", "the ending of the file name is unknown", found=path.name, allowed=TABLE_ENDINGS)


class JsonFile(NamedTuple):
    """A file that is one JSON value."""

    value: Any
    text: str


def read_whole_json(path: Path) -> JsonFile:
    """Read a file that is one JSON value. Raises RowFault for any other file."""
    try:
        with _open_rows(path) as file:
            data = file.read(MAX_UNPACKED_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise make_unreadable_fault(error) from error
    if len(data) > MAX_UNPACKED_BYTES:
        raise _make_size_fault()
    if not data.strip():
        raise RowFault("empty", "the file is empty")
    return JsonFile(parse_json_value(data), data.decode("utf-8-sig"))


_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},:]|[^\s"\[\]{},:]+', re.DOTALL)


def find_member_lines(text: str, key: str = "") -> list[int]:
    """Return the first line, from 1, of each member of the outermost list, or of the list under a key of the outermost object.

    The text must be JSON.
    """
    starts, depth, before, latest, inside, level = [], 0, "", "", False, 2 if key else 1
    for token in _JSON_TOKEN.finditer(text):
        mark = token[0]
        if inside and depth == level and before in ("[", ",") and mark != "]":
            starts.append(token.start())
        if mark in "[{":
            is_wanted = not key or (before == ":" and latest == f'"{key}"')
            inside = inside or (depth == level - 1 and mark == "[" and is_wanted)
            depth += 1
        elif mark in "]}":
            depth -= 1
            if inside and depth < level:
                break
        elif depth == 1 and mark[0] == '"':
            latest = mark
        before = mark
    ends = [match.start() for match in re.finditer("\n", text)]
    return [bisect_right(ends, start) + 1 for start in starts]


def make_unreadable_fault(error: Exception) -> RowFault:
    """Return the fault of a file that the system cannot read, or whose compressed data is damaged."""
    return RowFault("unreadable", f"the file cannot be read: {getattr(error, 'strerror', None) or error}")


def _open_rows(path: Path) -> IO[bytes] | gzip.GzipFile:
    with path.open("rb") as file:
        start = file.read(3)
    if start[:2] == b"\x1f\x8b":
        return gzip.open(path, "rb")
    if encoding := _OTHER_ENCODINGS.get(start[:2]):
        raise RowFault("encoding", "the text is not UTF-8", found=encoding, allowed="UTF-8")
    return path.open("rb")


def _iterate_lines(file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes | RowFault]:
    """Yield every line, or a fault if it is too long. Raises RowFault at the size limit of a file."""
    size = 0
    while line := file.readline(LONGEST_ROW + 1):
        size += len(line)
        is_long = len(line) > LONGEST_ROW
        while is_long and not line.endswith(b"\n") and (line := file.readline(LONGEST_ROW + 1)):
            size += len(line)
            if size > MAX_UNPACKED_BYTES:
                break
        if size > MAX_UNPACKED_BYTES:
            raise _make_size_fault()
        yield RowFault("long_row", "the line is too long", allowed=f"{LONGEST_ROW:,} bytes") if is_long else line


def _make_size_fault() -> RowFault:
    return RowFault("too_large", "the uncompressed file is too large", allowed=f"{MAX_UNPACKED_BYTES:,} bytes")

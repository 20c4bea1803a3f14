"""Files of items in a folder or of one table, and their rows in bounded memory: lines of JSON (also gzipped), CSV and Parquet.

No file content raises any other error than RowFault.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from dtef_pipeline.qa.item_files.item_log import ItemLog, RowFault

JSON_LINES, CSV_ENDING, PARQUET_ENDING = (".jsonl", ".jsonl.gz"), ".csv", ".parquet"
TABLE_ENDINGS = (*JSON_LINES, CSV_ENDING, PARQUET_ENDING)
MAX_UNPACKED_BYTES = 200_000_000
"""Largest size of an uncompressed file; the largest published set has a tenth of it."""
LONGEST_ROW = 1_000_000
"""Largest size of one line of JSON, in bytes."""
_MAX_PARQUET_ROWS = 1_000_000
_PARQUET_BATCH = 1_000
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
            if (n_rows := file.metadata.num_rows) > _MAX_PARQUET_ROWS:  # rows of nulls take no bytes
                raise RowFault("too_large", "the file has too many rows", found=f"{n_rows:,}", allowed=f"{_MAX_PARQUET_ROWS:,}")
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


_DECODER = json.JSONDecoder()
_BETWEEN_TOKENS = re.compile(r"[\s,:]*")


def find_member_lines(text: str, key: str = "") -> list[int]:
    """Return the first line, from 1, of each member of the outermost list, or of the list under a key of the outermost object.

    The text must be JSON and have the list.
    """
    place = _skip_to_token(text, 0) + 1
    while key:
        name, place = _DECODER.raw_decode(text, _skip_to_token(text, place))
        place = _skip_to_token(text, place)
        if name == key:
            place += 1
            break
        place = _DECODER.raw_decode(text, place)[1]
    lines, line, counted = [], 1, 0
    while text[start := _skip_to_token(text, place)] != "]":
        line, counted = line + text.count("\n", counted, start), start
        lines.append(line)
        place = _DECODER.raw_decode(text, start)[1]
    return lines


def _skip_to_token(text: str, place: int) -> int:
    match = _BETWEEN_TOKENS.match(text, place)
    return match.end() if match else place


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


ONE_PART = "all"
"""Part of suites without subjects."""
_SPLIT_NAME = re.compile(r"(?:(?P<name>.*)[_-])?(?P<split>test|dev|val|validation|train)", re.IGNORECASE)
_SHARD = re.compile(r"[-_.](?P<number>\d{1,9})-of-(?P<count>\d{1,9})(?:-[0-9a-f]{8,40})?\Z", re.IGNORECASE)
"""End of the name of one of several files of one table: `test-00000-of-00002`, optionally followed by a hash."""
_TEST = "test"


class SplitFiles(NamedTuple):
    """Files of a folder, in the order of their names."""

    items: list[Path]
    examples: list[Path]


def find_split_files(path: Path, log: ItemLog, *, examples: Sequence[str]) -> SplitFiles:
    """Find the files at a path: a single file, those of its folder `test`, or those in the folder itself that are of no other split.

    Args:
        path: a file, or a folder.
        log: receives an error if the folder has no such file.
        examples: splits to use as examples; the first that exists counts.
    """
    if path.is_dir():
        try:
            files = _split_folder(path, examples)
        except OSError as error:
            log.log_error(make_unreadable_fault(error), path)
            return SplitFiles([], [])
        if not files.items:
            log.log_error(RowFault("no_files", "the folder has no item files", allowed=TABLE_ENDINGS), path)
    else:
        files = _find_files_of_table(path, examples)
    _warn_of_missing_shards(files.items, log)
    return files


def name_without_split(path: Path) -> str:
    """Return a file's name without its split and ending: `abstract_algebra` for `abstract_algebra_test.csv`, `all` for `test.jsonl`."""
    return _parse_file_name(path).name or ONE_PART


def is_later_shard(file: Path, before: Path) -> bool:
    """Return whether a file is a later shard of the same table."""
    parsed, prior = _parse_file_name(file), _parse_file_name(before)
    return parsed.n_shards > 0 and parsed.table == prior.table and parsed.shard > prior.shard


class _FileName(NamedTuple):
    """The parts of a file's name, each empty or 0 if the name does not have it."""

    folder: Path
    name: str
    split: str
    n_shards: int
    shard: int

    @property
    def table(self) -> tuple[object, ...]:
        """All parts that the shards of a table share."""
        return self[:-1]


@lru_cache(maxsize=1024)
def _parse_file_name(path: Path) -> _FileName:
    ending = next((ending for ending in TABLE_ENDINGS[::-1] if path.name.lower().endswith(ending)), "")
    stem = path.name[: len(path.name) - len(ending)] if ending else path.stem
    shard = _SHARD.search(stem)
    stem = stem[: shard.start()] if shard else stem
    match = _SPLIT_NAME.fullmatch(stem)
    name, split = (match["name"] or "", match["split"].lower()) if match else (stem, "")
    return _FileName(path.parent, name, split, *((int(shard["count"]), int(shard["number"])) if shard else (0, 0)))


def _find_files_of_table(path: Path, examples: Sequence[str]) -> SplitFiles:
    """Return the file with all shards of its table, and the files with its examples."""
    table = _parse_file_name(path)
    try:
        neighbours = _split_folder(path.parent, examples).examples
        items = [file for file in _list_tables(path.parent) if file == path or _is_other_shard(file, table)]
    except OSError:  # a file may be read in a folder that may not be listed
        return SplitFiles([path], [])
    siblings = [file for file in neighbours if _parse_file_name(file).name == table.name and file != path]
    return SplitFiles(items if table.n_shards else [path], siblings if table.split in (_TEST, "") else [])


def _is_other_shard(file: Path, table: _FileName) -> bool:
    parsed = _parse_file_name(file)
    return parsed.table == table.table and parsed.shard != table.shard


def _warn_of_missing_shards(files: Sequence[Path], log: ItemLog) -> None:
    tables: dict[tuple[object, ...], list[Path]] = {}
    for file in files:
        tables.setdefault(_parse_file_name(file).table, []).append(file)
    for shards in tables.values():
        count = _parse_file_name(shards[0]).n_shards
        if len(shards) < count:
            text = "further files of the same table are missing"
            log.log_warning(RowFault("shards", text, found=f"{len(shards)} of {count}", allowed="all"), shards[0])


def _split_folder(folder: Path, examples: Sequence[str]) -> SplitFiles:
    test_folder = folder / _TEST
    tables = _list_tables(test_folder if test_folder.is_dir() else folder)
    siblings = [folder / split for split in examples] if test_folder.is_dir() else []
    siblings += [folder.parent / split for split in examples] if folder.name == _TEST else []
    example_files = next((files for sibling in siblings if (files := _list_tables(sibling))), [])
    example_files = example_files or next((files for split in examples if (files := _select_split(tables, split))), [])
    items = _select_split(tables, _TEST) or [file for file in tables if not _parse_file_name(file).split]
    return SplitFiles(items, example_files)


def _select_split(files: Sequence[Path], split: str) -> list[Path]:
    """Return the files of a split; if some are named only by the split, only those."""
    matches = [file for file in files if _parse_file_name(file).split == split]
    return [file for file in matches if not _parse_file_name(file).name] or matches


def _list_tables(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    files = (file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    return sorted((file for file in files if file.name.lower().endswith(TABLE_ENDINGS)), key=lambda file: file.name)

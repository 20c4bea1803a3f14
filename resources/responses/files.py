"""Raw responses as files, to move them between machines: Parquet, or JSON lines (optionally compressed), by suffix.

Files of any size are written and read in pages. An import checks the whole file before it adds anything, so a bad row means that nothing is
added; an interrupted import is completed by the same command.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq

from dtef_pipeline.asking.request import CANDIDATE, ROLES, Hash, Response
from dtef_pipeline.errors import ConfigError, StoreError
from dtef_pipeline.identity import request_key
from dtef_pipeline.text.json_values import JsonFault, parse_json
from resources.file_systems import open_whole_file
from resources.responses.database import RESPONSE_COLUMNS
from resources.responses.store import PAGE, RESPONSES, ResponseStore

SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz")

_LARGEST_COUNT = 2**31 - 1
_LARGEST_AMOUNT = 1e15


class ImportResult(NamedTuple):
    """Counts of a file's responses."""

    added: int
    known: int
    """Responses that exist already under the same request key; they are unchanged."""


def export_responses(store: ResponseStore, path: Path, *, models: Iterable[str] = (), snapshots: Iterable[str] = ()) -> int:
    """Write the responses of these models and snapshots (all if none are named), sorted by request key; return how many.

    The file appears complete or not at all, with the same bytes for the same responses.

    Raises:
        ConfigError: the suffix is none of `SUFFIXES`.
        StoreError: the store cannot be read or the file cannot be written.
    """
    write = _write_parquet if _find_suffix(path) == ".parquet" else _write_json_lines
    with open_whole_file(path) as file:
        return write(path, file, store.pages(models=list(models), snapshots=list(snapshots)))


def import_responses(store: ResponseStore, path: Path) -> ImportResult:
    """Add the responses of a file to the store; existing request keys are left unchanged.

    Raises:
        ConfigError: the suffix is none of `SUFFIXES`.
        StoreError: the file cannot be read, or a row is no response, or its request key is not the hash of its request: nothing was added.
    Or the store cannot be written.
    """
    for _ in _read_pages(path):
        pass
    n_added = total = 0
    for page in _read_pages(path):
        n_added += store.add(page)
        total += len(page)
    return ImportResult(n_added, total - n_added)


def _find_suffix(path: Path) -> str:
    for suffix in SUFFIXES:
        if path.name.lower().endswith(suffix):
            return suffix
    raise ConfigError(f"{path}: a file of responses ends in {', '.join(SUFFIXES)}")


def _write_parquet(_: Path, file: BinaryIO, pages: Iterable[pa.Table]) -> int:
    n_written = 0
    with pq.ParquetWriter(file, RESPONSES, compression="zstd") as writer:
        for page in pages:
            writer.write_table(page)
            n_written += len(page)
    return n_written


def _write_json_lines(path: Path, file: BinaryIO, pages: Iterable[pa.Table]) -> int:
    n_written = 0
    is_compressed = _find_suffix(path).endswith(".gz")
    # Without name and time in the compressed file, so that equal contents give equal bytes.
    stream = gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) if is_compressed else file
    for page in pages:
        stream.write("".join(map(_format_json_line, page.to_pylist())).encode())
        n_written += len(page)
    if is_compressed:
        stream.close()
    return n_written


def _format_json_line(row: dict[str, Any]) -> str:
    answered_at = row["answered_at"].isoformat(timespec="microseconds")
    return json.dumps(row | {"answered_at": answered_at}, ensure_ascii=False) + "\n"


def _read_pages(path: Path) -> Iterator[list[Response]]:
    """Yield the checked responses of a file."""
    rows = _read_parquet_rows(path) if _find_suffix(path) == ".parquet" else _read_json_rows(path)
    try:
        while page := [_parse_response(where, row) for where, row in islice(rows, PAGE)]:
            yield page
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from None


def _read_parquet_rows(path: Path) -> Iterator[tuple[str, object]]:
    number = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(PAGE):
            # Python's finest times are microseconds.
            times = [
                pa.timestamp("us", field.type.tz) if pa.types.is_timestamp(field.type) else field.type for field in batch.schema
            ]
            schema = pa.schema([field.with_type(kind) for field, kind in zip(batch.schema, times, strict=True)])
            for row in pa.Table.from_batches([batch]).cast(schema).to_pylist():
                number += 1
                yield f"{path}: row {number}", row


def _read_json_rows(path: Path) -> Iterator[tuple[str, object]]:
    with path.open("rb") as file:
        lines = gzip.GzipFile(fileobj=file) if _find_suffix(path).endswith(".gz") else file
        for number, line in enumerate(cast(Iterable[bytes], lines), 1):
            if line.strip():
                try:
                    yield f"{path}:{number}", parse_json(line)
                except JsonFault as fault:
                    raise StoreError(f"{path}:{number}: not JSON ({fault}); allowed: one JSON object per line") from None


def _is_number(kinds: type | UnionType, most: float, value: object) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool) and 0 <= cast(float, value) <= most


_Check = tuple[str, Callable[[Any], bool]]
"""Description of the allowed values, and a function that checks a value."""
_CHECKS: Mapping[Any, _Check] = {
    Hash: ("32 hexadecimal digits", lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None),
    str: ("text", lambda value: isinstance(value, str)),
    int: (f"a whole number from 0 to {_LARGEST_COUNT}", partial(_is_number, int, _LARGEST_COUNT)),
    float: (f"a number from 0 to {_LARGEST_AMOUNT:g}", partial(_is_number, int | float, _LARGEST_AMOUNT)),
    datetime: (
        "a time with its zone, such as 2026-01-31T12:00:00.000000+00:00",
        lambda value: isinstance(value, datetime) and value.tzinfo is not None,
    ),
}
_A_ROLE: _Check = (", ".join(ROLES), lambda value: value in ROLES)


def _parse_response(where: str, row: object) -> Response:
    """Return a row's response. Nullable columns may be absent, and so may the role, which earlier versions did not write."""
    if not isinstance(row, Mapping):
        raise StoreError(
            f"{where}: got {_truncate_value(row)}; allowed: an object with the columns {', '.join(RESPONSES.names)}"
        )
    if unknown := sorted(row.keys() - set(RESPONSES.names)):
        raise StoreError(f"{where}: unknown column {', '.join(unknown)}; allowed: {', '.join(RESPONSES.names)}")
    values = {name: row.get(name) for name in RESPONSES.names} | {"answered_at": _parse_time(row.get("answered_at"))}
    values["role"] = row.get("role", CANDIDATE)
    for column in RESPONSE_COLUMNS:
        name, value = column.name, values[column.name]
        choices, takes = _A_ROLE if name == "role" else _CHECKS[column.type]
        if not (column.nullable if value is None else takes(value)):
            text = _truncate_value(row[name]) if name in row else "no such column"
            raise StoreError(f"{where}: {name}: got {text}; allowed: {choices}{' or null' if column.nullable else ''}")
    return _check_key(where, Response(**cast(dict[str, Any], values)))


def _check_key(where: str, response: Response) -> Response:
    identity = (response.prompt_id, response.model_variant, response.draw, response.snapshot)
    try:
        expected = request_key(*identity)
    except UnicodeEncodeError:
        expected = "no hash, because a half character is in it"
    if response.request_key != expected:
        raise StoreError(
            f"{where}: request_key: got {response.request_key}; allowed: the hash of (prompt_id, model_variant, draw, snapshot), {expected}"
        )
    return response


def _parse_time(value: object) -> object:
    """Return a time in UTC, from text or a Parquet value, or any other value unchanged."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return value
    try:
        return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value
    except OverflowError:
        return None


def _truncate_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."

"""One-line explanations of errors for the user: where an error happened and what to do about it.

The project's own errors have such a message. Errors of the disk, of databases and of Dagster's storage get one here. An error arrives as
the exception, or as the class names and messages that Dagster stores: both are a chain of links, outermost first.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dtef_pipeline.documents import find_existing_parent
from resources.settings import Settings

_OURS = "dtef_pipeline.errors."
_DATABASES = ("sqlalchemy.", "sqlite3.", "psycopg", "alembic.")
_DUCKDB = ("duckdb.", "_duckdb.")
_LACKED_COLUMN = re.compile(r'Binder Error: (?:Referenced column|Table "\w+" does not have a column named) "(?P<name>\w+)"')
_OF_THE_DISK = re.compile(r"\[Errno \d+\] (?P<why>[^:\n]*)")
_DETAIL = re.compile(r"Detail: \[errno \d+\] (?P<why>[^\n]*)")
"""The system's message, at the end of a pyarrow error."""
_PATH = re.compile(r"'(?P<path>[^'\n]+)'")
_FULL = re.compile(r"No space left|disk is full|quota exceeded|File too large", re.IGNORECASE)
_CLOSED = re.compile(r"Permission denied|Read-only file system|readonly database|Operation not permitted", re.IGNORECASE)
_MAYBE_FULL = re.compile(r"disk I/O error|unable to open database file")
_FULL_BELOW = 5_000_000
"""Free disk space in bytes below which SQLite's "disk I/O error" counts as a full disk."""
_DAMAGED = re.compile(r"file is not a database|database disk image is malformed")
_AWAY = re.compile(
    r"(response store|database of Dagster).*(connection|translate host name|resolve host|authentication)", re.IGNORECASE
)
_NOT_SET = re.compile(r'You have attempted to fetch the environment variable "(\w+)" which is not set\..*')
"""Dagster's message about an unset variable that its settings name."""
_SERVERS = ("psycopg.", "psycopg2.")


class ErrorLink(NamedTuple):
    """One error of a chain. `kind`: its class, with the module unless built-in. `message`: its text."""

    kind: str
    message: str


def links(error: BaseException) -> list[ErrorLink]:
    """Return the exception and its causes, outermost first."""
    chain: list[ErrorLink] = []
    current: BaseException | None = error
    while current is not None:
        chain.append(ErrorLink(_name_error_kind(current), str(current)))
        current = current.__cause__
    return chain


def parse_error_chain(error: Any) -> Iterator[ErrorLink]:
    """Yield the links of an error stored by Dagster, whose messages read `module.Class: message`."""
    while error:
        kind, _, message = str(error.message).strip().partition(": ")
        yield ErrorLink(kind if kind.endswith(str(error.cls_name)) else str(error.cls_name), message)
        error = error.cause


def describe_error(chain: Iterable[ErrorLink], home: str | None = None) -> str | None:
    """Return the message for the first link of the chain that has one, or None if the error is an unexpected one.

    `home`: the folder of Dagster's storage, if not that of the settings.
    """
    for link in chain:
        if link.kind.startswith(_OURS):
            return link.message
        if link.kind.startswith(_DATABASES):
            place = home or str(Settings.read_environment().dagster_home)
            if link.message.removeprefix("(").startswith(_SERVERS) or link.kind.startswith(_SERVERS):
                return f"cannot use the database of Dagster that {place}/dagster.yaml names: {find_first_line(link)}"
            return f"cannot read or write the storage of Dagster in {place}: {find_first_line(link)}"
        if link.kind.startswith(_DUCKDB):
            if column := _LACKED_COLUMN.search(link.message):
                return (
                    f"the stored tables have no column {column['name']}, as tables of another version; run the family again, which costs "
                    "nothing where responses are stored"
                )
            action = "written" if "Could not write" in link.message else "read"
            return f"the tables cannot be {action}: {find_first_line(link)}"
        if _OF_THE_DISK.match(link.message):
            paths = _PATH.findall(link.message)
            return f"cannot {f'use {paths[-1]}' if paths else 'read or write a file'}: {reason(link.message)}"
    return None


def format_one_line(chain: Iterable[ErrorLink], home: str | None = None) -> str:
    """Return `describe_error`, or else the class and the first message line of the outermost error that is not Dagster's."""
    chain = list(chain)
    if description := describe_error(chain, home):
        return description
    error_lines = next((link for link in chain if not link.kind.startswith("dagster.")), chain[-1])
    return f"{error_lines.kind.rpartition('.')[2]}: {find_first_line(error_lines)}".removesuffix(": ")


def describe_start_failure(home: Path, error: Exception) -> str:
    """Return why Dagster does not start with its settings file, without Dagster's list of all allowed settings."""
    faults = [entry.message.rpartition("PostProcessingError: ")[2] for entry in getattr(error, "errors", None) or ()]
    error_lines = [fault.partition("\n")[0].partition(". Expected: ")[0] for fault in faults] or [format_one_line(links(error))]
    faults_text = "; ".join(
        dict.fromkeys(_NOT_SET.sub(r"it names the environment variable \1, which is not set", line) for line in error_lines)
    )
    return f"{home / 'dagster.yaml'}: Dagster does not start with it: {faults_text}"


def find_unset_variables(error: BaseException) -> list[str]:
    """Return the unset environment variables that Dagster's settings name, if they are the only reason why it does not start."""
    faults = [str(entry.message) for entry in getattr(error, "errors", None) or ()]
    error_lines = faults or [link.message for link in links(error)]
    matches = [_NOT_SET.search(line) for line in error_lines]
    # All faults of a list must be unset variables; otherwise the file must be corrected as well.
    if faults and not all(matches):
        return []
    return list(dict.fromkeys(match[1] for match in matches if match))


def find_first_line(link: ErrorLink) -> str:
    """Return the first non-empty line of the message, without the class names that libraries put before it."""
    lines = [line.strip() for line in link.message.splitlines() if line.strip()]
    if link.kind.endswith(".ValidationError") and len(lines) > 2:  # pydantic: a count, the field, its fault
        return f"{lines[0]}: {lines[1]}: {lines[2].partition(' [type=')[0]}"
    return escape_control_characters(re.sub(r"^\((?:\w+\.)+\w+\) ", "", lines[0])) if lines else ""


def escape_control_characters(message: str) -> str:
    """Replace each unprintable character, such as a terminal's control characters, with ?: the message may quote a damaged file."""
    return "".join(sign if sign.isprintable() else "?" for sign in message)


def reason(message: str) -> str:
    """Return `No space left on device` for `[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device`."""
    match = _DETAIL.search(message) or _OF_THE_DISK.match(message)
    return match["why"].strip() if match else message


def add_remedy(message: str, places: Mapping[str, str] | None = None) -> str:
    """Return the message with advice if a disk or database is the cause. `places`: of the settings, by environment variable."""
    roots = places if places is not None else Settings.read_environment().places()
    # If places are nested, the innermost.
    name, place = max(((n, p) for n, p in roots.items() if p and p in message), key=lambda pair: len(pair[1]), default=("", ""))
    elsewhere = f", or choose another place with {name}" if name else ""
    if _FULL.search(message) or (_MAYBE_FULL.search(message) and is_full(place)):
        return f"{message}; free space on that disk and repeat the command: stored data is kept, and only the rest is done"
    if _MAYBE_FULL.search(message):
        return f"{message}; check whether the disk is full or the folder is read-only; stored data is kept"
    if _CLOSED.search(message):
        return f"{message}; give this user write access{elsewhere}"
    if is_damaged(message):
        return f"{message}; replace it with a backup{elsewhere}"
    if _AWAY.search(message):
        return f"{message}; check that the server runs and that its address, user and password are right"
    return message


def is_damaged(message: str) -> bool:
    """Return whether a database reports that its file is damaged, so that retrying is useless."""
    return _DAMAGED.search(message) is not None


def is_full(place: str) -> bool:
    """Return whether the local disk of a path has less than 5 MB free."""
    return bool(place) and shutil.disk_usage(find_existing_parent(Path(place))).free < _FULL_BELOW


def _name_error_kind(error: BaseException) -> str:
    kind = type(error)
    # Our own classes are named by the error tree, wherever they are defined.
    ours = next((base for base in kind.__mro__ if base.__module__ == _OURS.rstrip(".")), None)
    if ours is not None:
        return f"{_OURS}{ours.__qualname__}"
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"

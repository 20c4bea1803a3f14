"""Names of snapshots, and their single order, and so which response is the latest. Boards, drift and lists all use it.

A snapshot has one position for all models and partitions: labels are compared over all scores. Its time is the date that its label begins
with, or else that of its first response. Within the day of a label, the first response decides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from dtef_pipeline.errors import ConfigError

if TYPE_CHECKING:
    import duckdb

MAX_SNAPSHOT_NAME = 64
NAME_WORDS = f"up to {MAX_SNAPSHOT_NAME} letters a to z, digits, '.', '_' and '-'"
"""The allowed form of a name, for messages."""
_SAFE = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9._-]{{,{MAX_SNAPSHOT_NAME - 1}}}")
"""A name becomes a folder, so it must be valid on any file system and object store."""
_DATED = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])|(?:19|20)[0-9]{6}(?![0-9A-SU-Za-z]))(?:[T ](?P<time>[0-9][0-9:]*))?"
)
_LIKE_A_DATE = re.compile(
    r"(?:19|20)[0-9]{2}[-._]?[0-9WQ]"  # 2026-1-31, 20261345, 2026-02, 2026W05
    r"|[0-9]{1,2}[-._][0-9]{1,2}[-._][0-9]{2}",  # 31.1.2026, 26-01-31
    re.IGNORECASE,
)
_DAY = timedelta(days=1)


def require_safe(name: str) -> str:
    """Return the name. Raises ConfigError if no snapshot may have it: a name becomes a folder and appears in commands and pages."""
    if not _SAFE.fullmatch(name) or ".." in name or name.endswith("."):
        raise ConfigError(
            f"snapshot {name!r}: allowed: {NAME_WORDS}, such as base, rerun-2 or 2026-01-31; without '..', and with no '.' or '-' at the "
            "beginning and no '.' at the end"
        )
    return name


def require_snapshot_name(name: str, names: Collection[str] = ()) -> str:
    """Return the name. Raises ConfigError, with the allowed forms, if no new snapshot may have it.

    `names`: existing names of partitions. They only have to be safe (`require_safe`), because their responses were paid for.
    """
    require_safe(name)
    if name in names:
        return name
    if _LIKE_A_DATE.match(name) and not _is_dated(name):
        raise ConfigError(
            f"snapshot {name!r} looks like a date but is not one; allowed: a date written as year-month-day, such as 2026-01-31, with a "
            "time as in 2026-01-31T0200 or with more words behind it, or a name that does not look like a date"
        )
    return name


def require_one_spelling(name: str, names: Iterable[str]) -> None:
    """Raise ConfigError if a stored name differs only in capitals: some file systems treat both as one folder."""
    if match := next((candidate for candidate in names if candidate != name and candidate.lower() == name.lower()), None):
        raise ConfigError(
            f"snapshot {name!r}: it differs from the stored {match!r} only in capitals; allowed: {match}, or another name"
        )


def parse_name_time(name: str) -> tuple[datetime, timedelta] | None:
    """Return the time (UTC, without a zone) that a name begins with, and its duration: a day for a date, zero for a time of day.

    Returns None if the name begins with no date.
    """
    match = _DATED.match(name)
    if match is None:
        return None
    try:
        day = datetime.fromisoformat(match["day"])
    except ValueError:
        return None
    time = _parse_day_and_time(match)
    return (day, _DAY) if time is None else (time, timedelta(0))


def snapshot_time(name: str, first_response: datetime | None) -> datetime | None:
    """Return when a snapshot was taken (UTC, without a zone): the time that its name begins with, or else that of its first response."""
    if (named := parse_name_time(name)) is not None:
        return named[0]
    return None if first_response is None else first_response.replace(tzinfo=None)


def _parse_day_and_time(match: re.Match[str]) -> datetime | None:
    """Return the day and time of a name, or None if it has no valid time."""
    try:
        return datetime.fromisoformat(f"{match['day']}T{match['time']}") if match["time"] else None
    except ValueError:
        return None


def _is_dated(name: str) -> bool:
    """Return whether the date that a name begins with, and its time if any, are valid."""
    match = _DATED.match(name)
    return (
        match is not None
        and parse_name_time(name) is not None
        and (not match["time"] or _parse_day_and_time(match) is not None)
    )


FIRST_LABEL = "base"
"""The default label; it precedes other labels without a known time."""
TIMES_TABLE = "snapshot_times"
"""Table of (snapshot, first_response) for all scores, in a connection whose `scores` are incomplete."""


def build_times_sql(scores: str) -> str:
    """Return the SQL of the rows of TIMES_TABLE from a relation with all scores. Rows without a model call have no time and are ignored."""
    return f"SELECT snapshot, min(answered_at) AS first_response FROM {scores} GROUP BY snapshot"


def snapshot_order(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the labels of all snapshots, earliest first. `connection` has `scores` and, if these are not all scores, TIMES_TABLE."""
    sql = "SELECT count(*) FROM information_schema.tables WHERE table_name = ?"
    has_times = connection.execute(sql, [TIMES_TABLE]).fetchall()[0][0]
    if not has_times and not has_several_snapshots(connection):
        return [label for (label,) in connection.execute("SELECT DISTINCT snapshot::VARCHAR FROM scores").fetchall()]
    rows = _query_times(connection, TIMES_TABLE) if has_times else read_snapshot_times(connection)
    return sort_snapshots({label: convert_microseconds(us) for label, us in rows})


def order_in(connection: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """Return the labels of all snapshots in a table with the columns `snapshot` and `answered_at`, earliest first."""
    return sort_snapshots(
        {label: convert_microseconds(us) for label, us in _query_times(connection, f"({build_times_sql(table)})")}
    )


def convert_microseconds(us: float | None) -> datetime | None:
    """Return the time (UTC) `us` microseconds after the start of 1970, or None if `us` is None."""
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC)


def has_several_snapshots(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether `scores` has at least two snapshots."""
    return bool(connection.execute("SELECT count(DISTINCT snapshot) > 1 FROM scores").fetchall()[0][0])


def read_snapshot_times(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, int | None]]:
    """Return the rows of TIMES_TABLE if `scores` has all scores; the first response is in microseconds since 1970."""
    return _query_times(connection, f"({build_times_sql('scores')})")


def _query_times(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, int | None]]:
    return connection.execute(f"SELECT snapshot::VARCHAR, epoch_us(first_response) FROM {table}").fetchall()


def take_times(connection: duckdb.DuckDBPyConnection, snapshot_times: Sequence[tuple[str, int | None]]) -> None:
    """Make the connection order its snapshots by all scores. `snapshot_times`: when each began."""
    connection.execute(f"CREATE TEMP TABLE {TIMES_TABLE} (snapshot VARCHAR, first_response TIMESTAMPTZ)")
    connection.executemany(f"INSERT INTO {TIMES_TABLE} VALUES (?, make_timestamptz(?))", [list(row) for row in snapshot_times])


def sort_snapshots(first_responses: Mapping[str, datetime | None]) -> list[str]:
    """Sort labels, earliest first, by the time of their first response (None if unknown, as without model calls).

    Labels without any time come first, where they hide no other. At equal times the first response decides, then the label, with `base`
    first and numbers in numeric order: n9 before n10.
    """
    return sorted(first_responses, key=lambda label: _sort_key(label, first_responses[label]))


def build_place_sql(order: Sequence[str]) -> str:
    """Return the SQL for the position of a row's `snapshot` in the order, from 1, or null if it is not in it."""
    labels = ", ".join("'{}'".format(label.replace("'", "''")) for label in order)
    return f"list_position([{labels}]::VARCHAR[], snapshot::VARCHAR)"


def among(order: Sequence[str], labels: Iterable[str]) -> list[str]:
    """Return the labels in the given order; any that it lacks come first."""
    label_set = set(labels)
    ordered_labels = [label for label in order if label in label_set]
    return [*sort_snapshots(dict.fromkeys(label_set.difference(ordered_labels))), *ordered_labels]


def _sort_key(label: str, first_response: datetime | None) -> tuple[Any, ...]:
    first = first_response.astimezone(UTC).replace(tzinfo=None) if first_response and first_response.tzinfo else first_response
    named = parse_name_time(label)
    time = first if named is None else named[0]
    if named is not None and first is not None and named[0] <= first < named[0] + named[1]:
        time = first
    return time is not None, time or datetime.min, first or datetime.min, label != FIRST_LABEL, _split_numbers(label), label


def _split_numbers(label: str) -> list[tuple[str, int, str]]:
    """Return each text and the number after it; numbers sort by count of digits, then by digits."""
    parts = re.split(r"([0-9]+)", label)
    numbers = [part.lstrip("0") for part in (*parts[1::2], "")]
    return [(text, len(number), number) for text, number in zip(parts[::2], numbers, strict=True)]

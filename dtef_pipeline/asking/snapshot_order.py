"""The single order of snapshots, and so which response is the latest. Boards, drift and lists all use it.

A snapshot has one position for all models and partitions: labels are compared over all scores. Its time is the date that its label begins
with, or else that of its first response. Within the day of a label, the first response decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb

from dtef_pipeline.asking.snapshot_name import parse_name_time

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

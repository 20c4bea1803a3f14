"""Snapshot names: which new ones are allowed, and the date that a name begins with. Stored names of any form can be read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from dtef_pipeline.errors import ConfigError

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

"""Snapshot labels: which new ones are allowed, and the date that a label begins with. Stored labels of any form can be read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from dtef_pipeline.errors import ConfigError

LONGEST_LABEL = 64
LABEL_WORDS = f"up to {LONGEST_LABEL} letters a to z, digits, '.', '_' and '-'"
"""The allowed form of a label, for messages."""
_SAFE = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9._-]{{,{LONGEST_LABEL - 1}}}")
"""Labels name folders, so they must be valid on any file system and object store."""
_DATED = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])|(?:19|20)[0-9]{6}(?![0-9A-SU-Za-z]))(?:[T ](?P<time>[0-9][0-9:]*))?"
)
_LIKE_A_DATE = re.compile(
    r"(?:19|20)[0-9]{2}[-._]?[0-9WQ]"  # 2026-1-31, 20261345, 2026-02, 2026W05
    r"|[0-9]{1,2}[-._][0-9]{1,2}[-._][0-9]{2}",  # 31.1.2026, 26-01-31
    re.IGNORECASE,
)
_DAY = timedelta(days=1)


def require_safe(label: str) -> str:
    """Return the label. Raises ConfigError if no snapshot may have it: labels name folders and appear in commands and pages."""
    if not _SAFE.fullmatch(label) or ".." in label or label.endswith("."):
        raise ConfigError(
            f"snapshot {label!r}: allowed: {LABEL_WORDS}, such as base, night-2 or 2026-01-31; without '..', and with no '.' or '-' at the "
            "beginning and no '.' at the end"
        )
    return label


def require_label(label: str, labels: Collection[str] = ()) -> str:
    """Return the label. Raises ConfigError, with the allowed forms, if no new snapshot may have it.

    `labels`: existing labels of partitions. They only have to be safe (`require_safe`), because their responses were paid for.
    """
    require_safe(label)
    if label in labels:
        return label
    if _LIKE_A_DATE.match(label) and not _is_dated(label):
        raise ConfigError(
            f"snapshot {label!r} looks like a date but is not one; allowed: a date written as year-month-day, such as 2026-01-31, with a "
            "time as in 2026-01-31T0200 or with more words behind it, or a label that does not look like a date"
        )
    return label


def require_one_spelling(label: str, labels: Iterable[str]) -> None:
    """Raise ConfigError if a stored label differs only in capitals: some file systems treat both as one folder."""
    if match := next((candidate for candidate in labels if candidate != label and candidate.lower() == label.lower()), None):
        raise ConfigError(
            f"snapshot {label!r}: it differs from the stored {match!r} only in capitals; allowed: {match}, or another label"
        )


def parse_label_time(label: str) -> tuple[datetime, timedelta] | None:
    """Return the time (UTC, without a zone) that a label begins with, and its duration: a day for a date, zero for a time of day.

    Returns None if the label begins with no date.
    """
    match = _DATED.match(label)
    if match is None:
        return None
    try:
        day = datetime.fromisoformat(match["day"])
    except ValueError:
        return None
    time = _parse_day_and_time(match)
    return (day, _DAY) if time is None else (time, timedelta(0))


def snapshot_time(label: str, first_response: datetime | None) -> datetime | None:
    """Return when a snapshot was taken (UTC, without a zone): the time that its label begins with, or else that of its first response."""
    if (named := parse_label_time(label)) is not None:
        return named[0]
    return None if first_response is None else first_response.replace(tzinfo=None)


def _parse_day_and_time(match: re.Match[str]) -> datetime | None:
    """Return the day and time of a label, or None if it has no valid time."""
    try:
        return datetime.fromisoformat(f"{match['day']}T{match['time']}") if match["time"] else None
    except ValueError:
        return None


def _is_dated(label: str) -> bool:
    """Return whether the date that a label begins with, and its time if any, are valid."""
    match = _DATED.match(label)
    return (
        match is not None
        and parse_label_time(label) is not None
        and (not match["time"] or _parse_day_and_time(match) is not None)
    )

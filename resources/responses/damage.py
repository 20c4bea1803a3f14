"""Detection of damage in an SQLite store's file, by SQLite itself."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

_STEPS_BETWEEN_LOOKS = 20_000
"""SQLite instructions between two checks of the clock."""
_INTERRUPTED = "interrupted"


def find_damage(path: Path, within_s: float) -> str | None:
    """Return the first fault that `PRAGMA quick_check` finds in the file, or None if the part read within this time has none.

    Creates and changes no file. Raises OSError if the file cannot be opened.
    """
    end = time.monotonic() + within_s
    # With this flag SQLite assumes exclusive access and creates no extra files.
    option = "" if path.with_name(f"{path.name}-wal").exists() else "&immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{option}", uri=True, timeout=within_s)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS_BETWEEN_LOOKS)
            report = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if _INTERRUPTED in str(error) or "locked" in str(error):
            return None
        raise OSError(str(error)) from error
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if report == "ok" else str(report).strip().splitlines()[-1]

"""A connection that dies after its transaction was committed, and before that was confirmed: the work is tried again."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from resources.responses.database import ResponseDatabase


def break_after_commit(database: ResponseDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the next writing transaction end so."""
    writing, broken = database._write_once, list[bool]()

    def breaks_once(work: Any, alone: bool) -> Any:
        found = writing(work, alone)
        if not broken:
            broken.append(True)
            raise sa.exc.OperationalError("COMMIT", {}, Exception("server closed the connection unexpectedly"))
        return found

    # Only of a server is a broken connection worth another try.
    monkeypatch.setattr(database, "_write_once", breaks_once)
    monkeypatch.setattr(database, "_is_passing", lambda error: True)

"""A folder in memory for what tests write: SQLite waits for the disk at each commit, and PostgreSQL's databases are thousands of files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

PLACE = Path("/dev/shm")
ROOM = 4 << 30
"""Bytes that are to be free. Containers often have 64 MB, and allow no programs there."""


def memory_folder() -> str | None:
    """None: there is none, or not one that is large enough and runs programs. Then tests write to the usual temporary folder."""
    if not os.access(PLACE, os.W_OK) or shutil.disk_usage(PLACE).free < ROOM:
        return None
    return None if os.statvfs(PLACE).f_flag & os.ST_NOEXEC else str(PLACE)

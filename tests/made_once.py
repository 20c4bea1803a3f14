"""Folders that the processes of one run of the tests share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first process to need it fills, while others that need it wait. To be copied, not changed."""
    own = factory.getbasetemp()
    together = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder, done = together / name, together / f"{name}.done"
    with FileLock(f"{folder}.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a process that failed half way
            folder.mkdir()
            make(folder)
            done.touch()
    return folder

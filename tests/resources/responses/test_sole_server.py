"""Who serves a response store alone, and who comes second."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

from resources.responses.sole_server import sole_server

_HOLD = """
import sys
from resources.responses.sole_server import sole_server
with sole_server(sys.argv[1]) as is_sole:
    print(is_sole, flush=True)
    sys.stdin.read()
"""


def test_the_second_server_of_a_store_learns_that_it_is_the_second(location: str) -> None:
    with sole_server(location) as first, sole_server(location) as second, sole_server(location) as third:
        assert (first, second, third) == (True, False, False)
    with sole_server(location) as again:
        assert again


def test_another_store_is_served_by_itself(tmp_path: Path) -> None:
    with sole_server(tmp_path / "one.sqlite") as one, sole_server(tmp_path / "two.sqlite") as two:
        assert one
        assert two


def test_a_server_that_is_killed_leaves_no_lock(location: str) -> None:
    command = [sys.executable, "-c", _HOLD, location]
    folder = Path(__file__).parents[3]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "True"
        with sole_server(location) as second:
            assert not second
        process.kill()
        process.wait()
    assert _is_free(location)


def _is_free(location: str) -> bool:
    """Whether the lock is free, within a minute: PostgreSQL notices after a moment that a client is gone."""
    deadline = monotonic() + 60
    while monotonic() < deadline:
        with sole_server(location) as is_sole:
            if is_sole:
                return True
        sleep(0.05)
    return False

"""A damaged page in the middle of a store is found, though its first and last rows can be read."""

from __future__ import annotations

from pathlib import Path

from resources.responses.damage import damage_of
from resources.responses.store import ResponseStore
from tests.made.responses import response

PAGE = 4096


def test_a_damaged_page_is_found_and_a_sound_store_has_none(tmp_path: Path) -> None:
    path = tmp_path / "responses.sqlite"
    with ResponseStore(path) as store:
        store.add([response(number, text="x" * 500) for number in range(2_000)])
        assert damage_of(path, 60) is None
    assert damage_of(path, 60) is None
    content = bytearray(path.read_bytes())
    middle = len(content) // PAGE // 2 * PAGE
    content[middle : middle + 40 * PAGE] = b"\xff" * 40 * PAGE
    path.write_bytes(content)
    assert damage_of(path, 60)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["responses.sqlite"]


def test_what_is_no_database_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "responses.sqlite"
    path.write_bytes(b"rubbish" * 900)
    assert damage_of(path, 60) == "file is not a database"

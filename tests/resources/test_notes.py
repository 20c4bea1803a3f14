"""Notes beside the tables: one per partition, read as they were written; a broken one is named, and hides no other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from dtef_pipeline.errors import WarehouseError
from resources.notes import Notes
from resources.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Noticed:
    key: str
    path: str
    number: int | None = None


NOTICED: Notes[Noticed] = Notes("noticed", Noticed, lambda one: one.key, "`dtef notice` writes it again")
ODD = "mmlu/Ünï ../\u2028x"


@pytest.fixture
def house(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse")


def files(house: Warehouse) -> list[Path]:
    return sorted(Path(house.root, "noticed").glob("*"))


def test_nothing_is_noted_in_a_warehouse_that_is_not_there(house: Warehouse) -> None:
    assert NOTICED.read_all(house) == []
    assert NOTICED.read(house, "a") is None
    NOTICED.delete(house, "a")
    assert not Path(house.root).exists()


@pytest.mark.parametrize("key", ["a/b", ODD, "x" * 400])
def test_a_note_is_read_as_it_was_written_whatever_its_key(house: Warehouse, key: str) -> None:
    NOTICED.write(house, Noticed(key, "ß\n", 3))
    assert NOTICED.read(house, key) == Noticed(key, "ß\n", 3)
    (file,) = files(house)
    assert file.suffix == ".json"


def test_all_notes_are_reported_by_key(house: Warehouse) -> None:
    for key in ("b", "c", "a"):
        NOTICED.write(house, Noticed(key, key))
    assert [one.key for one in NOTICED.read_all(house)] == ["a", "b", "c"]
    NOTICED.delete(house, "b")
    assert [one.key for one in NOTICED.read_all(house)] == ["a", "c"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"key": "a"}', '{"key": "a", "path": "p", "more": 1}', "\ud800"])
def test_a_broken_note_is_named_with_what_mends_it_and_hides_no_other(house: Warehouse, content: str) -> None:
    NOTICED.write(house, Noticed("a", "p"))
    (file,) = files(house)
    NOTICED.write(house, Noticed("b", "p"))
    file.write_bytes(content.encode(errors="surrogatepass"))
    with pytest.raises(WarehouseError, match=rf"{file.name}: cannot be read: .*; `dtef notice` writes it again"):
        NOTICED.read(house, "a")
    assert [one.key for one in NOTICED.read_all(house)] == ["b"]
    NOTICED.write(house, Noticed("a", "again"))
    assert NOTICED.read(house, "a") == Noticed("a", "again")


def test_files_that_are_no_notes_are_passed_over(house: Warehouse) -> None:
    NOTICED.write(house, Noticed("a", "p"))
    Path(house.root, "noticed", "notes.txt").write_text("mine", encoding="utf-8")
    Path(house.root, "noticed", "folder.json").mkdir()
    assert [one.key for one in NOTICED.read_all(house)] == ["a"]

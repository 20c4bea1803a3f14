"""Notes beside the tables, one per partition: a broken one is named, and hides no other; and what is noted of the files of items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dtef_pipeline.errors import WarehouseError
from resources.notes import Notes, QaSource, source_hash
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "items"
    (made / "test").mkdir(parents=True)
    (made / "test" / "a_test.csv").write_text("one", encoding="utf-8")
    (made / "b.csv").write_text("two", encoding="utf-8")
    return made


def test_the_hash_of_a_folder_is_of_names_and_contents(folder: Path) -> None:
    first = source_hash(folder)
    assert source_hash(folder) == first
    seen = {first}
    (folder / "b.csv").write_text("three", encoding="utf-8")
    seen.add(source_hash(folder))
    (folder / "b.csv").rename(folder / "c.csv")
    seen.add(source_hash(folder))
    (folder / "test" / "new.csv").touch()
    seen.add(source_hash(folder))
    (folder / "test" / "a_test.csv").rename(folder / "a_test.csv")
    seen.add(source_hash(folder))
    assert len(seen) == 5


def test_neither_the_place_of_a_folder_nor_its_hidden_files_count(folder: Path, tmp_path: Path) -> None:
    first = source_hash(folder)
    (folder / ".DS_Store").write_text("x", encoding="utf-8")
    assert source_hash(folder) == first
    assert source_hash(folder.rename(tmp_path / "elsewhere")) == first


def test_files_that_are_given_together_count_in_their_places(folder: Path) -> None:
    one, other = folder / "b.csv", folder / "test" / "a_test.csv"
    assert source_hash(one, None, None) == source_hash(one)
    assert len({source_hash(one), source_hash(other), source_hash(one, other), source_hash(other, one)}) == 4


def test_a_source_knows_its_partition_and_whether_its_files_are_there(folder: Path) -> None:
    source = QaSource("mmlu", "law", str(folder), None, None, source_hash(folder))
    assert (source.key, source.is_gone) == ("mmlu/law", False)
    assert replace(source, path=str(folder / "none")).is_gone

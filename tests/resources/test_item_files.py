"""What is noted of the files of items: a hash that moves with what is in them, and whether they are still there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from resources.item_files import QaSource, source_hash


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

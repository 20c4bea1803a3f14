"""Tables of which a file is broken: it is skipped with one warning, and one that was only replaced or removed is not broken."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from dtef_pipeline.errors import UnreadableFile
from resources.parquet_files import open_parquet
from resources.warehouse import FILES_NAMED, Warehouse
from tests.made.scores import scores_table

SEGMENTS = [f"country:c{n}" for n in range(4)]
ROUND = {"round": "S1"}


def fill(house: Warehouse) -> list[str]:
    """A file of one score for each segment; their paths."""
    for segment in SEGMENTS:
        house.write("scores", scores_table([{"segment": segment}]), **ROUND, segment=segment, snapshot="base")
    return house.files("scores")


def segments(connection: duckdb.DuckDBPyConnection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT segment FROM scores WHERE score IS NOT NULL ORDER BY 1").fetchall()]


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def house(tmp_path: Path, warnings: list[str]) -> Warehouse:
    return Warehouse(tmp_path / "it's [mine]", warnings.append)


def page(content: bytes) -> bytes:
    """Whole by what it says of itself, and damaged within."""
    return content[:20] + bytes(len(content) // 2) + content[20 + len(content) // 2 :]


@pytest.mark.parametrize("place", [0, 2], ids=["first", "third"])
@pytest.mark.parametrize("spoiled", [page, lambda content: content[:-100], lambda content: b""], ids=["page", "cut", "empty"])
def test_a_broken_file_is_skipped_with_one_warning(
    house: Warehouse, warnings: list[str], spoiled: Callable[[bytes], bytes], place: int
) -> None:
    file = Path(fill(house)[place])
    file.write_bytes(spoiled(file.read_bytes()))
    others = [segment for segment in SEGMENTS if segment != SEGMENTS[place]]
    assert house.query(segments, only=["scores"]) == others
    assert house.query(segments, only=["scores"], first=["S1"]) == others
    assert house.rows("scores", round="S1")["segment"].to_pylist() == others
    (line,) = warnings
    assert house.skipped == {str(file): line}
    assert str(file) in line
    assert line.endswith(f": dtef run --round S1 --segment {SEGMENTS[place]} --snapshot base --from-store")


def test_a_file_that_lacks_a_column_is_skipped(house: Warehouse, warnings: list[str]) -> None:
    for number, file in enumerate(fill(house), start=1):
        pq.write_table(pq.ParquetFile(file).read().drop_columns(["score"]), file)
        assert house.query(segments, only=["scores"]) == SEGMENTS[number:]
        assert file in warnings[-1]
        assert "it lacks score" in warnings[-1]


def test_of_many_the_first_are_named_and_the_others_counted(house: Warehouse, warnings: list[str]) -> None:
    for night in range(FILES_NAMED):
        house.write("scores", scores_table([{}]), **ROUND, segment="x", snapshot=str(night))
    for file in [*fill(house), *house.files("scores")]:
        Path(file).write_bytes(b"junk")
    assert house.query(segments, only=["scores"]) == []
    assert len(warnings) == FILES_NAMED + 1
    assert "4 more files" in warnings[-1]


def test_a_file_that_goes_or_comes_while_it_is_read_is_not_called_broken(house: Warehouse, warnings: list[str]) -> None:
    """A partition that is retired takes its files with it; one that is made anew replaces them."""
    files = fill(house)
    content = Path(files[1]).read_bytes()
    Path(files[1]).write_bytes(b"")
    calls = 0

    def racing(connection: duckdb.DuckDBPyConnection) -> list[str]:
        nonlocal calls
        calls += 1
        try:
            return segments(connection)
        finally:
            # By the time that someone looks at the files, all is well.
            Path(files[1]).write_bytes(content)
            shutil.rmtree(Path(files[2]).parent, ignore_errors=True)

    assert house.query(racing, only=["scores"]) == [SEGMENTS[0], SEGMENTS[1], SEGMENTS[3]]
    assert calls == 2
    assert warnings == []


def test_an_error_of_the_query_itself_is_raised_at_once(house: Warehouse) -> None:
    fill(house)
    calls = 0

    def wrong(connection: duckdb.DuckDBPyConnection) -> None:
        nonlocal calls
        calls += 1
        connection.execute("SELECT nothing FROM scores")

    with pytest.raises(duckdb.BinderException):
        house.query(wrong, only=["scores"])
    assert calls == 1


def test_other_tools_have_views_without_what_cannot_be_read(house: Warehouse) -> None:
    first, *_ = fill(house)
    content = Path(first).read_bytes()
    for spoiled, expected in ((b"junk", SEGMENTS[1:]), (content, SEGMENTS)):
        Path(first).write_bytes(spoiled)
        house.refresh_database()
        with duckdb.connect(f"{house.root}/dtef.duckdb", read_only=True) as connection:
            assert segments(connection) == expected


def test_in_an_object_store_too() -> None:
    house = Warehouse("mock:///bucket/prefix")
    first, *_ = fill(house)
    house.put(first, b"junk")
    assert house.query(segments, only=["scores"]) == SEGMENTS[1:]
    assert house.rows("scores", columns=["segment"])["segment"].to_pylist() == SEGMENTS[1:]
    assert list(house.skipped) == [first]


def test_the_stage_that_replaces_a_damaged_file_takes_it_as_absent(house: Warehouse, warnings: list[str]) -> None:
    file = fill(house)[0]
    at = {**ROUND, "segment": SEGMENTS[0], "snapshot": "base"}
    Path(file).write_bytes(b"junk")
    with pytest.raises(UnreadableFile) as raised:
        house.read("scores", **at)
    assert raised.value.remade_by == f"dtef run --round S1 --segment {SEGMENTS[0]} --snapshot base --from-store"
    assert house.read_earlier("scores", **at) is None
    assert file in warnings[0]
    house.query(segments, only=["scores"])
    house.write("scores", scores_table([{}]), **at)
    house.drop_readable_skips()
    assert house.skipped == {}


def test_a_file_that_the_system_refuses_is_not_replaced(
    house: Warehouse, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be whole: no command is named that makes it again, and no stage takes it as absent."""
    file = fill(house)[0]

    def refusing(fs: pafs.FileSystem, path: str) -> pa.NativeFile:
        if path == file:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return open_parquet(fs, path)

    monkeypatch.setattr("resources.parquet_files.open_parquet", refusing)
    with pytest.raises(UnreadableFile, match="Permission denied") as raised:
        house.read_earlier("scores", **ROUND, segment=SEGMENTS[0], snapshot="base")
    assert raised.value.kind == "refused"
    assert house.rows("scores", round="S1")["segment"].to_pylist() == SEGMENTS[1:]
    assert "Permission denied" in warnings[0]
    assert "--from-store" not in warnings[0]

"""Reading tables of which a file is broken: it is left out and named, and one that was only replaced or removed is not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.survey.tables import SURVEY_RESPONSES
from resources.table_reader import FILES_NAMED, TableReader
from resources.warehouse import Warehouse
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
def house(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "it's [mine]")


def page(content: bytes) -> bytes:
    """Whole by what it says of itself, and damaged within."""
    return content[:20] + bytes(len(content) // 2) + content[20 + len(content) // 2 :]


@pytest.mark.parametrize("place", [0, 2], ids=["first", "third"])
@pytest.mark.parametrize("spoiled", [page, lambda content: content[:-100], lambda content: b""], ids=["page", "cut", "empty"])
def test_a_broken_file_is_left_out_and_said_once(house: Warehouse, spoiled: Callable[[bytes], bytes], place: int) -> None:
    file = Path(fill(house)[place])
    file.write_bytes(spoiled(file.read_bytes()))
    said: list[str] = []
    reader = TableReader(house, said.append)
    others = [segment for segment in SEGMENTS if segment != SEGMENTS[place]]
    assert reader.query(segments, only=["scores"]) == others
    assert reader.query(segments, only=["scores"], first=["S1"]) == others
    assert reader.rows("scores", round="S1")["segment"].to_pylist() == others
    (line,) = said
    assert line.startswith(f"left out, since it cannot be read: {file}: ")
    assert line.endswith(f"--round S1 --segment {SEGMENTS[place]} --snapshot base --questions 1 --model baseline/uniform")
    assert list(reader.left_out.values()) == said


def test_one_that_lacks_a_column_is_left_out_unless_all_do(house: Warehouse) -> None:
    files = fill(house)
    for kept, file in enumerate(files):
        pq.write_table(pq.ParquetFile(file).read().drop_columns(["score"]), file)
        reader = TableReader(house)
        if kept < 3:
            assert reader.query(segments, only=["scores"]) == SEGMENTS[kept + 1 :]
            assert (
                "its columns are not those of the table, as in a file of another version: it lacks score"
                in reader.left_out[file]
            )
        else:
            again = r"scores is of another version: its files lack score; this makes the first of them again.*: dtef run --round S1 "
            with pytest.raises(WarehouseError, match=again):
                reader.query(segments, only=["scores"])
            assert reader.left_out == {}


def test_of_many_the_first_are_named_and_the_others_counted(house: Warehouse) -> None:
    for night in range(FILES_NAMED):
        house.write("scores", scores_table([{}]), **ROUND, segment="x", snapshot=str(night))
    for file in [*fill(house), *house.files("scores")]:
        Path(file).write_bytes(b"junk")
    said: list[str] = []
    reader = TableReader(house, said.append)
    assert reader.query(segments, only=["scores"]) == []
    assert (len(said), reader.more) == (FILES_NAMED, len(SEGMENTS))


def test_what_was_left_out_is_made_again_by_one_command_of_the_whole_round_or_of_its_segments(house: Warehouse) -> None:
    files = fill(house)
    for segment in SEGMENTS:
        house.write("survey_responses", SURVEY_RESPONSES.empty_table(), **ROUND, segment=segment)
    reader = TableReader(house)
    # How many questions were asked is told by the other segments, while there are any.
    for number, chosen, asked in ((2, " --segment country:c0 --segment country:c1", " --questions 1"), (4, "", "")):
        for file in files[:number]:
            Path(file).write_bytes(b"")
        reader.query(segments, only=["scores"])
        assert reader.remade_by() == [f"dtef run --round S1{chosen} --snapshot base{asked} --model baseline/uniform"]


def test_a_file_that_goes_or_comes_while_it_is_read_is_not_called_broken(house: Warehouse) -> None:
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

    reader = TableReader(house)
    assert reader.query(racing, only=["scores"]) == [SEGMENTS[0], SEGMENTS[1], SEGMENTS[3]]
    assert calls == 2
    assert reader.left_out == {}


def test_an_error_of_the_query_itself_is_raised_at_once(house: Warehouse) -> None:
    fill(house)
    asked = 0

    def wrong(connection: duckdb.DuckDBPyConnection) -> None:
        nonlocal asked
        asked += 1
        connection.execute("SELECT nothing FROM scores")

    with pytest.raises(duckdb.BinderException):
        TableReader(house).query(wrong, only=["scores"])
    assert asked == 1


def test_other_tools_have_views_without_what_cannot_be_read_and_a_table_that_names_it(house: Warehouse) -> None:
    first, *_ = fill(house)
    content = Path(first).read_bytes()
    Path(first).write_bytes(b"junk")
    reader = TableReader(house)
    reader.refresh_database()
    with duckdb.connect(f"{house.root}/dtef.duckdb", read_only=True) as connection:
        assert segments(connection) == SEGMENTS[1:]
        assert connection.execute("SELECT file FROM left_out").fetchall() == [(first,)]
    Path(first).write_bytes(content)
    TableReader(house).refresh_database()
    with duckdb.connect(f"{house.root}/dtef.duckdb", read_only=True) as connection:
        assert segments(connection) == SEGMENTS
        assert "left_out" not in connection.execute("SHOW TABLES").fetchall()


@pytest.mark.parametrize("place", [0, 2], ids=["first", "third"])
def test_in_an_object_store_too(place: int) -> None:
    house = Warehouse("mock:///bucket/prefix")
    file = fill(house)[place]
    house.put(file, b"junk")
    reader = TableReader(house)
    others = [segment for segment in SEGMENTS if segment != SEGMENTS[place]]
    assert reader.query(segments, only=["scores"]) == others
    assert reader.rows("scores", columns=["segment"])["segment"].to_pylist() == others
    assert list(reader.left_out) == [file]


def test_the_stage_that_writes_a_file_may_take_it_as_absent_and_is_told(house: Warehouse) -> None:
    file = fill(house)[0]
    at = {**ROUND, "segment": SEGMENTS[0], "snapshot": "base"}
    Path(file).write_bytes(b"junk")
    with pytest.raises(WarehouseError, match=r"cannot read .*this makes it again, with .*: dtef run --round S1"):
        house.read("scores", **at)
    assert house.read_earlier("scores", **at) is None
    house.write("scores", scores_table([{}]), **at)
    assert house.take_damaged() == [file]
    house.write("scores", scores_table([{}]), **at)
    assert house.take_damaged() == []

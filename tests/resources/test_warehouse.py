"""Parquet between the stages: where rows are kept, how they are replaced and read, and how broken files are skipped."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from dtef_pipeline.errors import UnreadableFile, WarehouseError
from dtef_pipeline.survey.boards.schemas import RELIABILITY
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.tables import BLUEPRINTS, SCORES, SURVEY_RESPONSES
from dtef_pipeline.tables import strip_descriptions
from resources import warehouse as module
from resources.parquet_files import open_parquet
from resources.warehouse import FILES_NAMED, Warehouse
from tests.made.scores import scores_table, survey_rows

KENYA = {"round": "S1", "segment": "country:kenya"}
CHILE = {"round": "S1", "segment": "country:chile"}


def files(house: Warehouse) -> list[str]:
    root = Path(house.root)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


class TestLayout:
    def test_a_partition_is_one_file_below_quoted_levels(self, house: Warehouse) -> None:
        house.write("survey_responses", survey_rows({}), **KENYA)
        house.write("scores", scores_table([{}]), snapshot="2026-01-31T02:00", **KENYA)
        assert files(house) == [
            "scores/round=S1/segment=country%3Akenya/snapshot=2026-01-31T02%3A00/part-0.parquet",
            "survey_responses/round=S1/segment=country%3Akenya/part-0.parquet",
        ]

    @pytest.mark.parametrize("name", ["a/b", "50% off", "../../up", "ümläut", "x=y", "it's", "a b?*[c]"])
    def test_any_name_is_quoted_and_comes_back(self, house: Warehouse, name: str) -> None:
        house.write("scores", scores_table([{"segment": name}]), round="S1", segment=name, snapshot=name)
        assert [path.count("/") for path in files(house)] == [4]
        assert house.values("scores", "segment", round="S1") == [name]
        assert house.values("scores", "snapshot", round="S1", segment=name) == [name]
        with house.connect() as connection:
            assert connection.execute("SELECT segment FROM scores").fetchall() == [(name,)]

    def test_rounds_are_listed_in_their_order_not_the_alphabets(self, house: Warehouse) -> None:
        for name in ("GD10", "GD6UK", "GD2", "GD6"):
            house.write("survey_responses", survey_rows({"round": name}), round=name, segment="country:kenya")
        assert house.values("survey_responses", "round") == ["GD2", "GD6", "GD6UK", "GD10"]
        assert house.values("survey_responses", "segment", round="GD2") == ["country:kenya"]
        assert house.values("survey_responses", "segment", round="GD3") == []

    def test_levels_are_given_from_the_left(self, house: Warehouse) -> None:
        with pytest.raises(WarehouseError, match=r"scores is kept by \('round', 'segment', 'snapshot'\); got \('segment',\)"):
            house.folder("scores", segment="x")
        with pytest.raises(WarehouseError, match=r"scores is kept by .*; got \('round', 'draw'\)"):
            house.folder("scores", round="S1", draw="0")
        with pytest.raises(WarehouseError, match=r"scores is written by .*; got \('round', 'segment'\)"):
            house.write("scores", scores_table([{}]), **KENYA)

    def test_an_unknown_table_lists_the_tables(self, house: Warehouse) -> None:
        with pytest.raises(WarehouseError, match=r"unknown table 'score'; tables: survey_responses, .*scores"):
            house.read("score")


class TestWriting:
    def test_files_hold_no_descriptions_so_that_rewording_one_changes_no_byte(self, house: Warehouse) -> None:
        rows = survey_rows({}).cast(SURVEY_RESPONSES)
        assert all(column.metadata for column in rows.schema)
        house.write("survey_responses", rows, **KENYA)
        file = Path(house.folder("survey_responses", **KENYA), "part-0.parquet")
        written = file.read_bytes()
        assert all(column.metadata is None for column in pq.read_schema(file))
        house.write("survey_responses", strip_descriptions(rows), **KENYA)
        assert file.read_bytes() == written

    def test_rows_read_and_rows_just_made_go_together_whichever_comes_first(self, house: Warehouse) -> None:
        made = survey_rows({}).cast(SURVEY_RESPONSES)
        house.write("survey_responses", made, **KENYA)
        read = house.read("survey_responses", **KENYA)
        assert read.equals(made)
        for rows in (pa.concat_tables([read, made]), pa.concat_tables([made, read])):
            house.write("survey_responses", rows, **KENYA)
            assert len(house.read("survey_responses", **KENYA)) == 2

    def test_a_reader_of_the_old_file_keeps_the_old_rows(self, house: Warehouse) -> None:
        house.write("survey_responses", survey_rows({"question_id": "old"}), **KENYA)
        with (Path(house.root) / files(house)[0]).open("rb") as opened:
            house.write("survey_responses", survey_rows({"question_id": "new"}), **KENYA)
            assert pq.ParquetFile(opened).read()["question_id"].to_pylist() == ["old"]
        assert house.read("survey_responses", **KENYA)["question_id"].to_pylist() == ["new"]

    def test_a_write_that_breaks_leaves_the_old_rows(self, house: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
        house.write("survey_responses", survey_rows({"question_id": "old"}), **KENYA)

        def breaks(rows: pa.Table, where: str, **_: object) -> None:
            Path(where).write_bytes(b"PAR1 half")
            raise OSError("no space left on device")

        monkeypatch.setattr(module.pq, "write_table", breaks)
        with pytest.raises(WarehouseError, match=r"cannot write .*part-0\.parquet: no space"):
            house.write("survey_responses", survey_rows({}), **KENYA)
        monkeypatch.undo()
        assert [path.name for path in Path(house.root).rglob("*") if path.is_file()] == ["part-0.parquet"]
        assert house.read("survey_responses")["question_id"].to_pylist() == ["old"]
        with house.connect() as connection:
            assert connection.execute("SELECT count(*) FROM survey_responses").fetchone() == (1,)

    def test_equal_rows_give_equal_bytes_however_they_are_chunked(self, house: Warehouse) -> None:
        rows = survey_rows({}, {}, {})
        chunked = pa.concat_tables([rows.slice(0, 1), rows.slice(1)])
        names = [dict(KENYA), dict(CHILE)]
        for at, table in zip(names, (rows, chunked), strict=True):
            house.write("survey_responses", table, **at)
        first, second = (Path(house.folder("survey_responses", **at), "part-0.parquet").read_bytes() for at in names)
        assert first == second

    def test_other_columns_are_refused_by_name(self, house: Warehouse) -> None:
        rows = survey_rows({}).drop_columns(["n"]).append_column("count", pa.array([1]))
        place = survey_rows({}).schema.get_field_index("n")
        with pytest.raises(WarehouseError, match=r"survey_responses: columns differ .*unexpected .*count.*lacking .*n: int32"):
            house.write("survey_responses", rows, **KENYA)
        with pytest.raises(WarehouseError, match=r"lacking \['n: int32'\]"):
            house.write("survey_responses", survey_rows({}).set_column(place, "n", pa.array([40], pa.int64())), **KENYA)
        assert files(house) == []


class TestReading:
    def test_a_level_reads_everything_below_it(self, house: Warehouse) -> None:
        for at in (KENYA, CHILE, {**CHILE, "round": "S2"}):
            house.write("survey_responses", survey_rows(at), **at)
        assert house.read("survey_responses", round="S1")["segment"].to_pylist() == ["country:chile", "country:kenya"]
        assert house.read("survey_responses", columns=["round"])["round"].to_pylist() == ["S1", "S1", "S2"]

    def test_what_is_not_there_is_named_with_what_is(self, house: Warehouse) -> None:
        with pytest.raises(WarehouseError, match=r"for round S9, segment x \(ingested rounds: none\)"):
            house.read("survey_responses", round="S9", segment="x")
        house.write("survey_responses", survey_rows({}), **KENYA)
        with pytest.raises(WarehouseError, match=r"no survey_responses for round S9 \(ingested rounds: S1\)"):
            house.read("survey_responses", round="S9")
        with pytest.raises(WarehouseError, match=r"no scores yet: nothing under .*/scores"):
            house.read("scores")

    def test_empty_is_the_schema_without_rows(self, house: Warehouse) -> None:
        assert house.read_or_empty("scores").schema == SCORES
        assert house.read_or_empty("blueprints", columns=["tokens"], **KENYA).schema == pa.schema([BLUEPRINTS.field("tokens")])
        assert len(house.read_or_empty("scores", snapshot="base", **KENYA)) == 0

    def test_files_of_two_versions_are_not_mixed_and_the_older_one_is_named(self, house: Warehouse) -> None:
        for name in ("2026-01-01", "2026-01-02"):
            house.write("scores", scores_table([{}]), snapshot=name, **KENYA)
        (older, _) = (Path(house.root) / path for path in files(house))
        pq.write_table(scores_table([{}]).drop_columns(["l2_corrected"]), older)
        with pytest.raises(
            WarehouseError, match=r"snapshot=2026-01-01/part-0.parquet: its columns are not those of the table.*l2_corrected"
        ):
            house.read("scores", **KENYA)
        assert len(house.read("scores", columns=["score"], **KENYA)) == 2


class TestViews:
    def test_only_tables_that_exist_have_a_view(self, house: Warehouse) -> None:
        with house.connect() as connection:
            assert connection.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchone() == (0,)
        house.write("survey_responses", survey_rows({}), **KENYA)
        house.write("scores", scores_table([{}]), snapshot="base", **KENYA)
        with house.connect() as connection:
            views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1").fetchall()
            columns = [name for name, *_ in connection.execute("SELECT * FROM survey_responses").description]
        assert views == [("scores",), ("survey_responses",)]
        assert columns == SURVEY_RESPONSES.names

    def test_another_process_reads_the_database_while_it_is_open_and_while_it_is_refreshed(self, house: Warehouse) -> None:
        house.write("survey_responses", survey_rows({}), **KENYA)
        database = house.refresh_database()
        assert database == Path(house.root) / "dtef.duckdb"
        with duckdb.connect(str(database), read_only=True) as held:
            assert held.execute("SELECT count(*) FROM survey_responses").fetchone() == (1,)
            house.write("scores", scores_table([{}, {"question_id": "q1"}]), snapshot="base", **KENYA)
            house.refresh_database()
            code = (
                f"import duckdb; print(duckdb.connect({str(database)!r}).execute('SELECT count(*) FROM scores').fetchone()[0])"
            )
            other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
            assert other.stdout.strip() == "2", other.stderr
            assert held.execute("SELECT n FROM survey_responses").fetchall() == [(40,)]
        assert [name for name in files(house) if "duckdb" in name] == ["dtef.duckdb"]

    def test_the_database_is_written_again_only_where_a_view_has_changed(self, house: Warehouse) -> None:
        def is_written_again() -> bool:
            database = Path(house.root) / "dtef.duckdb"
            before = database.stat().st_ino if database.exists() else None
            assert house.refresh_database() == database
            return database.stat().st_ino != before

        house.write("survey_responses", survey_rows({}), **KENYA)
        assert is_written_again()
        house.write("survey_responses", survey_rows({}), **CHILE)
        assert not is_written_again()
        house.write("reliability", RELIABILITY.empty_table())
        assert is_written_again()
        pq.write_table(pa.table({"of_another_version": [1]}), f"{house.folder('reliability')}/part-0.parquet")
        assert is_written_again()
        with duckdb.connect(f"{house.root}/dtef.duckdb", read_only=True) as connection:
            assert connection.execute("SELECT * FROM reliability").fetchall() == [(1,)]
        (Path(house.root) / "dtef.duckdb").unlink()
        assert is_written_again()

    def test_a_slow_query_writes_no_progress_into_the_output_of_a_command(self, house: Warehouse) -> None:
        # DuckDB's progress bar went to standard output after two seconds, and broke the JSON there.
        with house.connect() as connection:
            assert connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]

    def test_views_of_some_rounds_name_no_other_folder_and_meet_no_broken_file_of_another(self, house: Warehouse) -> None:
        for round_id in ("R1", "R2"):
            house.write("scores", scores_table([{"round": round_id}]), round=round_id, segment="country:c1", snapshot="base")
        broken = Path(house.folder("scores", round="R2", segment="country:c1", snapshot="base"), "part-0.parquet")
        broken.write_bytes(b"broken")
        with house.connect(only=["scores"], first=["R1"]) as connection:
            assert connection.execute("SELECT round FROM scores").fetchall() == [("R1",)]
            ((sql,),) = connection.execute("SELECT sql FROM duckdb_views() WHERE NOT internal").fetchall()
        assert sql.count("round=") == 1
        assert len(house.read("scores", round="R1")) == 1

    def test_views_see_rows_written_after_them(self, house: Warehouse) -> None:
        house.write("survey_responses", survey_rows({}), **KENYA)
        with house.connect(only=["survey_responses"]) as connection:
            house.write("survey_responses", survey_rows({}, {}), **CHILE)
            assert connection.execute("SELECT count(*) FROM survey_responses").fetchone() == (3,)


def test_dropping_a_segment_takes_its_rows_of_every_table_and_no_others(house: Warehouse) -> None:
    for at in (KENYA, CHILE):
        house.write("survey_responses", survey_rows(at), **at)
        for snapshot in ("base", "2026-01-01"):
            house.write("scores", scores_table([at]), snapshot=snapshot, **at)
    house.drop(SPACE, SPACE.key(*KENYA.values()))
    house.drop(SPACE, "S9/country:nowhere")
    assert all("chile" in name for name in files(house))
    assert len(files(house)) == 3


@pytest.mark.parametrize("root", ["{}", "mock:///bucket/prefix"])
def test_a_round_whose_last_segment_was_dropped_has_no_rows_left(root: str, tmp_path: Path) -> None:
    """Its empty folder was taken for a round, and what was then asked of the table failed in words of DuckDB."""
    house = Warehouse(root.format(tmp_path))
    house.write("scores", scores_table([KENYA]), snapshot="base", **KENYA)
    assert house.values("scores", "round") == ["S1"]
    house.drop(SPACE, SPACE.key(*KENYA.values()))
    assert house.values("scores", "round") == []


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

"""What is looked at to read a part of a large warehouse: counted in calls to the file system, which no machine's pace changes.

Not through DuckDB, which may hold Python's lock while it waits for a file system that is written in Python: `test_s3` counts requests there.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from dtef_pipeline.errors import WarehouseError
from resources.warehouse import Warehouse
from tests.made.scores import scores_table, survey_rows

ROUNDS, SEGMENTS = [f"R{n}" for n in range(1, 7)], [f"country:c{n}" for n in range(5)]


class Recording(pafs.FileSystemHandler):
    """Passes calls on, and notes each: `seen` has (call, path), and the number of names that listings returned."""

    def __init__(self, fs: pafs.FileSystem) -> None:
        self.fs, self.seen, self.listed = fs, list[tuple[str, str]](), 0

    @property
    def counts(self) -> Counter[str]:
        return Counter(call for call, _ in self.seen)

    def get_type_name(self) -> str:
        return "recording"

    def get_file_info(self, paths: list[str]) -> Any:
        self.seen += [("look", path) for path in paths]
        return self.fs.get_file_info(paths)

    def get_file_info_selector(self, selector: pafs.FileSelector) -> Any:
        self.seen.append(("list", selector.base_dir))
        found = self.fs.get_file_info(selector)
        self.listed += len(found)
        return found

    def open_input_file(self, path: str) -> Any:
        self.seen.append(("open", path))
        return self.fs.open_input_file(path)

    def open_input_stream(self, path: str) -> Any:
        self.seen.append(("open", path))
        return self.fs.open_input_stream(path)

    def normalize_path(self, path: str) -> str:
        return str(self.fs.normalize_path(path))

    def _unexpected(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("reading changes nothing")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _unexpected
    move = copy_file = open_output_stream = open_append_stream = _unexpected


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("wh")
    house = Warehouse(root)
    for round_id in ROUNDS:
        for segment in SEGMENTS:
            at = {"round": round_id, "segment": segment}
            house.write("survey_responses", survey_rows(at), **at)
            house.write("scores", scores_table([at]), snapshot="base", **at)
    return root


@pytest.fixture
def watched(filled: Path) -> tuple[Warehouse, Recording]:
    house, handler = Warehouse(filled), Recording(pafs.LocalFileSystem())
    house.fs = pafs.PyFileSystem(handler)
    return house, handler


def test_a_partition_is_opened_without_a_look_around(watched: tuple[Warehouse, Recording]) -> None:
    house, seen = watched
    assert len(house.read("scores", round="R3", segment="country:c1", snapshot="base")) == 1
    assert seen.counts == {"open": 1}


def test_a_partition_that_is_not_there_costs_one_call(watched: tuple[Warehouse, Recording]) -> None:
    house, seen = watched
    assert len(house.read_or_empty("scores", round="R9", segment="country:c1", snapshot="base")) == 0
    assert seen.counts == {"open": 1}
    with pytest.raises(WarehouseError, match="no scores for round R9, segment country:c1, snapshot base: nothing under"):
        house.read("scores", round="R9", segment="country:c1", snapshot="base")


def test_a_round_is_one_listing_of_its_own_folder_and_its_files(watched: tuple[Warehouse, Recording]) -> None:
    house, seen = watched
    assert len(house.read("scores", round="R3", columns=["score"])) == len(SEGMENTS)
    assert seen.counts == {"list": 1, "open": len(SEGMENTS)}
    assert all("/scores/round=R3" in path for _, path in seen.seen)
    assert seen.listed == 3 * len(SEGMENTS)  # segment folder, snapshot folder, file


def test_what_rounds_and_segments_there_are_is_one_listing_of_one_level(watched: tuple[Warehouse, Recording]) -> None:
    house, seen = watched
    assert house.values("survey_responses", "round") == ROUNDS
    assert house.values("survey_responses", "segment", round="R3") == SEGMENTS
    assert seen.counts == {"list": 2}
    assert seen.listed == len(ROUNDS) + len(SEGMENTS)


class TestFolders:
    """A warehouse in a folder, which DuckDB reads by itself."""

    def test_views_of_some_rounds_name_no_other_folder(self, filled: Path) -> None:
        with Warehouse(filled).connect(only=["scores"], first=["R2", "R5"]) as connection:
            ((sql,),) = connection.execute("SELECT sql FROM duckdb_views() WHERE NOT internal").fetchall()
            assert connection.execute("SELECT DISTINCT round FROM scores ORDER BY 1").fetchall() == [("R2",), ("R5",)]
        assert sql.count("round=") == 2
        assert sql.count("/scores/round=") == 2

    def test_a_broken_file_of_another_round_is_not_met(self, tmp_path: Path) -> None:
        house = Warehouse(tmp_path / "wh")
        for round_id in ("R1", "R2"):
            at = {"round": round_id, "segment": "country:c1", "snapshot": "base"}
            house.write("scores", scores_table([{"round": round_id}]), **at)
        Path(house.folder("scores", round="R2"), "segment=country%3Ac1", "snapshot=base", "part-0.parquet").write_bytes(
            b"broken"
        )
        with house.connect(only=["scores"], first=["R1"]) as connection:
            assert connection.execute("SELECT count(*) FROM scores").fetchone() == (1,)
        assert len(house.read("scores", round="R1")) == 1

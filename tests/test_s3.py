"""A warehouse in an object store: the whole pipeline through the command, against a server that speaks S3."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.survey.identity import SPACE
from resources.site_writer import find_site_folder, write_pages
from resources.warehouse import Warehouse
from tests.assets.conftest import write_survey
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import ok
from tests.made.scores import scores_table, survey_rows
from tests.s3_server import Server, running

HALF_WRITTEN = """
import sys
from resources.file_systems import open_root
fs, root = open_root(sys.argv[1])
stream = fs.open_output_stream(sys.argv[2])
for _ in range(3):
    stream.write(bytes(6_000_000))  # a part of the upload, which S3 has now
print("half", flush=True)
sys.stdin.read()
"""
BUCKET = "surveys"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("s3") / "requests.jsonl", BUCKET) as server:
        yield server


@pytest.fixture
def house(store: Server, request: pytest.FixtureRequest) -> Iterator[Warehouse]:
    """A warehouse of the test's own; its requests counted from here."""
    made = Warehouse(store.url(f"surveys/tests/{request.node.name}"))
    store.forget()
    yield made
    store.fs().delete_dir(made.root)


KENYA = {"round": "S1", "segment": "country:kenya"}
CHILE = {"round": "S2", "segment": "country:chile & more"}


def listings(store: Server) -> list[str]:
    return [query for _, _, query in store.requests if "list-type" in query]


def fill(house: Warehouse) -> None:
    for at in (KENYA, CHILE):
        house.write("survey_responses", survey_rows(at), **at)
        house.write("scores", scores_table([at]), snapshot="base", **at)


class TestWarehouse:
    def test_rows_come_back_and_are_replaced_whole(self, house: Warehouse, store: Server) -> None:
        fill(house)
        house.write("survey_responses", survey_rows(KENYA, KENYA), **KENYA)
        assert house.read("survey_responses", **KENYA).num_rows == 2
        assert house.read("survey_responses")["round"].to_pylist() == ["S1", "S1", "S2"]
        assert house.values("survey_responses", "round") == ["S1", "S2"]
        assert house.values("survey_responses", "segment", round="S2") == ["country:chile & more"]
        assert house.tables() == ["scores", "survey_responses"]
        names = [info.path for info in store.fs().get_file_info(pafs.FileSelector(house.root, recursive=True)) if info.is_file]
        assert len(names) == 4
        assert all(name.endswith("/part-0.parquet") for name in names)

    def test_a_write_is_one_upload_under_the_final_name_and_copies_nothing(self, house: Warehouse, store: Server) -> None:
        house.write("survey_responses", survey_rows({}), **KENYA)
        assert {path.rpartition("/")[2] for _, path, _ in store.requests} == {"part-0.parquet"}
        assert {method for method, _, _ in store.requests} <= {"PUT", "POST"}
        assert len(store.requests) == 1

    def test_reads_list_and_open_no_more_than_they_need(self, house: Warehouse, store: Server) -> None:
        fill(house)
        house.write("scores", scores_table([{"round": "S3"}]), round="S3", segment="country:peru", snapshot="base")
        store.forget()
        house.read("scores", snapshot="base", **KENYA)
        house.read_or_empty("scores", snapshot="none", **KENYA)
        assert listings(store) == []
        assert house.read("scores", round="S1").num_rows == 1
        (listing,) = listings(store)
        assert listing.endswith("%2Fscores%2Fround%3DS1%2F")
        assert not [path for _, path, _ in store.requests if "S2" in path]
        with house.connect() as connection:
            store.forget()
            assert connection.execute("SELECT segment FROM scores WHERE round = 'S2'").fetchall() == [(CHILE["segment"],)]
        assert store.requests
        assert all("round=S2" in path for _, path, _ in store.requests)
        store.forget()
        with house.connect(only=["scores", "survey_responses", "blueprints"], first=["S1", "S3"]) as connection:
            assert connection.execute("SELECT round FROM scores ORDER BY 1").fetchall() == [("S1",), ("S3",)]
        assert len(listings(store)) == 6  # of three tables in two rounds
        assert not [path for _, path, _ in store.requests if "round=S2" in path]

    def test_dropping_a_segment_takes_its_objects_and_no_others(self, house: Warehouse) -> None:
        fill(house)
        house.drop(SPACE, SPACE.key(*KENYA.values()))
        assert house.read_or_empty("scores", round="S1").num_rows == 0
        assert house.read("scores")["round"].to_pylist() == ["S2"]

    def test_pages_are_replaced_and_earlier_ones_removed(self, house: Warehouse) -> None:
        folder = find_site_folder(house)
        for pages in ([("index.html", "first"), ("drift.html", "old")], [("index.html", "second")]):
            house.fs.create_dir(folder)
            removed = write_pages(house.fs, folder, pages, house.put).removed
        assert removed == ["drift.html"]
        with house.fs.open_input_stream(f"{folder}/index.html") as stream:
            assert stream.read() == b"second"


def rows(number: int, count: int) -> pa.Table:
    return scores_table([{"model": f"v{number}"}] * count)


class Interrupting:
    """A file system whose uploads are interrupted by Ctrl-C before anything is written."""

    def __init__(self, fs: pafs.FileSystem) -> None:
        self._fs = fs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fs, name)

    @contextmanager
    def open_output_stream(self, path: str) -> Iterator[Any]:
        with self._fs.open_output_stream(path) as stream:
            signal.raise_signal(signal.SIGINT)
            yield stream


class TestReplacing:
    def test_a_reader_sees_one_version_or_another_and_never_half_of_one(self, house: Warehouse) -> None:
        at = {**KENYA, "snapshot": "base"}
        house.write("scores", rows(0, 1), **at)
        written, done = {(0, 1)}, threading.Event()

        def write() -> None:
            for number in range(1, 25):
                count = 1 if number % 2 else 20_000
                written.add((number, count))
                house.write("scores", rows(number, count), **at)
                done.wait(0.02)
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        seen = set()
        while not done.is_set():
            models = house.read("scores", columns=["model"], **at)["model"]
            (model,) = models.unique().to_pylist()
            seen.add((int(model[1:]), len(models)))
        writer.join()
        assert seen <= written
        assert len(seen) > 1

    def test_a_writer_that_is_killed_in_the_middle_leaves_what_was_there(self, house: Warehouse, store: Server) -> None:
        at = {**KENYA, "snapshot": "base"}
        house.write("scores", rows(1, 3), **at)
        command = [sys.executable, "-c", HALF_WRITTEN, store.url("surveys/x"), f"{house.folder('scores', **at)}/part-0.parquet"]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"half\n"
            writer.kill()
        assert house.read("scores", **at).num_rows == 3

    def test_an_interrupt_in_the_middle_leaves_a_whole_file(self, house: Warehouse) -> None:
        """The stream was closed, which ends the upload: an empty file took the place of the good one."""
        at = {**KENYA, "snapshot": "base"}
        house.write("scores", rows(1, 3), **at)
        house.fs, whole = Interrupting(house.fs), house.fs  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            house.write("scores", rows(2, 5), **at)
        house.fs = whole
        assert house.read("scores", **at).num_rows in (3, 5)


class TestTrouble:
    def test_a_bucket_that_is_not_there_is_a_message(self, store: Server) -> None:
        house = Warehouse(store.url("surveys/x").replace(BUCKET, "no-such-bucket"))
        with pytest.raises(WarehouseError, match=r"cannot write no-such-bucket/x/scores/.* in the object store: .*"):
            house.write("scores", scores_table([{}]), snapshot="base", **KENYA)

    def test_a_url_that_says_nothing_usable_is_a_message_without_its_secrets(self) -> None:
        with pytest.raises(WarehouseError, match=r"cannot use the warehouse nonsense://bucket/x: ") as raised:
            Warehouse("nonsense://key:secret@bucket/x")
        assert "secret@" not in str(raised.value).split(": ")[0]


@pytest.fixture
def made(store: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of commands that have ingested and run two rounds into the bucket. Nothing of the warehouse depends on where they are given."""
    places = {"DTEF_RESPONSES": str(tmp_path / "responses.sqlite"), "DAGSTER_HOME": str(tmp_path / "dagster")}
    for name, value in {**places, "DTEF_WAREHOUSE": store.url("surveys/command/warehouse")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DTEF_MODELS", raising=False)
    monkeypatch.setattr("dtef_pipeline.site.build.static_files", lambda: ())  # the chart library alone takes seconds
    monkeypatch.chdir(tmp_path)
    ok("add", write_survey(tmp_path / "surveys.csv", questions=1))
    ok("run", "--round", "T1", "--round", "T2", "--segment", "country:kenya", "--model", "baseline/uniform")
    return tmp_path


@pytest.mark.thorough
def test_all_stages_roll_ups_and_readers_work(made: Path, store: Server) -> None:
    stages = ["survey_responses", "blueprints", "predictions", "scores", "segment_results", "drift_checks"]
    house = Warehouse(store.url("surveys/command/warehouse"))
    for table in stages:
        assert house.values(table, "round") == ["T1", "T2"], table
    assert {"leaderboard", "comparisons", "costs", "breakdowns"} <= set(house.tables())
    assert [info.is_file for info in [house.fs.get_file_info(f"{house.root}/report/index.html")]] == [True]
    assert not any(path.suffix == ".parquet" for path in made.rglob("*"))  # nothing strayed to the disk
    store.forget()
    assert "baseline/uniform" in ok("board", "--round", "T1", "--csv")
    # Batteries are linked over all rounds: the survey of each is looked at, and no score.
    assert [path for _, path, _ in store.requests if "/round=T1/" in path]
    of_another = [path for _, path, _ in store.requests if "/round=T2/" in path]
    assert [path for path in of_another if "/survey_responses/" not in path] == []
    counted = ok("sql", "SELECT round, count(*) AS n FROM scores GROUP BY 1 ORDER BY 1", "--csv")
    assert counted.split() == ["round,n", "T1,2", "T2,2"]
    ok("report")
    assert "Uniform" in (made / "report" / "survey" / "index.html").read_text(encoding="utf-8")

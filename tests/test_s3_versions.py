"""A bucket that keeps versions: files are replaced whole whatever happens to the writer, and what was there before can be had again."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from resources.warehouse import Warehouse
from resources.whole_files import _Kept, _whole
from tests import s3_server
from tests.conftest import ROOT
from tests.made.scores import scores_table
from tests.several_machines import BUCKET, s3_client, s3_with_bucket

KENYA = {"round": "S1", "segment": "country:kenya", "snapshot": "base"}
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3_server.Server]:
    with s3_with_bucket(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def port(server: s3_server.Server) -> int:
    return server.port


def address(port: int, prefix: str) -> str:
    return f"s3://{BUCKET}/{prefix}?endpoint_override=127.0.0.1:{port}&scheme=http"


@pytest.fixture
def house(port: int, request: pytest.FixtureRequest) -> Warehouse:
    return Warehouse(address(port, request.node.name))


def rows(number: int, count: int) -> pa.Table:
    return scores_table([{"model": f"v{number}"}] * count)


def key_of(house: Warehouse) -> str:
    return f"{house.folder('scores', **KENYA)}/part-0.parquet".removeprefix(f"{BUCKET}/")


def test_a_reader_sees_one_version_or_another_and_never_half_of_one(house: Warehouse) -> None:
    house.write("scores", rows(0, 1), **KENYA)
    written, done = {(0, 1)}, threading.Event()

    def write() -> None:
        for number in range(1, 25):
            count = 1 if number % 2 else 20_000
            written.add((number, count))
            house.write("scores", rows(number, count), **KENYA)
            done.wait(0.02)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not done.is_set():
        models = house.read("scores", columns=["model"], **KENYA)["model"]
        (model,) = models.unique().to_pylist()
        seen.add((int(model[1:]), len(models)))
    writer.join()
    assert seen <= written
    assert len(seen) > 1


def test_a_writer_that_is_killed_in_the_middle_leaves_what_was_there(house: Warehouse, port: int) -> None:
    house.write("scores", rows(1, 3), **KENYA)
    path = f"{house.folder('scores', **KENYA)}/part-0.parquet"
    command = [sys.executable, "-c", HALF_WRITTEN, address(port, "x"), path]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"half\n"
        writer.kill()
    assert house.read("scores", **KENYA).num_rows == 3
    # Its parts stay where they are until a rule of the bucket takes them away.
    assert s3_client(port).list_multipart_uploads(Bucket=BUCKET)["Uploads"]


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


def test_an_interrupt_in_the_middle_leaves_a_whole_file(house: Warehouse) -> None:
    """The stream was closed, which ends the upload: an empty file took the place of the good one."""
    house.write("scores", rows(1, 3), **KENYA)
    house.fs, whole = Interrupting(house.fs), house.fs  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        house.write("scores", rows(2, 5), **KENYA)
    house.fs = whole
    assert house.read("scores", **KENYA).num_rows in (3, 5)


def test_an_earlier_version_can_be_had_again(house: Warehouse, port: int) -> None:
    client, key = s3_client(port), key_of(house)
    house.write("scores", rows(1, 3), **KENYA)
    house.write("scores", rows(2, 5), **KENYA)
    _, before = client.list_object_versions(Bucket=BUCKET, Prefix=key)["Versions"]
    assert house.read("scores", **KENYA).num_rows == 5
    client.copy_object(Bucket=BUCKET, Key=key, CopySource={"Bucket": BUCKET, "Key": key, "VersionId": before["VersionId"]})
    assert house.read("scores", **KENYA).num_rows == 3


def test_a_file_that_was_deleted_can_be_had_again(house: Warehouse, port: int) -> None:
    client, key = s3_client(port), key_of(house)
    house.write("scores", rows(1, 3), **KENYA)
    house.fs.delete_file(f"{BUCKET}/{key}")
    assert house.read_or_empty("scores", **KENYA).num_rows == 0
    (marker,) = client.list_object_versions(Bucket=BUCKET, Prefix=key)["DeleteMarkers"]
    client.delete_object(Bucket=BUCKET, Key=key, VersionId=marker["VersionId"])
    assert house.read("scores", **KENYA).num_rows == 3


PARQUET = b"PAR1" + bytes(12) + b"PAR1"


class Replaced:
    """A store with one file, which is replaced after it was opened for the time `replaced_at` (from 1; -1: never)."""

    def __init__(self, first: bytes, later: bytes, replaced_at: int) -> None:
        self.content, self._later, self._replaced_at, self.opened = first, later, replaced_at, 0

    @contextmanager
    def open_input_file(self, path: str) -> Iterator[Any]:
        self.opened += 1
        yield Opened(self, len(self.content), {"Tag": self.content})

    def bytes_of(self, length: int) -> bytes:
        if self.opened == self._replaced_at:
            self.content = self._later
        return self.content[:length]


class Restless(Replaced):
    """A store whose file is another one each time that it is looked at."""

    def bytes_of(self, length: int) -> bytes:
        self.content = bytes(self.opened + 1)
        return self.content[:length]


class Opened(NamedTuple):
    """A file as the store told of it when it was opened: the bytes come from what is there now, as many as there were then."""

    store: Any
    length: int
    told: Mapping[str, bytes]

    def metadata(self) -> Mapping[str, bytes]:
        return self.told

    def size(self) -> int:
        return self.length

    def readinto(self, target: bytearray) -> int:
        found = self.store.bytes_of(self.length)
        target[: len(found)] = found
        return self.length


def methods(server: s3_server.Server) -> list[str]:
    """Of the requests since this was asked last."""
    found = [method for method, _, _ in server.requests]
    server.forget()
    return found


def test_a_file_of_usual_size_is_written_by_one_request(house: Warehouse, server: s3_server.Server) -> None:
    methods(server)
    house.write("scores", rows(1, 3), **KENYA)
    assert methods(server) == ["PUT"]


def test_a_file_that_was_read_lately_is_asked_for_its_tag_alone(house: Warehouse, server: s3_server.Server) -> None:
    house.write("scores", rows(1, 3), **KENYA)
    methods(server)
    first = house.read("scores", **KENYA)
    assert "GET" in methods(server)
    again = Warehouse(address(server.port, house.root.removeprefix(f"{BUCKET}/"))).read("scores", **KENYA)
    assert methods(server) == ["HEAD"]
    assert again.equals(first)


def test_what_is_kept_of_a_file_is_not_used_when_another_writer_has_replaced_it(house: Warehouse) -> None:
    """Of the same length, within the same second: by its tag alone it is another file."""
    house.write("scores", rows(1, 3), **KENYA)
    for number in range(2, 8):
        house.write("scores", rows(number, 3), **KENYA)
        assert house.read("scores", **KENYA)["model"].to_pylist() == [f"v{number}"] * 3


@pytest.mark.parametrize(
    "later", [b"PAR1" + bytes(60) + b"PAR1", b"PAR1shortPAR1", b"PAR1"], ids=["longer", "shorter", "least"]
)
def test_a_file_that_is_replaced_between_two_requests_is_read_again(later: bytes) -> None:
    store = Replaced(PARQUET, later, replaced_at=1)
    assert _whole(store, "replaced") == pa.py_buffer(later)
    assert store.opened == 3


def test_a_file_that_is_damaged_and_stays_is_read_as_it_is() -> None:
    store = Replaced(b"no Parquet", b"", replaced_at=-1)
    assert _whole(store, "damaged") == pa.py_buffer(b"no Parquet")
    assert store.opened == 2


def test_a_file_that_never_stays_is_told_of() -> None:
    with pytest.raises(OSError, match="replaced 20 times"):
        _whole(Restless(b"", b"", -1), "restless")


def test_what_is_kept_of_files_has_a_limit_and_the_latest_stay() -> None:
    kept, told = _Kept(80), {"ETag": b"1"}
    for number in range(12):
        kept.keep(f"f{number}", told, pa.py_buffer(bytes(10)))
        kept.find("f0", told)  # it is used all the time
    assert [number for number in range(12) if kept.find(f"f{number}", told)] == [0, *range(5, 12)]
    kept.keep("large", told, pa.py_buffer(bytes(11)))
    assert kept.find("large", told) is None
    kept.keep("f0", {"ETag": b"2"}, pa.py_buffer(bytes(10)))
    assert kept.find("f0", told) is None
    assert kept.find("f0", {"ETag": b"2"}) is not None
    kept.keep("untagged", {"Content-Length": b"3"}, pa.py_buffer(b"abc"))
    assert kept.find("untagged", {"Content-Length": b"3"}) is None

"""Files of an object store, each read as one version of it.

A reader of Parquet asks for the end of a file first and for its columns then. Where the file is replaced between two requests, it would
have the end of one version and the columns of another: a file that seems to be damaged, or numbers that never belonged together. So a file
is read by one request, and once more where one of another length took its place meanwhile. The stages and checks of a run read the same
files again and again: what was read lately is kept, and used as long as the store says that the file is still that one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.fs as pafs

PARQUET_ENDS = b"PAR1"
"""With these bytes each Parquet file begins and ends."""
_MOST_READS = 20
_KEPT_BYTES = 64 << 20
"""Of the files that were read last, in memory."""


class _Kept:
    """Contents of the files that were read last, each with what the store said of it: its tag is another one whenever the content is."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._files: OrderedDict[str, tuple[Mapping[str, bytes], pa.Buffer]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, path: str, told: Mapping[str, bytes]) -> pa.Buffer | None:
        with self._lock:
            if path not in self._files or self._files[path][0] != told:
                return None
            self._files.move_to_end(path)
            return self._files[path][1]

    def keep(self, path: str, told: Mapping[str, bytes], content: pa.Buffer) -> None:
        """Of a store that gives no tags nothing is kept. Where the content is of a later version, the store never tells of it this again."""
        if "ETag" not in told or content.size > self._most_bytes // 8:
            return
        with self._lock:
            if path in self._files:
                self._bytes -= self._files.pop(path)[1].size
            self._files[path] = (told, content)
            self._bytes += content.size
            while self._bytes > self._most_bytes:
                self._bytes -= self._files.popitem(last=False)[1][1].size


_kept = _Kept(_KEPT_BYTES)


def opened(fs: pafs.FileSystem, path: str) -> pa.NativeFile:
    """A file to be read, and to be closed; raises what the file system does. On this machine, an open file stays what it was."""
    return fs.open_input_file(path) if isinstance(fs, pafs.LocalFileSystem) else pa.BufferReader(_whole(fs, path))


def whole_files(fs: pafs.FileSystem) -> pafs.FileSystem:
    """The same files, for one who only reads them."""
    return fs if isinstance(fs, pafs.LocalFileSystem) else pafs.PyFileSystem(_WholeFiles(fs))


def _whole(fs: pafs.FileSystem, path: str) -> pa.Buffer:
    """The content of a Parquet file. Raises what the file system does, and OSError where the file is replaced all the time."""
    for _ in range(_MOST_READS):
        with fs.open_input_file(path) as file:
            # What it was when it was opened. As many bytes are asked for as it had then.
            told = file.metadata()
            if (kept := _kept.find(path, told)) is not None:
                return kept
            content = bytearray(file.size())
            file.readinto(content)
        # Of a later version that is shorter, zeros are left at the end; one that is longer is cut off. Neither ends as a file does.
        if content.endswith(PARQUET_ENDS):
            break
        with fs.open_input_file(path) as file:
            if file.metadata() == told:  # it is damaged, and was not replaced
                break
    else:
        raise OSError(f"{path} was replaced {_MOST_READS} times while it was read")
    whole = pa.py_buffer(content)
    _kept.keep(path, told, whole)
    return whole


class _WholeFiles(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow's own annotations are skipped
    def __init__(self, fs: pafs.FileSystem) -> None:
        self._fs = fs

    def open_input_file(self, path: str) -> Any:
        return pa.PythonFile(pa.BufferReader(_whole(self._fs, path)), mode="r")

    def open_input_stream(self, path: str) -> Any:
        return self.open_input_file(path)

    def get_type_name(self) -> str:
        return f"whole files of {self._fs.type_name}"

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return list(self._fs.get_file_info(paths))

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        return list(self._fs.get_file_info(selector))

    def normalize_path(self, path: str) -> str:
        return str(self._fs.normalize_path(path))

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError("this file system is for reading")

    copy_file = move = create_dir = delete_dir = delete_dir_contents = delete_file = _refused
    delete_root_dir_contents = open_output_stream = open_append_stream = _refused

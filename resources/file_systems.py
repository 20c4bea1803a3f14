"""Where tables are kept (a folder of this machine, or an object store), how such a place is shown, and files that a user asks for."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.fs as pafs

from dtef_pipeline.asking.addresses import redact_address
from dtef_pipeline.errors import DtefError, StoreError, WarehouseError
from resources.failures import reason


def open_root(root: str | Path) -> tuple[pafs.FileSystem, str]:
    """The file system of a folder, or of a URL such as `s3://bucket/prefix`, and the path in it. Raises WarehouseError for a URL of no store."""
    text = str(root)
    if "://" not in text:
        return pafs.LocalFileSystem(), str(Path(text).absolute())
    url = text
    if text.startswith("s3://") and "allow_delayed_open=" not in text:
        # A file of a few megabytes is uploaded by one request, not by three.
        url += f"{'&' if '?' in text else '?'}allow_delayed_open=true"
    try:
        fs, path = pafs.FileSystem.from_uri(url)
    except (pa.ArrowException, OSError) as error:
        raise WarehouseError(
            f"cannot use the warehouse {strip_secrets(text)}: {str(error).replace(url, strip_secrets(text))}"
        ) from error
    return fs, path.rstrip("/")


def has_file(fs: pafs.FileSystem, folder: str, name: str, depth: int) -> bool:
    """Whether a file of this name is so many folders below. Only a folder of this machine is looked into: in an object store that would be a
    request for each, and `delete_folder` leaves no empty ones."""
    if not isinstance(fs, pafs.LocalFileSystem):
        return True
    if not depth:  # there are many folders of the last level, and a look for a pattern takes ten times as long
        return Path(folder, name).is_file()
    return next(Path(folder).glob("/".join(["*"] * depth + [name])), None) is not None


def fill(fs: pafs.FileSystem, path: str, content: bytes | pa.Buffer) -> None:
    """Make a file of this content."""
    with fs.open_output_stream(path) as stream:
        stream.write(content)


def upload(fs: pafs.FileSystem, path: str, content: bytes | pa.Buffer) -> None:
    """Make a file in an object store. An interrupt leaves the one that was there, or the new one whole.

    It reaches the main thread alone. There, it would end the upload with what was written until then, perhaps nothing.
    """
    with ThreadPoolExecutor(1) as uploading:
        uploading.submit(fill, fs, path, content).result()


def delete_folder(fs: pafs.FileSystem, folder: str, top: str) -> None:
    """Delete a folder with all that is in it, if it is there, and in an object store the folders above it, below `top`, that are empty then."""
    if fs.get_file_info(folder).type != pafs.FileType.Directory:
        return
    fs.delete_dir(folder)
    above = folder.rpartition("/")[0]
    # On this machine another process may be about to write into one that is empty for now.
    while above != top and not isinstance(fs, pafs.LocalFileSystem) and not fs.get_file_info(pafs.FileSelector(above)):
        fs.delete_dir(above)
        above = above.rpartition("/")[0]


def strip_secrets(address: str) -> str:
    """A folder or URL without what may be secret in it: user, password and parameters of a URL."""
    _, url, tail = address.partition("://")
    if not url:
        return address
    # An @ in the path of a bucket is no secret where no user can stand before it.
    before_path = tail.partition("/")[0]
    return redact_address(address).replace("[...]@", "", 1) if {":", "@"} & set(before_path) else address.partition("?")[0]


@contextmanager
def open_whole_file(path: Path) -> Iterator[BinaryIO]:
    """A binary file to write: it is on the disk whole once the block ends, or not at all. Raises StoreError where it cannot be written."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            part.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises DtefError with the path where it cannot be written."""
    write_chunks(path, [text])


def write_chunks(path: Path, chunks: Iterable[str]) -> None:
    """`write_text` of a text that comes in pieces and is never in memory whole."""
    # What is there and is no file, such as /dev/stdout, is written to as it is.
    in_place = path.exists() and not path.is_file()
    target = path if in_place else path.resolve()
    part = target if in_place else target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        try:
            with part.open("w", encoding="utf-8") as stream:
                stream.writelines(chunks)
            if not in_place:
                part.replace(target)
        finally:
            if not in_place:
                with suppress(OSError):
                    part.unlink()
    except OSError as error:
        raise DtefError(f"cannot write {path}: {reason(str(error))}") from error

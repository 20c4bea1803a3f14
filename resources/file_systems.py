"""File systems of the warehouse (a local folder or an object store), how their addresses are shown, and output files for users."""

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

from dtef_pipeline.asking.models import redact_address
from dtef_pipeline.errors import StoreError, WarehouseError


def open_root(root: str | Path) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a folder or URL such as `s3://bucket/prefix`, and the path in it. Raises WarehouseError for an invalid URL."""
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
            f"cannot use the warehouse {strip_secrets(text)}: {_describe_store_error(str(error).replace(url, strip_secrets(text)))}"
        ) from error
    return fs, path.rstrip("/")


def _describe_store_error(message: str) -> str:
    """Return why an object store cannot be used and what to do, in place of the message of Amazon's library."""
    if "NETWORK_CONNECTION" in message:
        return "its server cannot be reached; check the network, the bucket's name and the region"
    if "ACCESS_DENIED" in message or "Forbidden" in message:
        return "access is denied; check the keys of this user and the bucket's name"
    if "Unrecognized filesystem type" in message:
        return "there is no such kind of storage; use a folder, or an address such as s3://bucket/prefix"
    return message


def has_file(fs: pafs.FileSystem, folder: str, name: str, depth: int) -> bool:
    """Return whether a file of this name exists `depth` folders below. Always True in an object store, where each folder would cost a
    request and `delete_folder` leaves no empty ones.
    """
    if not isinstance(fs, pafs.LocalFileSystem):
        return True
    if not depth:  # the last level has many folders, and a search for a pattern takes ten times as long
        return Path(folder, name).is_file()
    return next(Path(folder).glob("/".join(["*"] * depth + [name])), None) is not None


def fill(fs: pafs.FileSystem, path: str, content: bytes | pa.Buffer) -> None:
    """Write a file with this content."""
    with fs.open_output_stream(path) as stream:
        stream.write(content)


def upload(fs: pafs.FileSystem, path: str, content: bytes | pa.Buffer) -> None:
    """Write a file to an object store; an interrupt leaves the old file or the complete new one.

    Interrupts reach only the main thread, where one would end the upload with the part written so far, perhaps nothing.
    """
    with ThreadPoolExecutor(1) as uploading:
        uploading.submit(fill, fs, path, content).result()


def delete_folder(fs: pafs.FileSystem, folder: str, top: str) -> None:
    """Delete a folder with its content, if it exists, and in an object store also parent folders below `top` left empty."""
    if fs.get_file_info(folder).type != pafs.FileType.Directory:
        return
    fs.delete_dir(folder)
    above = folder.rpartition("/")[0]
    # On this machine, another process may be about to write into an empty folder.
    while above != top and not isinstance(fs, pafs.LocalFileSystem) and not fs.get_file_info(pafs.FileSelector(above)):
        fs.delete_dir(above)
        above = above.rpartition("/")[0]


def strip_secrets(address: str) -> str:
    """Return a folder or URL without a URL's possible secrets: user, password and parameters."""
    _, url, tail = address.partition("://")
    if not url:
        return address
    # An @ in a bucket's path is not secret if no user can precede it.
    before_path = tail.partition("/")[0]
    return redact_address(address).replace("[...]@", "", 1) if {":", "@"} & set(before_path) else address.partition("?")[0]


@contextmanager
def open_whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a binary file for writing, which exists complete after the block, or not at all. Raises StoreError with the path on failure."""
    # Existing paths that are not files, such as /dev/stdout, are written in place.
    is_special = path.exists() and not path.is_file()
    target = path if is_special else path.resolve()
    part = target if is_special else target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            if not is_special:
                os.fsync(file.fileno())
        if not is_special:
            part.replace(target)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        if not is_special:
            with suppress(OSError):
                part.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all. Raises StoreError with the path on failure."""
    write_chunks(path, [text])


def write_chunks(path: Path, chunks: Iterable[str]) -> None:
    """Write a text like `write_text`, in pieces, so that it is never completely in memory."""
    with open_whole_file(path) as file:
        file.writelines(chunk.encode() for chunk in chunks)

"""Files that a user asks for are written whole or not at all, and an address is shown without its secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtef_pipeline.errors import DtefError
from resources.file_systems import strip_secrets, write_text


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("s3://key:hush@bucket/a?region=x", "s3://bucket/a"),
        ("s3://key:hu/sh@bucket/prefix?secret_key=hush", "s3://bucket/prefix"),
        ("s3://key:hu?sh@bucket/prefix?secret_key=hush", "s3://bucket/prefix"),
        ("s3://key:a@hush@bucket/prefix", "s3://bucket/prefix"),
        ("s3://key:hush@bucket/a?endpoint_override=http://user:hush@store", "s3://bucket/a"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("s3://bucket/a@b?endpoint_override=http://user:hush@store", "s3://bucket/a@b"),
        ("/a folder/with@and?", "/a folder/with@and?"),
    ],
)
def test_an_address_is_shown_without_user_password_and_parameters(address: str, told: str) -> None:
    assert strip_secrets(address) == told


def test_a_text_takes_the_place_of_an_earlier_one_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    file, link = tmp_path / "real" / "page.html", tmp_path / "link.html"
    file.write_text("earlier", encoding="utf-8")
    link.symlink_to(file)
    write_text(link, "ü")
    assert file.read_text(encoding="utf-8") == "ü"
    assert link.is_symlink()
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["page.html"]


@pytest.mark.parametrize("place", ["/dev/full", "folder"])
def test_a_text_that_cannot_be_written_is_refused_with_its_path(tmp_path: Path, place: str) -> None:
    """On a full disk it was "cannot read or write a file"."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(DtefError, match=f"^cannot write {tmp_path / place}: [A-Z]"):
        write_text(tmp_path / place, "text")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]

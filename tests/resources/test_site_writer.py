"""A report removes only its own pages that no longer belong."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem

from dtef_pipeline.site.paths import PAGE_MARK, SCRIPT_MARK
from resources.site_writer import PAGES_LIST, SiteWriteResult, make_foreign_check, write_pages


def put(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)


def write(folder: Path, *names: str) -> SiteWriteResult:
    return write_pages(LocalFileSystem(), str(folder), ((name, f"page {name}") for name in names), put)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {PAGES_LIST}


def test_pages_that_no_longer_belong_go_and_other_files_stay(tmp_path: Path) -> None:
    write(tmp_path, "index.html", "a.html", "a.prompt-1.html")
    (tmp_path / "b.html").write_text("someone else's", encoding="utf-8")
    later = write(tmp_path, "index.html", "a.html")
    assert later.removed == ["a.prompt-1.html"]
    assert later.sizes == {"index.html": 15, "a.html": 11}
    assert names(tmp_path) == {"index.html", "a.html", "b.html"}


def test_a_page_that_someone_has_changed_stays(tmp_path: Path) -> None:
    write(tmp_path, "index.html", "a.html")
    (tmp_path / "a.html").write_text("with notes", encoding="utf-8")
    assert write(tmp_path, "index.html").removed == []
    assert names(tmp_path) == {"index.html", "a.html"}


def test_nothing_goes_where_writing_stops_and_the_next_one_knows_all_pages(tmp_path: Path) -> None:
    write(tmp_path, "index.html", "a.html")

    def stopped() -> Iterator[tuple[str, str]]:
        yield "index.html", "page"
        yield "c.html", "page"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_pages(LocalFileSystem(), str(tmp_path), stopped(), put)
    assert names(tmp_path) == {"index.html", "a.html", "c.html"}
    assert write(tmp_path, "index.html").removed == ["a.html", "c.html"]


@pytest.mark.parametrize("text", ["no JSON", "[1]", '{"../kept.html": "x", "a.html": 5}'])
def test_a_list_that_is_none_of_ours_removes_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "kept.html").write_text("kept", encoding="utf-8")
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "a.html").write_text("page", encoding="utf-8")
    (folder / PAGES_LIST).write_text(text, encoding="utf-8")
    assert write(folder, "index.html").removed == []
    assert (tmp_path / "kept.html").is_file()
    assert names(folder) == {"index.html", "a.html"}


def test_a_page_is_known_by_the_list_or_by_its_mark_and_any_other_file_is_foreign(tmp_path: Path) -> None:
    write(tmp_path, "listed.html")
    (tmp_path / "marked.html").write_text(f"<title>{'<title>' * 5_000}{PAGE_MARK}", encoding="utf-8")
    (tmp_path / "index.html").write_text("<!doctype html><title>Someone else's</title>", encoding="utf-8")
    (tmp_path / "folder.html").mkdir()
    is_foreign = make_foreign_check(LocalFileSystem(), str(tmp_path))
    assert [is_foreign(f"{name}.html") for name in ("listed", "marked", "none", "index", "folder")] == [False] * 3 + [True] * 2
    (tmp_path / "own.js").write_text(f"{SCRIPT_MARK}dtef.receive()", encoding="utf-8")
    (tmp_path / "other.js").write_text("alert(1)", encoding="utf-8")
    assert [is_foreign(name) for name in ("own.js", "other.js")] == [False, True]


def test_pages_in_folders_go_with_the_others_and_no_path_leads_out(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    (folder / "models").mkdir(parents=True)
    (tmp_path / "kept.html").write_text("kept", encoding="utf-8")
    write(folder, "index.html", "models/a.html")
    assert write(folder, "index.html").removed == ["models/a.html"]
    assert not (folder / "models" / "a.html").exists()
    listed = {f"{way}kept.html": hashlib.sha256(b"kept").hexdigest() for way in ("../", "models/../../", "/", "./../")}
    (folder / PAGES_LIST).write_text(json.dumps(listed), encoding="utf-8")
    assert write(folder, "index.html").removed == []
    assert (tmp_path / "kept.html").is_file()

"""A report removes only its own pages that no longer belong, and makes again only those of families whose tables have changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest
from pyarrow.fs import LocalFileSystem

from dtef_pipeline.drift.verdict_tables import DRIFT
from dtef_pipeline.site.family_content import FamilySite
from dtef_pipeline.site.paths import PAGE_MARK, SCRIPT_MARK
from dtef_pipeline.sites import load_family_sites
from resources import warehouse_site
from resources.site_writer import PAGES_LIST, SiteWriteResult, make_foreign_check, write_pages
from resources.warehouse import Warehouse
from resources.warehouse_site import write_site
from tests.made.qa_scores import keep_in
from tests.made.qa_suites import made_qa


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


SUITE, FRONT = "qa/suites/mmlu.html", "index.html"


@pytest.fixture(scope="module")
def shared_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    """One for all tests: each begins with `write_site`, which writes again only what the test before it left otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dtef_pipeline.site.build.static_files", lambda: ())  # the chart library alone takes seconds
        rows = {name: rows for name, rows in made_qa(1, 2).only("mmlu").rows.items() if rows}
        yield keep_in(tmp_path_factory.mktemp("house") / "warehouse", rows)


@pytest.fixture
def house(shared_house: Warehouse) -> Warehouse:
    write_site(shared_house)
    return shared_house


def made_again(house: Warehouse, *instead: FamilySite) -> set[str]:
    """The files that are written anew."""
    return set(write_site(house, instead).sizes)


def test_pages_of_unchanged_tables_are_kept_and_those_over_all_families_are_made(shared_house: Warehouse) -> None:
    house, site = shared_house, Path(shared_house.root) / "report"
    rmtree(site, ignore_errors=True)
    first = write_site(house)
    there = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    house.write("drift", DRIFT.empty_table(), family="rubric")
    second = write_site(house)
    assert {SUITE, FRONT, "drift.html"} <= set(first.sizes)
    assert SUITE not in second.sizes
    assert {FRONT, "drift.html", "qa/index.html"} <= set(second.sizes)
    assert (first.n_kept, len(second.sizes) + second.n_kept, second.removed) == (0, len(first.sizes), [])
    assert {path for path in site.rglob("*") if path.is_file()} == set(there)


def test_pages_of_a_family_whose_table_has_changed_are_made_again(house: Warehouse) -> None:
    (part, *_) = sorted((Path(house.root) / "qa_scores").rglob("*.parquet"))
    part.write_bytes(part.read_bytes())
    assert SUITE in made_again(house)


def test_a_page_that_is_gone_or_another_program_makes_all_again(house: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    (Path(house.root) / "report" / SUITE).unlink()
    assert SUITE in made_again(house)
    monkeypatch.setattr(warehouse_site, "_program", lambda: [("dtef-pipeline", "99")])
    assert SUITE in made_again(house)


def test_other_documents_make_the_pages_again(house: Warehouse) -> None:
    qa = next(one for one in load_family_sites() if one.family == "qa")
    assert SUITE in made_again(house, replace(qa, documents="other rules"))


def test_where_writing_stops_half_way_all_is_made_the_next_time(house: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse_site, "_program", lambda: [("dtef-pipeline", "99")])
    with monkeypatch.context() as patch:
        patch.setattr("dtef_pipeline.site.build.drift_page", lambda contents: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_site(house)
    assert SUITE in made_again(house)

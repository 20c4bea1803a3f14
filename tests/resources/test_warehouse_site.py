"""A run makes again only the pages of families whose tables have changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest

from dtef_pipeline.drift.verdict_tables import DRIFT
from dtef_pipeline.site.family_content import FamilySite
from dtef_pipeline.sites import load_family_sites
from resources import warehouse_site
from resources.warehouse import Warehouse
from resources.warehouse_site import write_site
from tests.made.qa_scores import keep_in
from tests.made.qa_suites import made_qa

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

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.report.page_files import further_page, page_names


def test_a_plain_id_is_its_file_name() -> None:
    names = ["sydney__original", "compass__literal.v2", "a-b_c"]
    assert page_names(names) == {name: f"{name}.html" for name in names}


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "a/b",
        "a\\b",
        ".hidden",
        "",
        "index",
        "INDEX",
        'x" onclick="',
        "a b",
        "x" * 300,
        "é",
        "a.prompt-1",
        "a.items-2",
        "a.",
    ],
)
def test_what_is_no_plain_name_gets_a_hash(name: str) -> None:
    (page,) = page_names([name]).values()
    assert re.fullmatch(r"[A-Za-z0-9_-]+-[0-9a-f]{12}\.html", page)


def test_ids_that_differ_in_capitals_alone_have_files_that_do_not() -> None:
    pages = page_names(["Health", "health", "other"])
    assert len({page.lower() for page in pages.values()}) == 3
    assert pages["other"] == "other.html"


@given(st.sets(st.text(max_size=40), max_size=8))
def test_files_are_plain_and_no_two_ids_share_one(names: set[str]) -> None:
    pages = page_names(names)
    assert set(pages) == names
    assert len({page.lower() for page in pages.values()}) == len(names)
    assert all(
        re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,130}\.html", page) and page != "index.html" for page in pages.values()
    )


def test_a_further_page_is_named_after_the_first() -> None:
    assert further_page("a__b.html", "prompt", 3) == "a__b.prompt-3.html"

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.made.read_page import ReadPage
from tests.made.rubric_pages import HOSTILE, LINKS, hostile_tables, made_tables
from tests.made.rubric_warehouse import data_of, rolled_up, site_of


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    return site_of(rolled_up(hostile_tables()))


@pytest.fixture(scope="module")
def plain() -> dict[str, str]:
    return site_of(rolled_up(made_tables(1, 2, 3, systems=(None, "s"))))


def elements(pages: dict[str, str]) -> set[str]:
    return {tag for path, page in pages.items() if path.endswith(".html") for tag, _ in ReadPage(page).elements}


def test_hostile_texts_make_no_elements_handlers_comments_or_links(site: dict[str, str], plain: dict[str, str]) -> None:
    assert elements(site) <= elements(plain) | {"sup", "ol", "li", "a"}
    for path, page in site.items():
        assert re.fullmatch(r"[A-Za-z0-9_./-]+", path)
        if not path.endswith(".html"):
            continue
        read = ReadPage(page)
        assert read.comments == []
        assert [key for _, given in read.elements for key in given if key.startswith("on")] == []
        assert all(not re.match(r"[a-z]+:|//", link, re.IGNORECASE) for link in read.links), path
        for script in filter(None, read.scripts):
            assert json.loads(script) is not None


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts(one)]
    if isinstance(value, list):
        return [text for one in value for text in texts(one)]
    return [value] if isinstance(value, str) else []


def test_hostile_texts_are_shown_whole(site: dict[str, str]) -> None:
    pages = [path for path in site if path.startswith("rubric/blueprints/")]
    assert len(pages) == 1
    shown = ReadPage(site[pages[0]]).text
    assert "window.hacked = 1" in shown
    files = [path for path in site if path.startswith("rubric/data/")]
    assert len(files) == 3
    for path in files:
        held = data_of(site[path])
        assert any(LINKS in text and HOSTILE in text for text in texts(held))


def test_marks_that_turn_the_direction_of_writing_end_with_their_text(site: dict[str, str]) -> None:
    """Each stands in an element that isolates it, in an attribute, or in a paragraph of its own."""
    isolates = r"<(bdi|p|title|summary|figcaption|caption|h1|h2|li|td|code)\b[^>]*>[^<]*</\1>|<div class dir>[^<]*</div>"
    for path, page in site.items():
        if path.startswith("rubric/") and path.endswith(".html"):
            body = re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL)
            body = re.sub(r'="[^"]*"', "", body)
            assert "\u202e" not in re.sub(isolates, "", body), path

"""The part of `make demo` about rubrics, offline: what is imported is replayed, and docs show what its commands print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import ok, use
from tests.strict_json import strict

CANDIDATES_OF_DEMO = ("stored/amber", "stored/birch", "stored/cobalt")


@pytest.fixture(autouse=True)
def demo(rubric_demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(rubric_demo, monkeypatch)


def test_nothing_was_asked_beside_what_the_file_holds() -> None:
    roles = strict(ok("responses", "--json"))
    assert sum(row["responses"] for row in roles if str(row["model"]).startswith("stored/")) == 125


def test_the_page_shows_what_the_commands_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    board = ok("rubric", "board", "--by", "blueprint", "--blueprint", "demo-*").partition("\nnot shown:")[0]
    show = ok("rubric", "show", "demo-letters", "neighbour", "--model", "stored/cobalt")
    page = (ROOT / "docs" / "how-to" / "rubric.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    plain = [[line.rstrip() for line in block.strip("\n").splitlines()] for block in blocks]
    for shown in (board, show):
        assert [line.rstrip() for line in shown.strip("\n").splitlines()] in plain, shown


def test_the_shipped_votes_are_on_the_pairs_of_the_demo_and_say_that_cobalt_is_liked_least() -> None:
    preferred = strict(ok("preference", "board", "--json"))
    assert [(row["rank"], row["player"].partition("[")[0]) for row in preferred] == list(enumerate(CANDIDATES_OF_DEMO, 1))
    assert all(row["low"] < row["beta"] < row["high"] for row in preferred)
    assert preferred[2]["high"] < preferred[0]["low"]

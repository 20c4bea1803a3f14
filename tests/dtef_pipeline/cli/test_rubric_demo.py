"""The part of `make demo` about rubrics, offline: what is imported is replayed, and the board has the numbers that a hand finds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import ok, query, use
from tests.strict_json import strict

COVERED = {
    # (matches + names a scale + 25 words of at most 20) / 3, and so on, each prompt worked out from the text and the criteria.
    "demo-facts": {
        "boiling": (1, 1, (0 + 0 + 20 / 25) / 3),
        "colours": (1, (2 * 0 + 1) / 3, (2 * 1 + 2 / 3) / 3),
        "river": (1, 1 / 2, 0),
        "week": (1, (2 * 1 + 0) / 3, (2 * 0 + 1) / 3),
        "sea": (1, (1 / 5 + 1) / 2, (1 + 0) / 2),
    },
    # Verdicts are the means of two judges; the better of two paths is one point; what is not to be there is turned round.
    "demo-letters": {
        "heating": (1, (2 * 0.25 + 1 + 1) / 4, (2 * 1 + 0.625 + (1 - 0.875)) / 4),
        "missed-meeting": ((1 + (0.875 + 1) / 2) / 2, (1 + (0.875 + 1) / 2) / 2, (0.125 + (0.25 + 0.5) / 2) / 2),
        "invitation": (1, (1 + 1 + 0) / 3, (0 + 0.125 + 1) / 3),
        "dose": (1, (3 * 0.875 + 0 + 1) / 5, (3 * 0 + 0.625 + 1) / 5),
        "neighbour": (1, (0.625 + 0.25) / 2, (0.5 + 0.875) / 2),
    },
}
CANDIDATES_OF_DEMO = ("stored/amber", "stored/birch", "stored/cobalt")


class Demo(NamedTuple):
    """What the commands left behind."""

    board: list[dict[str, Any]]
    cells: list[dict[str, Any]]
    points: list[dict[str, Any]]
    roles: list[dict[str, Any]]
    shown: dict[str, str]
    """What commands print for people, by the page that shows it."""
    preferred: list[dict[str, Any]]


@pytest.fixture(scope="module")
def demo(rubric_demo: Path) -> Iterator[Demo]:
    with pytest.MonkeyPatch.context() as patch:
        use(rubric_demo, patch)
        yield Demo(
            strict(ok("rubric", "board", "--by", "blueprint", "--blueprint", "demo-*", "--json")),
            query("SELECT * FROM rubric_scores WHERE level = 'cell'"),
            query("SELECT * FROM rubric_points WHERE partial OR score IS NULL"),
            strict(ok("responses", "--json")),
            printed(patch),
            strict(ok("preference", "board", "--json")),
        )


def printed(patch: pytest.MonkeyPatch) -> dict[str, str]:
    patch.setenv("COLUMNS", "120")
    board = ok("rubric", "board", "--by", "blueprint", "--blueprint", "demo-*").partition("\nnot shown:")[0]
    return {
        "board": board,
        "show": ok("rubric", "show", "demo-letters", "neighbour", "--model", "stored/cobalt"),
    }


def test_the_board_has_the_coverage_that_a_hand_finds(demo: Demo) -> None:
    found = {(row["blueprint"], row["model"]): row["coverage"] for row in demo.board}
    assert found == {
        (blueprint, model): pytest.approx(sum(by_model[place] for by_model in prompts.values()) / len(prompts), abs=1e-9)
        for blueprint, prompts in COVERED.items()
        for place, model in enumerate(CANDIDATES_OF_DEMO)
    }


def test_the_score_of_each_response_is_coverage_and_similarity_by_their_weights(demo: Demo) -> None:
    assert len(demo.cells) == 2 * 5 * 3
    for cell in demo.cells:
        covered = COVERED[cell["blueprint"]][cell["prompt"]][CANDIDATES_OF_DEMO.index(cell["model"])]
        similar = cell["similarity"]
        assert (similar is None) == (cell["prompt"] == "colours")  # the prompt without an ideal answer
        wanted = covered if similar is None else 0.35 * max(0.0, similar) + 0.65 * covered
        assert cell["hybrid"] == pytest.approx(wanted, abs=1e-9)


def test_the_board_ranks_by_the_mean_score_and_has_intervals(demo: Demo) -> None:
    assert [(row["blueprint"], row["rank"], row["model"]) for row in demo.board] == [
        (blueprint, rank, model) for blueprint in COVERED for rank, model in enumerate(CANDIDATES_OF_DEMO, 1)
    ]
    for row in demo.board:
        own = [cell for cell in demo.cells if (cell["blueprint"], cell["model"]) == (row["blueprint"], row["model"])]
        assert row["score"] == pytest.approx(sum(cell["hybrid"] for cell in own) / 5, abs=1e-9)
        assert row["low"] <= row["score"] <= row["high"]


def test_similarity_is_computed_offline_and_tells_near_from_far(demo: Demo) -> None:
    similar = {(cell["prompt"], cell["model"]): cell["similarity"] for cell in demo.cells}
    assert similar["boiling", "stored/amber"] > 0.9
    assert similar["river", "stored/amber"] > 0.9
    assert similar["sea", "stored/birch"] < 0.5


def test_the_judge_that_could_not_be_read_leaves_a_partial_point_and_no_zero(demo: Demo) -> None:
    (point,) = demo.points
    assert (point["prompt"], point["model"], point["n_judges"], point["n_answered"]) == ("neighbour", "stored/cobalt", 2, 1)
    assert (point["score"], point["low"], point["high"]) == (0.5, 0.25, 0.75)


def test_nothing_was_asked_beside_what_the_file_holds(demo: Demo) -> None:
    assert sum(row["answers"] for row in demo.roles if str(row["model"]).startswith("stored/")) == 125


def test_the_page_shows_what_the_commands_print(demo: Demo) -> None:
    page = (ROOT / "docs" / "how-to" / "rubric.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    plain = [[line.rstrip() for line in block.strip("\n").splitlines()] for block in blocks]
    for name in ("board", "show"):
        assert [line.rstrip() for line in demo.shown[name].strip("\n").splitlines()] in plain, demo.shown[name]


def test_the_shipped_votes_are_on_the_pairs_of_the_demo_and_say_that_cobalt_is_liked_least(demo: Demo) -> None:
    assert [(row["rank"], row["player"].partition("[")[0]) for row in demo.preferred] == list(enumerate(CANDIDATES_OF_DEMO, 1))
    assert all(row["low"] < row["beta"] < row["high"] for row in demo.preferred)
    assert demo.preferred[2]["high"] < demo.preferred[0]["low"]
    assert "128 votes of eight reviewers" in (ROOT / "Makefile").read_text(encoding="utf-8")

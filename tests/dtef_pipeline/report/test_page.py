"""The parts of the report that every family shares: the page, its style and script, the leaderboard in a family's own words."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

from dtef_pipeline.report.charts import Mark
from dtef_pipeline.report.leaderboard import MODEL_COLUMN, RANK, Beneath, Board, BoardColumn, leaderboard
from dtef_pipeline.report.markup import Group, paragraph, percent, section
from dtef_pipeline.report.page import Chapter, build_report

ROOM = Path(str(files("dtef_pipeline.report")))
BOARD = Board(
    how="Games won.",
    columns=[
        RANK,
        MODEL_COLUMN,
        BoardColumn(
            "score", "Won", None, "Share", ends=("score_low", "score_high"), beneath=Beneath("n_games", percent, "of {}")
        ),
    ],
    marks=lambda rows: [Mark("chance", 0.5, "uniform")],
    adjusted="By games that both played.",
)
ROWS = pd.DataFrame(
    {
        "rank": [1, 2],
        "model": ["a", "b"],
        "model_variant": ["a", "b"],
        "score": [0.75, 0.25],
        "score_low": [0.5, None],
        "score_high": [0.875, None],
        "n_games": [1.0, None],
        "tier": [1, 2],
    }
)


def chapter(anchor: str, *, style: str = "", script: str = "") -> Chapter:
    return Chapter(anchor, anchor.title(), section(anchor, anchor.title(), "How.", paragraph("Body.")), style, script)


def test_chapters_stand_in_the_order_given_with_their_links_styles_and_scripts() -> None:
    chapters = [chapter("wins", style=".wins{}", script="wins();"), chapter("costs")]
    text = build_report("Games & more", "<p>Who wins.</p>", chapters)
    assert "<title>Games &amp; more</title>" in text
    assert "<h1>Games &amp; more</h1><p>Who wins.</p>" in text
    assert re.findall(r'<section id="(\w+)"', text) == re.findall(r'<a href="#(\w+)">', text)[-2:] == ["wins", "costs"]
    assert text.count(".wins{}") == text.count("wins();") == 1
    assert text.index("const all =") < text.index("wins();")


def test_a_board_is_shown_in_the_words_and_columns_of_its_family() -> None:
    markup = leaderboard([Group("Against <i>x</i>", ROWS)], BOARD)
    assert "<h3>Against <i>x</i></h3>" in markup
    assert "chance 0.500" in markup
    assert re.findall(r"<button[^>]*>(\w+)</button>", markup) == ["Rank", "Model", "Won"]
    assert '<td>0.75<span class="ci">0.50 to 0.88</span><span class="ci">of 100.0%</span></td>' in markup
    assert "<td>0.250</td>" in markup
    assert "No scores yet." in leaderboard([], BOARD)


@pytest.mark.parametrize(
    "path", sorted(path for path in ROOM.iterdir() if path.suffix in (".py", ".css", ".js")), ids=lambda p: p.name
)
def test_the_shared_parts_name_nothing_of_one_family(path: Path) -> None:
    """A word of surveys in a shared part would stand on every family's page."""
    found = re.findall(r"\w*(?:survey|segment|question|round_id)\w*", path.read_text(encoding="utf-8"), re.IGNORECASE)
    assert found == []

"""`dtef board --refresh` makes later what `dtef run --no-roll-ups` left out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.dtef_pipeline.cli.commands import CHOSEN, dtef, ok, query, refused, use
from tests.dtef_pipeline.cli.conftest import Base

RUN = ("run", "--round", "S1", *CHOSEN, "--questions", "3")
MADE_BY_ROLL_UPS = {"leaderboard", "breakdowns", "comparisons", "segment_gaps", "reliability", "costs", "drift"}


def tables(state: Path) -> set[str]:
    return {folder.name for folder in (state / "warehouse").iterdir() if folder.is_dir()}


@pytest.fixture(scope="module")
def left_out(base: Base, tmp_path_factory: pytest.TempPathFactory) -> Base:
    """State after a run without roll-ups, and what it printed; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("left_out")
    shutil.copytree(base.folder, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        return Base(folder, ok(*RUN, "--no-roll-ups"))


class TestRollUps:
    def test_a_run_that_leaves_them_out_says_how_to_make_them(self, left_out: Base) -> None:
        (line,) = [line for line in left_out.printed.splitlines() if "no roll-ups: " in line]
        assert "dtef board --refresh" in line
        assert not tables(left_out.folder) & MADE_BY_ROLL_UPS
        assert not (left_out.folder / "warehouse" / "report" / "index.html").exists()
        assert list((left_out.folder / "warehouse" / "scores").rglob("*.parquet"))

    def test_the_refresh_makes_their_tables(self, scored: Path) -> None:
        assert tables(scored) >= MADE_BY_ROLL_UPS

    @pytest.mark.thorough
    def test_the_metric_is_the_one_asked_for(self, left_out: Base, state: Path) -> None:
        shutil.copytree(left_out.folder, state, dirs_exist_ok=True)
        ok("board", "--refresh", "--metric", "cosine")
        assert {row["metric"] for row in query("SELECT metric FROM leaderboard")} == {"cosine"}
        assert "metric 'kl': allowed: js, cosine" in refused("board", "--refresh", "--metric", "kl")

    def test_without_scores_they_are_refused_with_what_to_do(self, ingested: Path) -> None:
        assert "they are made by `dtef run`" in refused("board", "--refresh")
        assert dtef("board", "--refresh").exit_code == 2

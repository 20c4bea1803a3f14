"""`dtef rollup` makes later what `dtef run --no-roll-ups` left out."""

from __future__ import annotations

from pathlib import Path

from tests.dtef_pipeline.cli.commands import CHOSEN, dtef, ok, query, refused

RUN = ("run", "--round", "S1", *CHOSEN, "--questions", "3")
MADE_BY_ROLL_UPS = {"leaderboard", "breakdown_segment", "comparisons", "gaps", "reliability", "costs", "model_drift"}


def tables(state: Path) -> set[str]:
    return {folder.name for folder in (state / "warehouse").iterdir() if folder.is_dir()}


class TestRollUps:
    def test_a_run_that_leaves_them_out_says_how_to_make_them_and_rollup_does(self, ingested: Path) -> None:
        printed = ok(*RUN, "--no-roll-ups")
        (line,) = [line for line in printed.splitlines() if "roll-ups were left out" in line]
        assert "dtef rollup" in line
        assert not tables(ingested) & MADE_BY_ROLL_UPS
        assert not (ingested / "warehouse" / "report.html").exists()
        assert query("SELECT count(*) AS n FROM scores")[0]["n"] > 0

        assert ok("rollup").startswith("roll-ups of S1, ")
        assert tables(ingested) >= MADE_BY_ROLL_UPS
        assert (ingested / "warehouse" / "report.html").exists()

    def test_they_are_those_that_the_run_makes_itself(self, ingested: Path) -> None:
        assert "left out" not in ok(*RUN)
        made = {table: query(f"SELECT * FROM {table}") for table in sorted(MADE_BY_ROLL_UPS)}
        ok("rollup")
        assert {table: query(f"SELECT * FROM {table}") for table in sorted(MADE_BY_ROLL_UPS)} == made

    def test_the_metric_is_the_one_asked_for(self, ingested: Path) -> None:
        ok(*RUN, "--no-roll-ups")
        ok("rollup", "--metric", "cosine")
        assert {row["metric"] for row in query("SELECT metric FROM leaderboard")} == {"cosine"}
        assert "metric 'kl': allowed: js, cosine" in refused("rollup", "--metric", "kl")

    def test_without_scores_they_are_refused_with_what_to_do(self, ingested: Path) -> None:
        assert "they are made by `dtef run --round ROUND`" in refused("rollup")
        assert dtef("rollup").exit_code == 2

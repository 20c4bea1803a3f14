from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from tests.cli.commands import REFERENCES, ok, query, refused, strict


class TestLeaderboard:
    def test_one_condition_can_be_chosen_and_one_never_scored_is_named_with_those_that_were(self, reading: Path) -> None:
        usual = "distribution/attribute-label"
        whole = strict(ok("leaderboard", "--format", "json"))
        assert strict(ok("leaderboard", "--condition", usual, "--format", "json")) == whole
        message = refused("leaderboard", "--condition", "shift/narrative")
        assert "nothing is scored for condition shift/narrative" in message
        assert f"condition: {usual}" in message

    VIEWS = ("overall", "round", "segment", "attribute", "question", "consistency", "metric")

    @pytest.mark.parametrize("by", VIEWS)
    def test_every_view_is_strict_json_with_the_promised_columns(self, reading: Path, by: str) -> None:
        rows = strict(ok("leaderboard", "--by", by, "--format", "json"))
        assert rows
        for row in rows:
            assert {"model", "context_level", "n_pairs", "score", "parse_rate"} <= set(row)
        assert {row["model"] for row in rows} == {"fake", *REFERENCES}

    @pytest.mark.parametrize("by", VIEWS)
    def test_every_view_is_a_table_and_csv(self, reading: Path, by: str) -> None:
        table = ok("leaderboard", "--by", by)
        assert "fake" in table
        assert "nan" not in table.lower().replace("finance", "")
        rows = list(csv.DictReader(io.StringIO(ok("leaderboard", "--by", by, "--format", "csv"))))
        assert len(rows) == len(strict(ok("leaderboard", "--by", by, "--format", "json")))
        assert {"model", "context_level", "n_pairs", "score", "parse_rate"} <= set(rows[0])

    def test_context_levels_stand_apart_and_one_can_be_chosen(self, reading: Path) -> None:
        both = strict(ok("leaderboard", "--format", "json"))
        assert [row["context_level"] for row in both] == ["0"] * 3 + ["2"] * 3
        assert {row["n_pairs"] for row in both} == {6}
        one = strict(ok("leaderboard", "--context", "2", "--format", "json"))
        assert [row["model"] for row in one] == [row["model"] for row in both[3:]]
        assert [row["score"] for row in one] == pytest.approx([row["score"] for row in both[3:]])

    def test_the_latest_snapshot_counts_unless_one_is_named(self, reading: Path) -> None:
        def score(*options: str) -> float:
            rows = strict(ok("leaderboard", "--context", "0", "--format", "json", *options))
            return float(next(row["score"] for row in rows if row["model"] == "fake"))

        assert score() == pytest.approx(score("--snapshot", "2026-01-03"))
        assert score() < score("--snapshot", "2026-01-01") - 0.1

    def test_metric_and_targets_are_honoured(self, reading: Path) -> None:
        js, tv = (strict(ok("leaderboard", "--metric", m, "--format", "json"))[0] for m in ("js", "tv"))
        assert (js["metric"], tv["metric"]) == ("js", "tv")
        assert js["score"] != tv["score"]
        assert "metric 'kl': allowed: js" in refused("leaderboard", "--metric", "kl")
        assert "targets 'some': allowed: clean, all" in refused("leaderboard", "--targets", "some")

    def test_a_round_without_scores_is_named_with_those_that_have_some(self, reading: Path) -> None:
        assert "no scores of round S9; scored so far: S1" in refused("leaderboard", "--round", "S9")

    def test_nothing_scored_yet_says_what_to_do(self, ingested: Path) -> None:
        for command in (["leaderboard"], ["drift"], ["report", "--out", ingested / "r.html"]):
            assert re.search(r"no scores in .* yet: .*`dtef run", refused(*command))


class TestDrift:
    def test_two_nights_that_were_answered_differently_are_flagged_with_both_named(self, reading: Path) -> None:
        text = ok("drift")
        assert "Largest: fake on S1/country:" in text
        assert "Compare snapshots 2026-01-03 and 2026-01-01." in text
        rows = strict(ok("drift", "--format", "json"))
        flagged = [row for row in rows if row["flagged"]]
        assert {row["model"] for row in flagged} == {"fake"}
        for row in flagged:
            assert (row["highest_snapshot"], row["lowest_snapshot"], row["n_snapshots"]) == ("2026-01-01", "2026-01-03", 2)
            assert row["gap"] == pytest.approx(row["highest"] - row["lowest"])
            assert row["hours"] == 48
        assert {row["flagged"] for row in rows if row["model"] in REFERENCES} == {False}

    def test_a_round_at_once_is_one_series_a_model_and_level(self, reading: Path) -> None:
        rows = strict(ok("drift", "--by", "round", "--format", "json"))
        assert sorted((row["model"], row["context_level"]) for row in rows) == [
            (model, level) for model in sorted({"fake", *REFERENCES}) for level in ("0", "2")
        ]
        assert next(row for row in rows if row["model"] == "fake")["n_prompts"] == 6

    def test_the_stage_says_the_same_as_the_command(self, reading: Path) -> None:
        stored = query("SELECT segment, context_level, gap FROM drift_checks WHERE flagged ORDER BY ALL")
        rows = strict(ok("drift", "--round", "S1", "--format", "json"))
        keys = ("segment", "context_level", "gap")
        assert sorted(({k: r[k] for k in keys} for r in rows if r["flagged"]), key=str) == sorted(stored, key=str)

    def test_an_unknown_round_is_named(self, reading: Path) -> None:
        assert "S9" in refused("drift", "--round", "S9")

"""`dtef drift`: which series it judges, what its table says, and its exit codes."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.survey.tables import SURVEY_RESPONSES
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import dtef, ok, query, refused
from tests.made.qa_scores import write_parts
from tests.made.scores import scores_table
from tests.made.snapshots import nights
from tests.strict_json import strict


def keep_scores(state: Path, rows: list[dict[str, Any]]) -> None:
    write_parts(Warehouse(state / "warehouse"), "scores", scores_table(rows))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve nights, of which the last six score .2 less, and another model that stays."""
    folder = tmp_path_factory.mktemp("nights")
    keep_scores(folder, [*nights([0.8] * 6 + [0.6] * 6), *nights([0.7] * 12, model="steady")])
    return folder / "warehouse"


@pytest.fixture
def drifted(house: Warehouse, state: Path) -> Path:
    return state


class TestSegmentsAndRounds:
    def test_two_nights_that_were_answered_differently_are_to_be_watched_with_both_named(self, reading: Path) -> None:
        text = ok("drift", "--by", "segment")
        assert "Largest: fake on S1/country:" in text
        assert " in 2026-01-03, " in text
        rows = strict(ok("drift", "--by", "segment", "--json"))
        flagged = [row for row in rows if row["flagged"]]
        assert {row["model"] for row in flagged} == {"fake"}
        for row in flagged:
            assert (row["highest_snapshot"], row["lowest_snapshot"], row["n_snapshots"]) == ("2026-01-01", "2026-01-03", 2)
            assert row["gap"] == pytest.approx(row["highest"] - row["lowest"])
            assert row["verdict"] == "watch"
            assert "too early: 2 of 6 snapshots" in row["reason"]
        assert {row["model"] for row in rows} == {"fake"}, "baselines do not drift"

    def test_a_round_at_once_is_one_series_a_model_and_level(self, reading: Path) -> None:
        rows = strict(ok("drift", "--by", "round", "--json"))
        assert sorted((row["model"], row["setting"]) for row in rows) == [("fake", "context 0"), ("fake", "context 2")]
        assert rows[0]["n_items"] == 6

    def test_the_stage_says_the_same_as_the_command(self, reading: Path) -> None:
        columns = ("segment", "model", "setting", "gap", "verdict", "threshold")
        stored = query(f"SELECT {', '.join(columns)} FROM drift_checks WHERE flagged ORDER BY ALL")
        rows = strict(ok("drift", "--by", "segment", "--round", "S1", "--json"))
        shown = [{name: row[name] for name in columns[:-1]} for row in rows if row["flagged"]]
        assert sorted(shown, key=str) == sorted(({name: row[name] for name in columns[:-1]} for row in stored), key=str)


class TestModels:
    def test_a_model_is_judged_over_its_segments_and_baselines_are_not(self, reading: Path) -> None:
        rows = strict(ok("drift", "--json"))
        assert [(row["model"], row["verdict"], row["n_prompts"]) for row in rows] == [("fake", "watch", 6)] * 2
        assert {row["setting"] for row in rows} == {"context 0", "context 2"}
        assert all(row["changes"][0]["kind"] == "answers" for row in rows)


class TestExitCodes:
    @pytest.mark.parametrize("by", ["model", "segment"])
    def test_a_drift_is_exit_code_3_where_one_asks_for_it(self, drifted: Path, by: str) -> None:
        assert dtef("drift", "--by", by).exit_code == 0
        for wanted in ("drift", "watch"):
            result = dtef("drift", "--by", by, "--fail-on", wanted)
            assert result.exit_code == 3
            assert "down by 0.2000 since 2026-01-07" in result.stdout

    def test_where_it_is_too_early_to_tell_a_drift_the_exit_code_is_4(self, reading: Path) -> None:
        """It ended with 0 and "No drift", whatever had changed."""
        result = dtef("drift", "--fail-on", "drift")
        assert result.exit_code == 4
        assert "too early: 2 of 6 snapshots" in " ".join(result.stderr.split())
        assert "No drift" not in result.stdout
        assert dtef("drift").exit_code == 0
        assert dtef("drift", "--fail-on", "watch", "--json").exit_code == 3

    @pytest.mark.parametrize("by", ["model", "segment"])
    def test_where_nothing_could_be_compared_fail_on_says_so_with_a_code_of_its_own(self, drifted: Path, by: str) -> None:
        """It ended with 0, as if all were well."""
        result = dtef("drift", "--by", by, "--since", "2026-01-12", "--fail-on", "watch")
        assert result.exit_code == 5
        assert "warning: --fail-on watch does not cover 2 of 2 series, which could not be compared: m" in result.stderr
        assert "`dtef run` on another day" in result.stdout
        assert dtef("drift", "--by", by, "--since", "2026-01-12").exit_code == 0

    def test_what_could_not_be_compared_beside_others_is_named(self, drifted: Path) -> None:
        keep_scores(drifted, nights([0.5] * 2, model="warm", temperature=0.7, round="S2"))
        result = dtef("drift", "--fail-on", "drift")
        assert result.exit_code == 3
        said = "warning: --fail-on drift does not cover 1 of 3 series, which could not be compared: warm, context 0"
        assert said in result.stderr
        assert "second snapshot" not in result.output

    @pytest.mark.parametrize("by", ["model", "segment"])
    def test_it_is_accepted_of_one_model(self, drifted: Path, by: str) -> None:
        assert dtef("drift", "--by", by, "--since", "m=2026-01-07", "--fail-on", "watch").exit_code == 0
        said = refused("drift", "--by", by, "--since", "n=2026-01-07")
        assert "since: no scores of a model n; models and judges with scores: " in said
        assert "--since m=soon is not a date such as 2026-03-01" in refused("drift", "--by", by, "--since", "m=soon").replace(
            "'", ""
        )
        assert "write MODEL=DATE, or DATE for all models" in refused("drift", "--by", by, "--since", "=2026-01-07")

    def test_an_unknown_model_of_the_panel_is_named_with_its_line(self, drifted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        panel = drifted / "panel.yaml"
        monkeypatch.setenv("DTEF_PANEL", str(panel))
        panel.write_text(
            "models: [baselines]\ndrift:\n  since: {m: 2026-01-07, baseline/uniform: 2026-01-07}\n", encoding="utf-8"
        )
        assert dtef("drift", "--fail-on", "watch").exit_code == 0, "of those that the panel asks none needs scores"
        panel.write_text("drift:\n  since:\n    nope: 2026-01-07\n", encoding="utf-8")
        said = f"error: {panel}:3: drift.since.nope: not a model of the panel, and without scores; models of the panel or with scores: "
        assert said in refused("drift")

    def test_a_date_after_the_last_night_hides_no_model(self, drifted: Path) -> None:
        assert "no snapshot of a language model since 2099-01-01" in refused(
            "drift", "--since", "m=2099-01-01", "--since", "steady=2099-01-01"
        )

    @pytest.mark.parametrize("by", ["model", "segment"])
    def test_questions_that_moved_are_named_by_their_words(self, drifted: Path, by: str) -> None:
        text = "How often, if at all, do you use an assistant that answers in whole sentences?"
        # All ten moved alike: which of them stands first is decided by the last bit, so each has the text.
        at = {"round": "S1", "segment": "country:kenya", "question_text": text}
        observed = pa.Table.from_pylist([{**at, "question_id": f"q{number}"} for number in range(10)], SURVEY_RESPONSES)
        Warehouse(drifted / "warehouse").write("survey_responses", observed, round="S1", segment="country:kenya")
        row, _ = strict(ok("drift", "--by", by, "--json"))
        assert {one["text"] for one in row["top_changes"]} == {text}
        shown = "“How often, if at all, do you use an assistant that answers …”"
        assert re.search(rf"S1/q\d {shown} -0\.2000", ok("drift", "--by", by))

    @pytest.mark.parametrize(("by", "given"), [("model", ["--since", "2099-01-01"]), ("segment", ["--round", "S9"])])
    def test_where_there_is_no_series_fail_on_has_the_same_code(self, drifted: Path, by: str, given: list[str]) -> None:
        """It was 2, as of an option that is spelled wrong."""
        result = dtef("drift", "--by", by, *given, "--fail-on", "drift")
        assert result.exit_code == 5
        assert result.stderr.strip().splitlines()[-1].startswith("error: no s")
        assert dtef("drift", "--by", by, *given).exit_code == 2

    @pytest.mark.parametrize("by", ["model", "segment"])
    def test_snapshots_of_one_day_show_scores_and_missing_hours(self, state: Path, by: str) -> None:
        """Of a fall from 0.62 to 0 it said that nothing could be compared, and to ask the same again, as was just done."""
        asked = {"base": (8, 0.8, 10), "n9": (9, 0.62, 3), "n10": (10, 0.0, 3)}
        for name, (hour, mean, questions) in asked.items():
            own = nights([mean], questions=questions, answered_at=datetime(2026, 1, 1, hour, tzinfo=UTC), snapshot=name)
            keep_scores(state, own)
        result = dtef("drift", "--by", by, "--fail-on", "drift")
        assert result.exit_code == 5
        words = " ".join(result.stdout.split())
        assert "1 repeated the prompts after less than 23 hours" in words
        assert "he snapshots span 1.0 h, 23 h needed (0.0000 in n10, 0.6200 in n9)" in words
        assert "`dtef board --snapshot NAME` shows" in words

    def test_only_baselines_say_so(self, state: Path) -> None:
        keep_scores(state, nights([0.8, 0.8], model="baseline/uniform"))
        assert "only baselines are scored, and they do not drift" in refused("drift")
        assert dtef("drift", "--fail-on", "watch").exit_code == 5

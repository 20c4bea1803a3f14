"""`dtef run`: what it refuses before anything is asked, and what it keeps of answers and of calls that failed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.dtef_pipeline.cli.commands import CHOSEN, SEGMENTS, dtef, query, refused, serve_as, skip_board
from tests.fake_llm_server import FakeLLM
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)


class TestRunRefuses:
    @pytest.mark.parametrize(("options", "message"), CASES["what_it_does_not_know_and_lists_what_it_does"])
    def test_what_it_does_not_know_and_lists_what_it_does(self, ingested: Path, options: str, message: str) -> None:
        assert message in refused("run", *options.split())
        assert not (ingested / "warehouse" / "blueprints").exists()

    def test_a_fault_in_the_panel_is_named_before_any_call(
        self, server: FakeLLM, ingested: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The models were asked first; then the last stage ended in a dump of pydantic's."""
        panel = ingested / "panel.yaml"
        panel.write_text("models: [mock]\nrouds: [S1]\n", encoding="utf-8")
        monkeypatch.setenv("DTEF_PANEL", str(panel))
        said = refused("run", "--round", "S1", *CHOSEN, "--model", "fake")
        assert server.calls == []
        assert f"error: {panel}:2: rouds: unknown key; known: max_cost_usd, max_calls, max_tokens, budgets, rounds" in said
        assert not (ingested / "warehouse" / "blueprints").exists()

    def test_a_snapshot_that_differs_from_a_stored_one_in_capitals_alone(self, ingested: Path) -> None:
        """It was refused by the third stage, after the prompts were made, with exit code 1 and an empty board."""
        stored = ingested / "warehouse" / "predictions" / "round=S1" / "segment=country%3Abrazil" / "snapshot=base"
        stored.mkdir(parents=True)
        (stored / "part-0.parquet").touch()
        said = refused("run", "--round", "S1", *CHOSEN, "--snapshot", "BASE")
        assert "snapshot 'BASE': it differs from the stored 'base' only in capitals; allowed: base" in said
        assert not (ingested / "warehouse" / "blueprints").exists()

    def test_every_other_place_is_checked_before_a_run_starts(self, ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (ingested / "dagster" / "dagster.yaml").write_text("storage: [\n", encoding="utf-8")
        found = {"DTEF_WEBHOOK": "hooks.example.org/secret", "DTEF_RESPONSES": "/proc/nope/x.sqlite"}
        for name, value in found.items():
            with monkeypatch.context() as patch:
                patch.setenv(name, value)
                said = refused("run", "--round", "S1", *CHOSEN)
                assert name in said
                assert "secret" not in said
        assert f"{ingested}/dagster/dagster.yaml:2: not a readable settings file of Dagster" in refused("run", "--round", "S1")
        assert not (ingested / "warehouse" / "blueprints").exists()

    def test_numbers_below_one_a_missing_round_and_a_missing_models_file(
        self, ingested: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for options in (["--questions", "0"], ["--draws", "0"]):
            assert "is not in the range 1<=x<=" in refused("run", "--round", "S1", *options)
        assert "--draws: '1.5' is not a whole number" in refused("run", "--round", "S1", "--draws", "1.5")
        assert "no round" in refused("run")
        monkeypatch.setenv("DTEF_MODELS", "/nowhere/models.yaml")
        assert "DTEF_MODELS names /nowhere/models.yaml, which does not exist" in refused("run", "--round", "S1")
        assert "DTEF_MODELS" in refused("models")


class TestRun:
    def test_answers_of_a_served_model_are_kept_with_everything_the_server_stated(self, reading: Path) -> None:
        rows = query("SELECT * FROM predictions WHERE model = 'fake' ORDER BY snapshot, segment, question_id")
        assert len(rows) == 2 * 2 * 2 * 3
        assert {row["segment"] for row in rows} == set(SEGMENTS)
        assert {row["context_level"] for row in rows} == {"0", "2"}
        assert {row["call_status"] for row in rows} == {"answered"}
        assert {row["served_model"] for row in rows} == {"fake-served"}
        assert {row["temperature"] for row in rows} == {0.0}
        assert all(row["prompt_tokens"] > 0 and row["latency_s"] > 0 and row["answered_at"] for row in rows)
        assert len({row["request_key"] for row in rows}) == len(rows)

    def test_a_missing_key_is_one_clear_error_and_no_call(self, ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("FAKE_KEY", raising=False)
        with FakeLLM() as server:
            serve_as(server, ingested, monkeypatch, api_key_env="FAKE_KEY")
            said = refused("run", "--round", "S1", *CHOSEN, "--model", "fake")
            assert server.calls == []
        assert said.splitlines() == [
            "error: no request was sent, because these models cannot be asked: fake: environment variable FAKE_KEY is not set"
        ]
        assert not (ingested / "warehouse" / "blueprints").exists()

    def test_unread_responses_and_labels_of_the_past_are_warned_of(
        self, scored: Path, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All was unread and the model had a rank; fresh responses under a date of the past were on no later board."""
        shutil.copytree(scored, state, dirs_exist_ok=True)
        what = ["--round", "S1", *CHOSEN, "--model", "fake", "--questions", "2", "--no-roll-ups"]
        with FakeLLM(reply=lambda call: "I cannot say.") as server:
            serve_as(server, state, monkeypatch)
            skip_board(monkeypatch)
            result = dtef("run", *what, "--snapshot", "2020-01-31")
        assert result.exit_code == 0
        unread, earlier = (line for line in result.stderr.splitlines() if line.startswith("warning: "))
        assert unread.startswith(
            "warning: fake: none of 4 responses could be read (100.0% unread), so its scores are unreliable; "
        )
        assert "snapshot 2020-01-31 counts as the date that it begins with, which is before 2026-01-03: " in earlier
        shown = query(unread.split('dtef sql "')[1].removesuffix('"'))
        assert {row["response"] for row in shown} == {"I cannot say."}

"""How questions are asked, of which models with which settings, and within which budget: from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dagster import DagsterInstance

from assets.stage.partitions import SNAPSHOT_TAG
from dtef_pipeline.asking.models import Budget, load_models
from dtef_pipeline.cli.settings_command import RunFlags
from dtef_pipeline.cli.stage_runs import apply_budgets
from dtef_pipeline.survey.settings import SurveySettings, build_survey_run_config
from tests.dtef_pipeline.cli.commands import SEGMENTS, distribution, dtef, ok, query, refused, run_stages, serve_as
from tests.fake_llm_server import FakeLLM, Fault, always

ROUND = ["--round", "S1", "--segment", SEGMENTS[0], "--questions", "3"]


class TestConditions:
    def test_several_are_asked_in_one_run_and_boards_tell_them_apart(
        self, ingested: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with FakeLLM(reply=lambda call: distribution(call, 40)) as server:
            serve_as(server, ingested, monkeypatch)
            printed = run_stages(*ROUND, "--model", "fake", "--condition", "distribution", "--condition", "shift+reversed")
            assert server.answered == 6
        assert "1 partition, snapshot base" in printed
        assert "sent as candidate: 6 calls, " in printed
        for table in (printed, ok("board"), ok("board", "--by", "segment")):
            assert "condition" in table
            assert "shift/attribute-label+reversed" in table


class TestSettings:
    def test_a_selector_with_settings_is_a_model_of_its_own_and_they_reach_the_server(
        self, ingested: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with FakeLLM(reply=lambda call: distribution(call, 40)) as server:
            serve_as(server, ingested, monkeypatch)
            run_stages(*ROUND, "--model", "mine", "--model", "mine@temperature=0.7,max_tokens=512", "--questions", "2")
            sent = sorted((call.body["temperature"], call.body["max_tokens"]) for call in server.calls)
        assert sent == [(0.0, 256)] * 2 + [(0.7, 512)] * 2
        rows = query("SELECT DISTINCT model, model_variant, temperature FROM scores WHERE model LIKE 'fake%' ORDER BY 1")
        assert rows == [
            {"model": "fake", "model_variant": "openai/fake[max_tokens=256,temperature=0]", "temperature": 0.0},
            {
                "model": "fake@max_tokens=512,temperature=0.7",
                "model_variant": "openai/fake[max_tokens=512,temperature=0.7]",
                "temperature": 0.7,
            },
        ]


class TestBudgets:
    def test_a_run_that_reaches_one_keeps_what_is_done_says_so_and_goes_on_with_a_larger_one(
        self, ingested: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        what = ["--round", "S1", "--segment", SEGMENTS[0], "--segment", "gender:male", "--model", "fake", "--questions", "4"]
        with FakeLLM(reply=lambda call: distribution(call, 40)) as server:
            serve_as(server, ingested, monkeypatch)
            printed = run_stages(*what, "--max-calls", "5")
            assert server.answered == 5
            assert "3 budget" in printed
            assert "sent as candidate: 5 calls, " in printed
            assert "fake: a budget was reached, 3 calls not made: " in printed
            counted = query(
                "SELECT status, count(*) AS n, count(score) AS scored FROM scores WHERE model = 'fake' GROUP BY 1 ORDER BY 1"
            )
            assert counted == [{"status": "budget", "n": 3, "scored": 0}, {"status": "ok", "n": 5, "scored": 5}]
            assert "budget" not in run_stages(*what, "--max-calls", "100")
            assert server.answered == 8

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--max-cost-usd", "five"], "--max-cost-usd 'five': 'five' is not a number of 0 or more"),
            (["--max-calls", "1.5"], "--max-calls '1.5': '1.5' is not a whole number of 0 or more"),
            (["--max-calls", "5", "--max-calls", "6"], "--max-calls is given twice for the run"),
            (["--max-calls", "gpt-4.1=5"], "the budget of 'gpt-4.1' limits nothing in this run"),
        ],
    )
    def test_what_is_no_budget_is_refused(self, ingested: Path, options: list[str], message: str) -> None:
        assert message in refused("run", *ROUND, *options)

    def test_bounds_of_one_model_come_together_with_those_of_its_file(self) -> None:
        models = load_models("models: {a: {model: x/a, budget: {max_calls: 9, max_tokens: 50}}}")
        given = RunFlags(max_cost_usd=("2.5", "a=1"), max_calls=("a=3",), max_tokens=("1_000",))
        settings = apply_budgets(SurveySettings(rounds=["S1"], models=["a"]), given, ["a"], models)
        assert settings.budget == Budget(max_cost_usd=2.5, max_tokens=1000)
        assert settings.budgets == {"a": Budget(max_cost_usd=1, max_calls=3, max_tokens=50)}
        config = build_survey_run_config(settings)["predictions"]
        assert (config["max_cost_usd"], config["max_tokens"]) == (2.5, 1000)
        assert json.loads(json.dumps(config["budgets"])) == {"a": {"max_cost_usd": 1.0, "max_calls": 3, "max_tokens": 50}}


class TestSegmentsThatLieApart:
    """Segments that are no neighbours took a Dagster run each; they are one run."""

    APART = ("--segment", "ageGroup:18-25", "--segment", "country:kenya")

    def test_a_budget_is_that_of_the_command(self, ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with FakeLLM(reply=lambda call: distribution(call, 40)) as server:
            serve_as(server, ingested, monkeypatch)
            what = ["--model", "fake", "--questions", "4", "--max-calls", "6", "--no-roll-ups"]
            result = dtef("run", "--round", "S1", *self.APART, *what)
        printed = result.stdout
        assert result.exit_code == 0, result.output
        assert "2 partitions, snapshot base" in printed
        with DagsterInstance.from_config(str(ingested / "dagster")) as instance:
            assert len([run for run in instance.get_runs() if SNAPSHOT_TAG in run.tags]) == 1
        assert server.answered == 6
        assert "sent as candidate: 6 calls, " in printed

    def test_a_model_that_never_answers_is_reported_by_the_exit_code(
        self, ingested: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with FakeLLM(fault=always(Fault("status", status=401, message="no such key"))) as server:
            serve_as(server, ingested, monkeypatch)
            result = dtef("run", *ROUND, "--model", "fake", "--no-roll-ups")
        assert result.exit_code == 4, result.output
        assert "fake: 3 calls failed (the same command sends them again): fake: HTTP 401: no such key" in result.stdout

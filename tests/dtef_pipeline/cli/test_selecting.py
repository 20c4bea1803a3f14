"""How questions are asked, of which models with which settings, within which budget and at what cost: from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dagster import DagsterInstance

from assets.stage.partitions import SNAPSHOT_TAG
from dtef_pipeline.asking.models import Budget, load_models
from dtef_pipeline.cli.settings_command import RunFlags
from dtef_pipeline.cli.stage_runs import apply_budgets, make_roll_ups, open_dagster_instance
from dtef_pipeline.survey.settings import SurveySettings, build_survey_run_config
from tests.dtef_pipeline.cli.commands import (
    CHOSEN,
    PRICES,
    SEGMENTS,
    distribution,
    dtef,
    ok,
    query,
    refused,
    run_stages,
    serve_as,
    skip_board,
)
from tests.fake_llm_server import Call, FakeLLM, Fault, always
from tests.strict_json import strict

ROUND = ["--round", "S1", "--segment", SEGMENTS[0], "--questions", "3"]


class TestSettings:
    def test_settings_make_another_model_and_reach_the_server(self, server: FakeLLM) -> None:
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
    def test_a_run_that_reaches_one_continues_with_a_larger_one(
        self, server: FakeLLM, ingested: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        what = ["--round", "S1", "--segment", SEGMENTS[0], "--segment", "gender:male", "--model", "fake", "--questions", "4"]
        skip_board(monkeypatch)
        result = dtef("run", *what, "--max-calls", "5", "--no-roll-ups")
        assert server.answered == 5
        assert "3 budget" in result.stdout
        assert "sent as candidate: 5 calls, " in result.stdout
        with DagsterInstance.from_config(str(ingested / "dagster")) as instance:
            runs = [run for run in instance.get_runs() if SNAPSHOT_TAG in run.tags]
        assert len(runs) == 1, "segments that are no neighbours took a Dagster run each"
        assert "fake: 3 language-model predictions of 8 missing, because a budget was reached" in result.stderr
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


class TestFailures:
    def test_a_model_that_never_answers_sets_the_exit_code(self, ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        skip_board(monkeypatch)
        with FakeLLM(fault=always(Fault("status", status=401, message="no such key"))) as server:
            serve_as(server, ingested, monkeypatch)
            result = dtef("run", *ROUND, "--model", "fake", "--no-roll-ups")
        assert result.exit_code == 4, result.output
        assert (
            "warning: fake: 3 language-model predictions of 3 failed (fake: HTTP 401: no such key); the same" in result.stderr
        )


def test_both_draws_and_named_segments_choose_together(server: FakeLLM) -> None:
    run_stages("--round", "S1", *CHOSEN, "--model", "fake", "--questions", "8", "--sample-segments", "9")
    drawn = "draw_order < 8 AND segment_order < 9 AND segment IN ('country:brazil', 'country:germany')"
    wanted = query(f"SELECT segment, question_id FROM survey_responses WHERE {drawn} ORDER BY ALL")
    asked = query("SELECT DISTINCT segment, question_id FROM predictions WHERE model = 'fake' ORDER BY ALL")
    assert asked == wanted
    assert 0 < len(wanted) < 16


PLAIN, COT = "distribution/attribute-label", "distribution/attribute-label+cot"


def reply(call: Call) -> str:
    """Far off, and nearer after reasoning."""
    if "DISTRIBUTION:" in str(call.body["messages"]):
        return f"Let me think.\nDISTRIBUTION: {distribution(call, 40.0)}"
    return distribution(call, 97.0)


def test_two_conditions_of_one_run_are_compared(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeLLM(reply=reply) as server:
        serve_as(server, ingested, monkeypatch, **PRICES)
        conditions = ("--condition", "distribution", "--condition", "distribution+cot")
        run = ok("run", "--round", "S1", *CHOSEN, *conditions, "--model", "fake", "--questions", "2", "--no-roll-ups")
        assert server.answered == 2 * 2 * 2
    for table in (run, ok("board", "--by", "segment")):
        assert COT in table
    (row,) = strict(ok("board", "--by", "conditions", "--json"))
    assert (row["model"], row["condition"], row["first_condition"], row["n_pairs"]) == ("fake", COT, PLAIN, 4)
    assert row["difference"] == pytest.approx(row["score"] - row["first_score"])
    assert (row["verdict"], row["low"], row["parse_rate"]) == ("undecided", None, 1)
    usd = query(f"SELECT sum(cost_usd) AS usd FROM predictions WHERE condition = '{COT}'")[0]["usd"]
    assert row["cost_usd"] == pytest.approx(usd)
    (reversed_row,) = strict(ok("board", "--by", "conditions", "--condition", COT, "--json"))
    assert (reversed_row["condition"], reversed_row["difference"]) == (PLAIN, pytest.approx(-row["difference"]))
    printed = ok("board", "--by", "conditions")
    assert COT in printed
    assert "2 batteries, at least 5 are needed" in printed
    assert printed.splitlines()[-1] == "Columns: dtef explain survey/conditions"


def test_scores_of_one_condition_alone_are_refused_with_the_command_that_makes_another(reading: Path) -> None:
    assert "`dtef run --condition distribution --condition distribution+cot`" in refused("board", "--by", "conditions")


def test_the_summary_the_command_and_the_table_agree(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(call: Call) -> Fault | None:
        return Fault("status", status=400, message="too long") if "hospital" in call.user else None

    skip_board(monkeypatch)
    with FakeLLM(reply=lambda call: distribution(call, 40), fault=fault) as server:
        serve_as(server, ingested, monkeypatch, **PRICES)
        what = ["--questions", "4", "--context", "0", "--context", "2"]
        result = dtef("run", "--round", "S1", *CHOSEN, "--model", "fake", *what, "--no-roll-ups")
    with open_dagster_instance() as instance:
        assert make_roll_ups(instance, "survey", ["survey_costs"], {}).failures == ()
    (row,) = strict(ok("costs", "--family", "survey", "--json"))
    assert row["answered"] == server.answered
    assert row["answered"] + row["failed"] == 2 * 2 * 4
    tokens = row["prompt_tokens"] + row["completion_tokens"]
    assert row["cost_usd"] == pytest.approx((row["prompt_tokens"] + 2 * row["completion_tokens"]) / 1e6)
    calls = row["answered"] + row["failed"]
    assert f"sent as candidate: {calls} calls, {tokens:,} tokens, ${row['cost_usd']:,.4f}\n" in result.stdout
    assert f"warning: fake: {row['failed']} language-model predictions of {calls} failed" in result.stderr
    (table,) = query("SELECT sum(answered)::INT AS answered, sum(failed)::INT AS failed, sum(cost_usd) AS usd FROM costs")
    assert (table["answered"], table["failed"]) == (row["answered"], row["failed"])
    assert table["usd"] == pytest.approx(row["cost_usd"])
    for view in ("round", "segment", "snapshot", "condition"):
        rows = strict(ok("costs", "--family", "survey", "--by", view, "--json"))
        assert sum(one["cost_usd"] for one in rows) == pytest.approx(row["cost_usd"])
    assert len(strict(ok("costs", "--family", "survey", "--by", "segment", "--by", "model", "--json"))) == 2


def test_snapshots_and_rounds_can_be_chosen(reading: Path) -> None:
    rows = strict(ok("costs", "--family", "survey", "--by", "snapshot", "--json"))
    assert [(row["snapshot"], row["answered"]) for row in rows] == [("2026-01-01", 12), ("2026-01-03", 12)]
    (night,) = strict(ok("costs", "--family", "survey", "--snapshot", "2026-01-03", "--json"))
    assert night["answered"] == 12
    assert "no costs of snapshot base; there are: 2026-01-01, 2026-01-03" in refused(
        "costs", "--family", "survey", "--snapshot", "base"
    )

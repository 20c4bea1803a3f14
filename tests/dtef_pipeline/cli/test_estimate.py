"""`dtef run --estimate` says what `dtef run` then does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.dtef_pipeline.cli.commands import CHOSEN, ok, query, run_stages, serve_as
from tests.fake_llm_server import FakeLLM
from tests.strict_json import strict

ROUND = ["--round", "S1", *CHOSEN]


def estimated(*options: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = strict(ok("run", "--estimate", *ROUND, *options, "--json"))
    return rows


class TestAgreesWithTheRun:
    def test_calls_are_those_that_arrive_and_a_second_estimate_finds_them_answered(self, server: FakeLLM) -> None:
        options = ["--questions", "3", "--context", "0", "--context", "2"]
        before = estimated("--model", "fake", *options)
        assert {row["replayed"] for row in before} == {0}
        assert "There are no responses of fake yet" in ok("run", "--estimate", *ROUND, "--model", "fake", *options)
        run_stages(*ROUND, "--model", "fake", *options)
        assert sum(row["calls"] for row in before) == server.answered
        (asked,) = query("SELECT count(DISTINCT request_key) AS n FROM predictions WHERE model = 'fake'")
        assert {row["model"]: row["requests"] for row in before} == {"fake": asked["n"]}
        after = estimated("--model", "fake", *options)
        assert [(row["requests"], row["replayed"], row["calls"], row["cost_usd"]) for row in after] == [
            (row["requests"], row["requests"], 0, 0.0) for row in before
        ]
        later = ok("run", "--estimate", *ROUND, "--model", "fake", *options, "--snapshot", "later")
        assert "There are no responses" not in later


class TestSays:
    def test_tokens_and_dollars_by_the_prices_of_the_models_file(self, server: FakeLLM) -> None:
        (row,) = estimated("--model", "fake", "--questions", "3")
        assert row["calls"] == row["calls_max"]
        assert row["response_tokens"] < row["response_tokens_max"] == row["calls"] * 256
        assert row["cost_usd"] == pytest.approx((row["prompt_tokens"] * 1.0 + row["response_tokens"] * 2.0) / 1e6)
        assert row["cost_usd_max"] == pytest.approx((row["prompt_tokens"] * 1.0 + row["response_tokens_max"] * 2.0) / 1e6)
        assert server.calls == []

    def test_an_unknown_price_is_not_zero(self, ingested: Path, server: FakeLLM, monkeypatch: pytest.MonkeyPatch) -> None:
        models = ["--model", "fake", "--model", "fake@seed=1", "--questions", "2"]
        table = ok("run", "--estimate", *ROUND, *models)
        assert table.count("$") == 2 * 4
        serve_as(server, ingested, monkeypatch)
        table = ok("run", "--estimate", *ROUND, *models)
        assert "$" not in table
        assert table.count("unknown") == 2 * 4
        assert {row["cost_usd"] for row in estimated(*models)} == {None}

    def test_answers_without_a_limit_have_no_most(self, server: FakeLLM) -> None:
        (row,) = estimated("--model", "fake@max_tokens=null", "--questions", "2")
        assert (row["response_tokens_max"], row["cost_usd_max"]) == (None, None)
        assert row["cost_usd"] > 0
        assert "no limit" in ok("run", "--estimate", *ROUND, "--model", "fake@max_tokens=null", "--wide")

    def test_the_total_is_the_sum_and_conditions_are_distinguished_when_there_are_several(self, server: FakeLLM) -> None:
        conditions = ["--condition", "shift", "--condition", "distribution"]
        table = ok("run", "--estimate", *ROUND, "--model", "fake", *conditions, "--questions", "2")
        assert "fake, shift/attribute-label" in table
        total = next(line for line in table.splitlines() if line.startswith(" total"))
        assert total.split()[1:4] == ["8", "0", "8"]

    def test_baselines_ask_no_model(self, ingested: Path) -> None:
        assert "no language model is called" in ok("run", "--estimate", *ROUND)
        assert estimated("--model", "baselines") == []

    @pytest.mark.parametrize("first", ["ask", "ingest"])
    def test_nothing_is_written(self, server: FakeLLM, ingested: Path, first: str) -> None:
        before = {path: path.stat().st_mtime_ns for path in ingested.rglob("*")}
        assert "calls" in ok("run", "--estimate", *ROUND, "--model", "fake", "--context", "2", "--from", first)
        assert {path: path.stat().st_mtime_ns for path in ingested.rglob("*")} == before


class TestBudgets:
    def test_those_of_the_run_and_of_a_model_are_compared_with_what_is_expected(self, server: FakeLLM) -> None:
        what = ["run", "--estimate", *ROUND, "--model", "fake", "--model", "fake@seed=1", "--questions", "3"]
        text = ok(*what, "--max-calls", "11", "--max-cost-usd", "fake=100", "--max-tokens", "fake@seed=1=2000")
        assert "max_calls 11 would be reached: 12 expected" in text
        assert "fake: max_cost_usd 100.0 is enough: at most 0.00" in text
        assert "fake@seed=1: max_tokens 2,000 may be reached: " in text

    def test_the_one_of_the_models_file_counts(self, server: FakeLLM, ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        serve_as(server, ingested, monkeypatch, budget={"max_calls": 3, "max_cost_usd": 1})
        text = ok("run", "--estimate", *ROUND, "--model", "fake", "--questions", "3")
        assert "fake: max_calls 3 would be reached: 6 expected" in text
        assert "fake: max_cost_usd 1.0 cannot be kept: the price is unknown" in text


def test_what_the_questions_can_tell_is_stated_before_anything_is_asked(server: FakeLLM) -> None:
    # `--questions 10` of GD4 lay in 3 batteries, and only the finished board said that none of its scores has an interval.
    few = ok("run", "--estimate", *ROUND, "--model", "fake", "--questions", "3")
    assert "S1: 3 of 16 questions, in 3 of 12 batteries: too few" in few
    assert "(--questions 5 or more)" in few
    sampled = [
        ok("run", "--estimate", "--round", "S1", "--model", "fake", "--sample-segments", number) for number in ("2", "6")
    ]
    assert "S1: all 16 questions, in 12 batteries: enough" in sampled[0]
    assert "32 of 412 pairs" in sampled[0]
    assert "from scores of baselines" in sampled[0]
    errors = [float(re.search(r"(0\.\d+) of a difference", text)[1]) for text in sampled]  # type: ignore[index]
    assert errors[0] > errors[1] > 0
    assert server.answered == 0

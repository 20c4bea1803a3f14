"""`dtef qa run --estimate` compares budgets with what it expects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import name_panel, ok
from tests.fake_llm_server import Call, FakeLLM
from tests.strict_json import strict

SUMS = ROOT / "data" / "questions" / "gsm8k"
ASKING = ("--model", "answerer", "--judge", "judge", "--limit", "4")


def replied(call: Call) -> str:
    return '{"score": 0.5, "reason": "half"}' if call.body["model"] == "judge" else "The answer is 12."


@pytest.fixture
def server(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLM]:
    """A state with sums to be asked, and a server with prices that plays a model and its judge."""
    with FakeLLM(reply=replied) as found:
        priced = {"api_base": found.base_url, "input_price": 1.0, "output_price": 2.0, "retries": 1}
        specs = {name: {"model": f"openai/{name}", **priced} for name in ("answerer", "judge")}
        (state / "models.yaml").write_text(yaml.safe_dump({"models": specs}), encoding="utf-8")
        monkeypatch.setenv("DTEF_MODELS", str(state / "models.yaml"))
        ok("qa", "add", "gsm8k", SUMS)
        yield found


def estimated(*options: str) -> dict[str, dict[str, Any]]:
    return {row["role"]: row for row in strict(ok("qa", "run", "--estimate", *ASKING, *options, "--json"))}


def test_budgets_and_the_day_of_judges_are_compared_with_the_estimate(
    server: FakeLLM, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_panel(state, monkeypatch, qa={"daily_budget": 0.0001})
    told = ok("qa", "run", "--estimate", *ASKING, "--max-calls", "100")
    assert "1 part, 4 responses, snapshot base" in told
    assert "daily_budget of judges 0.0001 would be reached" in told
    assert "max_calls 100 is enough: at most 20" in told


def test_without_a_judge_answers_alone_are_counted(server: FakeLLM) -> None:
    assert set(estimated("--judge", "none")) == {"candidate"}

"""A round that asks one question twice: the model is asked once, and bill and tables say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.responses.store import ResponseStore
from tests.assets.conftest import COUNTRIES, write_survey
from tests.dtef_pipeline.cli.commands import distribution, ok, query, run_stages, serve_as
from tests.fake_llm_server import FakeLLM
from tests.strict_json import strict

QUESTIONS, TEXTS = 3, 2


@pytest.fixture
def server(state: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The first and the last question of the round T1 are the same."""
    survey = write_survey(state / "survey.csv", ["T1"], questions=QUESTIONS)
    survey.write_text(survey.read_text(encoding="utf-8").replace("number 2?", "number 0?"), encoding="utf-8")
    ok("add", survey)
    with FakeLLM(reply=lambda call: distribution(call, 50)) as running:
        serve_as(running, state, monkeypatch, input_price=1.0, output_price=2.0)
        yield running


def estimated() -> dict[str, Any]:
    (row,) = strict(ok("run", "--estimate", "--round", "T1", "--model", "fake", "--json"))
    return {name: row[name] for name in ("requests", "replayed", "calls", "cost_usd")}


def test_each_text_is_bought_once_and_counted_once(server: FakeLLM, state: Path) -> None:
    before, calls = estimated(), TEXTS * len(COUNTRIES)
    assert (before["requests"], before["calls"]) == (calls, calls)
    run_stages("--round", "T1", "--model", "fake")
    assert len(server.calls) == server.answered == calls
    assert max(server.answers.values()) == 1
    after = estimated()
    assert after == {"requests": calls, "replayed": calls, "calls": 0, "cost_usd": 0.0}
    with ResponseStore(state / "responses.sqlite") as store:
        (bought,) = store.summary().to_pylist()
    assert bought["responses"] == calls
    (summed,) = query("SELECT sum(cost_usd) AS cost, count(*) AS n FROM predictions WHERE model = 'fake'")
    assert summed["cost"] == pytest.approx(bought["cost_usd"])
    assert summed["n"] == QUESTIONS * len(COUNTRIES)

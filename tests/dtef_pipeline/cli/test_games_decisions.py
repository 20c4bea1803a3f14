"""`dtef games run --decisions`: a model whose strategy is known is asked in every decision of Kuhn poker, and is worth what it should be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.games.exact.decision_points import list_decision_points
from dtef_pipeline.games.exact.strategy_values import compute_exact_values
from tests.dtef_pipeline.cli.commands import dtef, ok, refused, serve_as
from tests.fake_llm_server import Call, FakeLLM
from tests.made.small_poker import small_poker
from tests.strict_json import strict

DRAWS = 4
ASKS_KUHN = ("games", "run", "--decisions", "--scenario", "poker/kuhn", "--player", "fake", "--draws", DRAWS)


def legal_in(call: Call) -> list[str]:
    found = re.search(r"Legal commands: (.*)", call.user)
    assert found
    return found[1].split(", ")


def one_in_four(call: Call) -> str:
    """A player that gives the last legal command in one draw of four: draws of one prompt come in any order, but there are four."""
    return f"Let me see.\nACTION: {legal_in(call)[-1 if call.attempt % DRAWS == 0 else 0]}"


@pytest.fixture
def server(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLM]:
    with FakeLLM(one_in_four) as server:
        prices = {"input_price": 1.0, "output_price": 1.0}
        serve_as(server, state, monkeypatch, temperature=1.0, api_key_env="OPENAI_API_KEY", **prices)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up")
        yield server


def shown(*words: object) -> dict[str, dict[str, Any]]:
    """The rows by player."""
    return {row["player"]: row for row in strict(ok(*ASKS_KUHN, "--json", *words))}


def test_a_known_strategy_is_read_off_and_nothing_is_asked_twice(server: FakeLLM) -> None:
    game = small_poker("kuhn")
    played = {point.id: {point.legal[0]: 0.75, point.legal[-1]: 0.25} for point in list_decision_points(game)}
    exact = compute_exact_values(game, played)
    (row,) = strict(ok(*ASKS_KUHN, "--estimate", "--json"))
    assert (row["replayed"], row["calls"], len(server.calls)) == (0, 12 * DRAWS, 0)
    assert row["cost_usd"] > 0
    found = shown()
    assert len(server.calls) == 12 * DRAWS
    own = found["fake"]
    assert own["as_drawn"] == pytest.approx(exact.exploitability.value)
    for baseline, won in exact.against.items():
        assert own[f"against_{baseline}"] == pytest.approx(won.value)
    assert own["low"] <= own["exploitability"] < own["as_drawn"] < own["high"]
    assert (own["unreadable"], own["draws"], own["points"]) == (0, 48, 12)
    assert found["baseline/random"]["exploitability"] == pytest.approx(0.4583333)
    assert found["baseline/always-pass"]["of_random"] == pytest.approx(1 / 0.4583333)
    assert (
        "no player was given: the run asks no model" in dtef("games", "run", "--decisions", "--scenario", "poker/kuhn").output
    )
    assert len(server.calls) == 12 * DRAWS
    (spent,) = strict(ok("costs", "--family", "games", "--json"))
    assert (spent["answered"], spent["model"]) == (48, "fake")
    (row,) = strict(ok(*ASKS_KUHN, "--estimate", "--json"))
    assert (row["replayed"], row["calls"]) == (48, 0)


def test_without_a_model_and_without_stored_answers_no_warehouse_is_made(server: FakeLLM, state: Path) -> None:
    told = refused("games", "run", "--decisions", "--scenario", "poker/kuhn")
    assert "no player was given, and" in told
    assert "has no answers to value: --player NAME asks a model" in " ".join(told.split())
    assert not (state / "warehouse").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--scenario", "solitaire/thirteen"), "no decision points; allowed: poker/kuhn, poker/leduc"),
        (("--scenario", "poker/kuhn", "--sample", "13"), "got a sample of 13; allowed: from 1 to 12 decision points"),
        (("--scenario", "poker/kuhn", "--fill", "nahs"), "fill 'nahs': allowed: nash"),
        (("--player", "baseline/nash"), "baselines are always shown and never asked"),
        (("--seeds", "1-3"), "--seeds does not work with --decisions, which allows "),
        (("--persona", "nobody", "--player", "fake"), "persona nobody: unknown"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is(server: FakeLLM, words: tuple[str, ...], told: str) -> None:
    assert told in refused("games", "run", "--decisions", *words)
    assert not server.calls


def test_a_sample_that_a_baseline_fills_is_partial_and_stands_behind_whole_strategies(server: FakeLLM, tmp_path: Path) -> None:
    """Three decisions of a model, and nash in the nine others, once stood among whole strategies without a mark."""
    asked = (
        "games",
        "run",
        "--decisions",
        "--scenario",
        "poker/kuhn",
        "--draws",
        2,
        "--sample",
        3,
        "--fill",
        "nash",
        "--player",
        "fake",
    )
    rows = strict(ok(*asked, "--json"))
    own = rows[-1]
    assert (own["player"], own["status"], own["points"], own["of_points"], own["filled"]) == ("fake", "partial", 3, 12, 9)
    assert {row["status"] for row in rows[:-1]} == {"scored"}
    assert own["as_drawn"] < max(row["exploitability"] for row in rows[:-1]), "by its number it would stand before others"
    table = ok(*asked)
    assert "3 of 12 decision points were asked, nash plays in 9" in " ".join(table.split())
    ok("report", "--out", tmp_path / "out")
    text = (tmp_path / "out" / "games" / "scenarios" / "poker.kuhn.html").read_text(encoding="utf-8")
    assert "This is Kuhn poker" in text, "rules stand in documents, not in tables"
    assert "3 of 12 decision points were sent, nash plays at the others" in text

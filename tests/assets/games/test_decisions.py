"""Decision points in Dagster: a scenario without any has empty tables, and one with some has its baselines even if nobody is asked."""

from __future__ import annotations

import threading

import pytest

from assets.games.scenarios import add_scenarios
from assets.launch import DECISION_STAGE_NAMES, OF_SCENARIOS, materialize
from dtef_pipeline.games import packs
from dtef_pipeline.games.packs import adapters
from dtef_pipeline.games.tables import LEAGUE_SPACE
from tests.assets.games.conftest import REPLIES, SHOW_CARDS, League
from tests.fake_llm_server import Call

KUHN_KEY, LEDUC_KEY = "poker/kuhn", "poker/leduc"
OF_KUHN, OF_LEDUC = adapters()[KUHN_KEY], adapters()[LEDUC_KEY]


def test_scenarios_without_decision_points_have_empty_tables(league: League, monkeypatch: pytest.MonkeyPatch) -> None:
    of_show_cards = packs.adapters()[SHOW_CARDS]
    monkeypatch.setattr(packs, "adapters", lambda: {SHOW_CARDS: of_show_cards, KUHN_KEY: OF_KUHN})
    add_scenarios(league.instance, [KUHN_KEY])
    config = {"decision_answers": {"models": ["legal"], "draws": 2}, "strategy_values": {"resamples": 20}}
    names = [SHOW_CARDS, KUHN_KEY]
    assert materialize(league.instance, DECISION_STAGE_NAMES, names, config, space=OF_SCENARIOS).failures == ()
    assert len(league.table("decision_answers")) == len(league.table("strategy_values")) == 0
    of_kuhn = league.house.read("decision_answers", **LEAGUE_SPACE.levels(KUHN_KEY), snapshot="base")
    # The player always shows, which is no command of poker.
    assert set(of_kuhn["illegal_kind"].to_pylist()) <= {"illegal", "unparsed"}
    assert len(league.server.calls) == len(of_kuhn) == 24
    values = league.house.read("strategy_values", **LEAGUE_SPACE.levels(KUHN_KEY), snapshot="base").to_pylist()
    shown = {row["model"]: row["value"] for row in values if row["quantity"] == "exploitability"}
    assert shown.pop("legal") is None
    assert shown == pytest.approx(
        {"baseline/nash": 0, "baseline/always-bet": 1 / 3, "baseline/always-pass": 1, "baseline/random": 0.4583333}, abs=1e-6
    )


def test_decision_points_of_all_scenarios_are_asked_side_by_side(league: League, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a model that was slow in one scenario held up the next one."""
    leduc_was_asked, waited_for_nothing = threading.Event(), list[str]()

    def reply(call: Call) -> str:
        if "Leduc" in call.body["messages"][0]["content"]:
            leduc_was_asked.set()
        elif not leduc_was_asked.wait(60):
            waited_for_nothing.append(call.user)
        return "ACTION: bet"

    monkeypatch.setitem(REPLIES, "legal", reply)
    monkeypatch.setattr(packs, "adapters", lambda: {KUHN_KEY: OF_KUHN, LEDUC_KEY: OF_LEDUC})
    add_scenarios(league.instance, [KUHN_KEY, LEDUC_KEY])
    config = {"decision_answers": {"models": ["legal"], "draws": 1, "sample": 2}}
    launched = materialize(league.instance, DECISION_STAGE_NAMES[:1], [KUHN_KEY, LEDUC_KEY], config, space=OF_SCENARIOS)
    assert (launched.failures, waited_for_nothing) == ((), [])
    for key in (KUHN_KEY, LEDUC_KEY):
        answers = league.house.read("decision_answers", **LEAGUE_SPACE.levels(key), snapshot="base")
        assert answers["call_status"].to_pylist() == ["answered"] * 2

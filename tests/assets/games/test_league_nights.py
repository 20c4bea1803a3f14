"""The schedule `games_nightly`: which games a night has, how it is configured, and what two nights of a run tell of drift."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from assets.definitions import defs
from assets.games.roll_ups import baselines_are_unchanged, games_drift, games_has_no_drift, games_nightly
from assets.stage.resources import Store
from dtef_pipeline.cli.stage_runs import open_dagster_instance
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.tables import LEAGUE_SPACE
from resources.settings import Settings
from resources.warehouse import Warehouse
from tests.assets.games.conftest import REPLIES, SHOW_CARDS, League, silent_text, write_made_models, write_made_scenarios
from tests.assets.ticks import run_request, tick
from tests.dtef_pipeline.cli.commands import ok, refused
from tests.fake_llm_server import FakeLLM

Night = Callable[[str, int], Any]
PANEL_OF_LEAGUE = "games: {scenarios: [show-cards], models: [legal], personas: [calm], opponents: [careful], seeds: 1-8}\n"


@pytest.fixture
def league(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[League]:
    """As that of all tests, on an instance that a schedule can write to."""
    write_made_scenarios(state, monkeypatch)
    with FakeLLM(lambda call: REPLIES[call.body["model"]](call)) as server, open_dagster_instance() as instance:
        write_made_models(state, monkeypatch, server)
        yield League(instance, Warehouse(Settings.read_environment().warehouse), server)


@pytest.fixture
def night(league: League, state: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    """What the tick of a night says, given the panel's text and the day."""
    place = state / "panel.yaml"
    monkeypatch.setenv("DTEF_PANEL", str(place))

    def asked(panel: str, day: int = 1) -> Any:
        place.write_text(panel, encoding="utf-8")
        return tick(games_nightly, league.instance, datetime(2026, 3, day, 3, 30, tzinfo=UTC))

    return asked


def test_a_night_is_one_run_of_all_stages_in_a_snapshot_of_the_date(night: Night, league: League) -> None:
    assert not league.instance.has_dynamic_partition(LEAGUE_SPACE.name, SHOW_CARDS)
    request = night(
        "games: {scenarios: ['made/*'], models: [legal], personas: [none, calm], baselines: [waits], draws: 2, max_cost_usd: 1.5, "
        "role_budgets: {candidate: {max_calls: 9}}}\n",
        1,
    )
    assert (request.run_key, request.tags["dtef/snapshot"]) == ("games_nightly 2026-03-01", "2026-03-01")
    dg.validate_run_config(defs.resolve_job_def("games_pipeline"), request.run_config)
    config = {name: given["config"] for name, given in request.run_config["ops"].items()}
    assert {key.to_user_string() for key in request.asset_selection} == set(config)
    entered = {"players": ["legal", "baseline/waits"], "personas": ["none", "calm"]}
    asking = {"snapshot": "2026-03-01", "max_cost_usd": 1.5, "role_budgets": {"candidate": {"max_calls": 9}}, "draws": 2}
    assert config == {
        "scenario_items": {},
        "episode_prompts": entered,
        "episodes": {**entered, **asking},
        "episode_scores": {"snapshot": "2026-03-01"},
    }
    assert league.instance.has_dynamic_partition(LEAGUE_SPACE.name, SHOW_CARDS), "it was never played, and becomes a partition"


UNKNOWN_NAMES = (
    ("scenarios: [chess]", "games.scenarios: 'chess' matches none; known: made/show-cards"),
    ("scenarios: [show-cards], models: [nobody]", "nobody"),
    ("scenarios: [show-cards], models: [legal], personas: [brave]", "persona brave: unknown"),
    ("scenarios: [show-cards], models: [legal], baselines: [clever]", "baseline/clever: made/show-cards has none"),
    ("scenarios: [show-cards], models: [legal], seeds: 9-1", "games.seeds: '9-1'"),
    ("scenarios: [show-cards], models: [legal], opponents: [nobody]", "nobody"),
    ("scenarios: [show-cards], draws: 0", r"panel.yaml:1: games.draws: got 0; allowed: 1 to 100,000"),
    ("scenarios: [show-cards], players: [legal]", r"panel.yaml:1: games.players: unknown key; known: max_cost_usd"),
)
"""What a panel may have wrong, and what the tick then says."""


def test_a_panel_without_scenarios_plays_nothing_and_a_name_that_nothing_has_fails_the_tick(
    night: Night, subtests: pytest.Subtests
) -> None:
    for panel in ("models: [baselines]\n", "games: {models: [legal]}\n"):
        with subtests.test(panel):
            assert "no panel file with a section `games` that names scenarios" in night(panel).skip_message
    for given, said in UNKNOWN_NAMES:
        with subtests.test(given), pytest.raises(ConfigError, match=said):
            night(f"games: {{{given}}}\n")


def test_a_player_that_got_worse_is_seen_and_so_is_a_baseline_that_moved(
    night: Night, league: League, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(night(PANEL_OF_LEAGUE, 1), league)
    monkeypatch.setitem(REPLIES, "legal", silent_text)
    run_of(night(PANEL_OF_LEAGUE, 2), league)
    checks = checks_of_drift()
    assert {name: check.passed for name, check in checks.items()} == {
        "games_has_no_drift": False,
        "baselines_are_unchanged": True,
    }
    (row,) = league.rows("drift")
    assert (row["model"], row["setting"]) == ("legal", "persona calm:v2 against baseline/careful, success_rate")
    assert (row["verdict"], row["n_prompts"]) == ("watch", 16)
    assert " in 2026-03-02, " in row["reason"]
    (ruled,) = league.rows("drift_rule")
    assert (ruled["partition"].split("/")[1], ruled["flagged"]) == ("show-cards", True)
    said = " ".join(ok("drift", "--family", "games").split())
    assert "legal" in said
    assert "watch" in said
    assert "scores of baselines changed" not in said
    (shown,) = json.loads(ok("drift", "--family", "games", "--by", "scenario", "--json"))
    assert (shown["partition"], shown["lowest_snapshot"]) == (ruled["partition"], "2026-03-02")
    accepted = ok("drift", "--family", "games", "--since", "legal=2026-03-02", "--json")
    assert [one["verdict"] for one in json.loads(accepted)] == [None]
    assert "works with --by model only" in refused("drift", "--family", "games", "--by", "scenario", "--since", "2026-03-02")
    move_a_baseline(league)
    check = checks_of_drift()["baselines_are_unchanged"]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert "scores of baselines changed, so the games changed" in " ".join(ok("drift", "--family", "games").split())


def run_of(request: dg.RunRequest, league: League) -> None:
    """The run that the tick asks for."""
    result = run_request(request, league.instance, "games_pipeline")
    assert result.success, [event.step_failure_data.error for event in result.all_events if event.is_step_failure]


def checks_of_drift() -> dict[str, dg.AssetCheckEvaluation]:
    assets = [games_drift, games_has_no_drift, baselines_are_unchanged]
    result = dg.materialize(assets, resources={"store": Store()})
    return {str(one.check_name): one for one in result.get_asset_check_evaluations()}


def move_a_baseline(league: League) -> None:
    """As if the engine had changed after the first night, and the scenario had kept its version."""
    at = {**LEAGUE_SPACE.levels(SHOW_CARDS), "snapshot": "2026-03-02"}
    rows = league.house.read("episode_scores", **at)
    moved = [
        {**row, "value": row["value"] + 1} if row["model"] == "baseline/waits" and row["metric"] == "expected_return" else row
        for row in rows.to_pylist()
    ]
    league.house.write("episode_scores", pa.Table.from_pylist(moved, rows.schema), **at)

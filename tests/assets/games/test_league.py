"""Whole runs of the games family: players of all kinds, what is bought, and that what was submitted is what is played and shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from assets.games.game_catalog import load_known_scenarios
from assets.launch import LaunchResult, materialize
from dtef_pipeline.api.plans.games_plan import GAMES_PLANS, GamesManifest
from dtef_pipeline.api.plans.plan import PlannedEvaluation
from dtef_pipeline.api.results.run_context import RunContext
from dtef_pipeline.api.results.run_results_games import GamesResults
from resources.evaluations.evaluation_store import Evaluation, EvaluationStore
from resources.settings import Settings
from resources.votes.game_documents import GameDocumentStore
from tests.assets.family_state import GAMES_STAGE_NAMES
from tests.assets.games.conftest import CALM, SHOW_CARDS, League
from tests.conftest import ROOT


def test_a_run_of_the_ui_lets_no_draft_play_unless_its_configuration_says_so(league: League, state: Path) -> None:
    """Regression: commands and nights refused drafts, and a run that was launched from the UI played them."""
    place = state / "personas" / "calm.yaml"
    place.write_text(place.read_text(encoding="utf-8").replace("approved", "draft"), encoding="utf-8")
    as_opponent = league.run("baseline/waits", seeds="1", opponents=["calm@legal"])
    as_player = league.run("legal", seeds="1", personas=["calm"])
    for failure in (*as_opponent.failures, *as_player.failures):
        assert "calm:v2 (draft): not approved" in failure
        assert "`unapproved: true`" in failure
    assert (len(as_opponent.failures), len(as_player.failures), len(league.server.calls)) == (1, 1, 0)
    assert league.run("legal", seeds="1", personas=["calm"], unapproved=True).failures == ()
    assert len(league.server.calls) > 0


def test_baselines_play_every_seed_in_all_seats_and_results_stand_per_player_and_opponent(league: League) -> None:
    opponents = ["careful", "waits"]
    assert league.run("baseline/all", seeds="1-8", opponents=opponents).failures == ()
    episodes = league.rows("episodes")
    # Four baselines (random, first-legal, careful, waits), eight seeds, two seats, two opponents.
    assert len(episodes) == 4 * 8 * 2 * 2
    assert {row["status"] for row in episodes} == {"played"}
    assert all(sum(row["rewards"]) == 0 for row in episodes)
    assert len(league.server.calls) == 0
    # Rows of an earlier run stay.
    league.run("legal", seeds="8-9", opponents=opponents)
    assert Counter(row["model"].partition("/")[0] for row in league.rows("episodes")) == {"baseline": 128, "legal": 8}
    assert {row["seed"] for row in league.rows("scenario_items")} == set(range(1, 10))
    assert league.roll_up("persona_results").failures == ()
    results = league.rows("persona_results")
    met = [row for row in results if row["metric"] == "expected_return" and row["opponent"] != "all"]
    assert {row["opponent"] for row in results} == {"all", "baseline/careful", "baseline/waits"}
    # Five players, two opponents.
    assert len(met) == 5 * 2
    same = next(row for row in met if row["model"] == row["opponent"] == "baseline/careful")
    assert (same["mean"], same["low"], same["n_episodes"], same["n_clusters"]) == (0, None, 16, 8)
    assert "same value" in same["reason"]
    own = {row["metric"]: row for row in results if row["model"] == "baseline/random" and row["opponent"] == "all"}
    assert own["show_rate"]["low"] < own["show_rate"]["mean"] < own["show_rate"]["high"]
    assert own["show_rate"]["interval_kind"] == "t"
    assert (own["show_rate"]["illegal_rate"], own["tokens"]["mean"], own["tokens"]["reason"]) == (0, None, "no model plays")


def test_a_rerun_of_a_league_sends_no_request(league: League) -> None:
    """Models also play each other, and share their requests."""
    given = {"seeds": "1-3", "personas": ["none", "calm"], "opponents": ["careful", "legal", "sloppy"]}
    assert league.run("legal", "sloppy", **given).failures == ()
    episodes, turns = league.rows("episodes"), league.rows("episode_turns")
    assert len(episodes) == 2 * 2 * 3 * 2 * 3
    bought = len(league.server.calls)
    assert 0 < bought == len({row["request_key"] for row in turns}) < len(turns)
    assert {row["under_test"] for row in turns} == {True, False}
    assert {row["persona"] for row in episodes} == {"", "calm:v2"}
    sloppy = [row for row in episodes if row["model"] == "sloppy"]
    assert all(row["illegal"] == row["n_turns"] for row in sloppy)
    assert all(row["forfeits"] == 0 for row in episodes)
    assert sum(row["completion_tokens"] > 0 for row in turns) == bought
    assert all(row["tokens"] > 0 for row in episodes if row["n_turns"])
    assert {row["plan"] for row in turns if row["model"] == "legal"} == {"I trust my card."}
    before = league.table("episodes")
    assert league.run("legal", "sloppy", **given).failures == ()
    assert len(league.server.calls) == bought
    assert league.table("episodes").equals(before)


def test_a_player_that_cannot_move_forfeits_and_is_distinguished(league: League) -> None:
    assert league.run("silent", seeds="1-6").failures == ()
    episodes = league.rows("episodes")
    asked = [row for row in episodes if row["n_turns"]]
    assert asked
    assert all((row["forfeits"], row["unparsed"], row["outcome"]) == (1, 3, "loss") for row in asked)
    league.roll_up("persona_results")
    (row,) = [row for row in league.rows("persona_results") if row["metric"] == "expected_return" and row["opponent"] == "all"]
    assert row["forfeit_rate"] == pytest.approx(len(asked) / len(episodes))
    assert row["unparsed_rate"] == 3


def test_an_episode_out_of_budget_keeps_its_turns_and_goes_on_in_a_rerun(league: League) -> None:
    league.run("sloppy", seeds="1-3", max_calls=4)
    states = Counter(row["status"] for row in league.rows("episodes"))
    assert states["skipped_budget"] > 0
    answered = [row for row in league.rows("episode_turns") if row["call_status"] == "answered"]
    assert len({row["request_key"] for row in answered}) == 4
    assert any(row["call_status"] == "budget" for row in league.rows("episode_turns"))
    unscored = [row for row in league.rows("episode_scores") if row["status"] == "unscored"]
    assert all(row["value"] is None and row["reason"] for row in unscored)
    league.run("sloppy", seeds="1-3")
    assert {row["status"] for row in league.rows("episodes")} == {"played"}
    answered = [row for row in league.rows("episode_turns") if row["call_status"] == "answered"]
    assert len(league.server.calls) == len({row["request_key"] for row in answered})


@pytest.mark.thorough
def test_the_pages_code_for_notebooks_gives_the_means_of_the_board(league: League) -> None:
    page = (ROOT / "docs" / "how-to" / "read-the-tables.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page.partition("\n## Games\n")[2], re.DOTALL)
    league.run("baseline/all", seeds="1-6")
    league.roll_up("persona_results")
    names: dict[str, Any] = {"pd": pd, "warehouse": league.house.root}
    exec(code, names)
    found = {key[-1]: mean for key, mean in names["returns"].items()}
    results = league.rows("persona_results")
    own = {row["model"]: row for row in results if (row["metric"], row["opponent"]) == ("expected_return", "all")}
    assert found == {model: pytest.approx(row["mean"]) for model, row in own.items()}


TABLES = ("scenario_items", "episodes", "episode_scores")
WAITS = {"family": "games", "persona_ids": ["none"], "scenario_ids": [SHOW_CARDS], "models": ["baseline/waits"]}


def planned(**given: Any) -> PlannedEvaluation:
    return GAMES_PLANS.plan(GamesManifest.model_validate({**WAITS, **given}), Settings.read_environment())


def play(league: League, plan: PlannedEvaluation) -> LaunchResult:
    return materialize(league.instance, GAMES_STAGE_NAMES, list(plan.keys), plan.config, family="games")


def add(kind: Any, document: Mapping[str, Any], status: str) -> None:
    """A version made over HTTP, and what was said of it afterwards."""
    first = {"persona": "draft", "scenario": "experimental"}[kind]
    with GameDocumentStore(Settings.read_environment().responses_url) as store:
        made = {**document, "status": first}
        store.add(kind, made, "alice", revision=store.read_all().revision(kind, made["id"]))
        if status != first:
            said = {**made, "status": status}
            store.say(kind, said, "alice", revision=store.read_all().revision(kind, made["id"]), before=made)


def next_scenario(**changed: Any) -> None:
    now = load_known_scenarios(Settings.read_environment())[SHOW_CARDS].model_dump(mode="json")
    add("scenario", {**now, "version": now["version"] + 1, "seeds": {"first": 1, "count": 5}, **changed}, "production")


def by_version(league: League, table: str = "episodes") -> dict[int, list[dict[str, Any]]]:
    rows = league.rows(table)
    return {version: [row for row in rows if row["version"] == version] for version in {row["version"] for row in rows}}


def submitted(plan: PlannedEvaluation) -> Evaluation:
    with EvaluationStore(Settings.read_environment().responses_url) as store:
        return store.submit("games", {"family": "games"}, plan.build_plan_json(), plan.runs, "operator")[0]


def shown(league: League, evaluation: Evaluation) -> tuple[Any, ...]:
    run = RunContext(evaluation, evaluation.runs[0], Settings.read_environment(), league.house)
    found = GamesResults(run)
    return found.metrics(found.counts()), found.counts(), found.traces(), [found.trace(one) for one in found.traces()]


def test_versions_are_played_and_shown_as_submitted_whatever_was_made_meanwhile(league: League) -> None:
    evaluation = submitted(plan := planned())
    (run,) = plan.runs
    assert (run.asks["scenario_version"], run.asks["seeds"], run.asks["opponents"]) == (1, "1-3", ["baseline/careful"])
    next_scenario(opponents=["waits"])
    assert play(league, plan).failures == ()
    assert all(set(by_version(league, table)) == {1} for table in TABLES)
    assert Counter(row["opponent"] for row in league.rows("episodes")) == {"baseline/careful": 6}
    before = shown(league, evaluation)
    assert {one["n"] for one in before[0] if one["metric"] == "expected_return"} == {6}
    assert play(league, planned()).failures == ()
    assert shown(league, evaluation) == before
    both = {table: by_version(league, table) for table in TABLES}
    assert {version: len(rows) for version, rows in both["episodes"].items()} == {1: 6, 2: 10}
    assert play(league, plan).failures == ()
    assert {table: by_version(league, table) for table in TABLES} == both, "no version loses rows to another"


def test_a_version_that_is_not_there_any_more_fails_with_what_is_there_and_what_to_do(league: League, state: Path) -> None:
    plan, place = planned(), state / "scenarios" / f"{SHOW_CARDS}.yaml"
    place.write_text(place.read_text(encoding="utf-8").replace("version: 1", "version: 4"), encoding="utf-8")
    (failure,) = play(league, plan).failures
    assert f"scenario {SHOW_CARDS}: version 1 was requested but is no longer known; existing versions: 4" in failure
    assert "or submit the evaluation again" in failure


def test_an_opponent_plays_the_persona_of_the_day_under_the_item_id_that_it_always_had(league: League, state: Path) -> None:
    plan = planned(opponents=["calm@legal"], seeds="1")
    add("persona", {**CALM, "version": 3, "system_prompt": "You hurry."}, "approved")
    assert play(league, plan).failures == ()
    assert {row["item_id"] for row in league.rows("episodes")} == {"1/0/calm@legal", "1/1/calm@legal"}
    assert {row["persona"] for row in league.rows("episode_turns")} == {"calm:v2"}
    place = state / "personas" / "calm.yaml"
    place.write_text(yaml.safe_dump({**CALM, "version": 4}), encoding="utf-8")
    (failure,) = play(league, plan).failures
    assert "persona calm: version 2 was requested but is no longer known; existing versions: 3, 4" in failure

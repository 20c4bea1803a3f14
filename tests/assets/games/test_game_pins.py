"""What was submitted is what is played and shown, whatever becomes of the scenario and of personas while it waits and afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
from tests.assets.games.conftest import CALM, SHOW_CARDS, League
from tests.assets.stage_names import GAMES_STAGE_NAMES

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


def next_scenario(status: str = "production", **changed: Any) -> None:
    now = load_known_scenarios(Settings.read_environment())[SHOW_CARDS].model_dump(mode="json")
    add("scenario", {**now, "version": now["version"] + 1, "seeds": {"first": 1, "count": 5}, **changed}, status)


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

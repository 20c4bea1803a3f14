"""What a run of an evaluation came to, over HTTP: the numbers are those of the boards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from fastapi.testclient import TestClient

from assets.games.game_catalog import load_known_scenarios
from assets.stage.resources import Store
from dtef_pipeline.api.results import result_routes
from dtef_pipeline.api.results.family_results import FamilyResults
from dtef_pipeline.api.results.result_routes import Results
from dtef_pipeline.api.results.run_context import RunContext, UsageTotals
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.games.persona_results import GAME_RESULTS_READS, compute_game_results
from dtef_pipeline.games.tables import EPISODE_SCORES, EPISODE_TURNS, EPISODES, LEAGUE_SPACE
from dtef_pipeline.qa.suites import QA_BOARD_READS, build_qa_boards
from dtef_pipeline.rubric.board import BOARD_READS, rubric_board
from dtef_pipeline.rubric.tables import RUBRIC_RESPONSES, RUBRIC_RUNS, RUBRIC_SCORES
from dtef_pipeline.survey.tables import BLUEPRINTS, PREDICTIONS, SCORES, SURVEY_RESPONSES
from resources.evaluations.evaluation_store import QUEUE_TAG, Evaluation, EvaluationStore, RunSpec
from resources.model_catalog import load_known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.warehouse import Warehouse, build_family_levels
from tests.dtef_pipeline.api.asked_runs import (
    ANSWER_AND_BATTERY_COLUMNS,
    BLUEPRINT,
    CALM,
    KUHN,
    LAW,
    asked_qa,
    asked_rubric,
    asked_survey,
    keep_prompts,
    key_of,
    partition,
    rows_in,
    submitted,
)
from tests.dtef_pipeline.api.conftest import AnsweredRun
from tests.dtef_pipeline.api.made import client_in, settings_in
from tests.dtef_pipeline.cli.commands import ok, use
from tests.made.made_games import CHIPS_WON, scored_games
from tests.made.qa_scores import keep_in
from tests.made.qa_scores import score_row as qa_row
from tests.made.responses import response
from tests.made.run_events import RUN_LOG, tell
from tests.strict_json import strict

Answered = Callable[[str], AnsweredRun]
NOTHING = {"usd": 0.0, "calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "unpriced": 0, "unpriced_usd_most": None}
"""What a run costs that bought no call itself."""


def cost_of(**paid: float) -> dict[str, Any]:
    """What a run costs that bought no call itself, and whose responses cost so much."""
    return {**NOTHING, **paid, "call_costs": NOTHING}


def run_path(evaluation: Evaluation, place: int = 0) -> str:
    return f"/api/evaluations/{evaluation.runs[place].run_id}"


def told(client: TestClient, path: str) -> Any:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def by_metric(body: dict[str, Any], model: str) -> dict[str, dict[str, Any]]:
    return {one["metric"]: one for one in body["metrics"] if one["model"] == model}


def test_a_run_of_games_is_the_persona_in_the_scenario(answered: Answered, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, evaluation, client = answered("games")
    body, plain = (told(client, run_path(evaluation, place)) for place in (0, 1))
    (own,) = by_metric(body, "alpha").values()
    assert own["value"] == pytest.approx(2.5)
    assert (own["n"], own["n_clusters"], own["unit"], own["persona"]) == (12, 6, "chips", CALM)
    assert by_metric(plain, "alpha")["expected_return"]["value"] == pytest.approx(15)
    assert {one["model"] for one in body["metrics"]} == {"alpha", "baseline/always-pass"}
    # Twelve calls of a quarter dollar, of which those of the first seed have no price.
    assert body["cost"] == cost_of(usd=2.5, calls=12, prompt_tokens=1200, completion_tokens=120, unpriced=2)
    use(folder, monkeypatch)
    house = Warehouse(settings_in(folder).warehouse)
    with house.connect(only=GAME_RESULTS_READS) as connection:
        house.write("persona_results", compute_game_results(connection))
    (shown,) = strict(ok("games", "board", "--scenario", KUHN, "--player", "alpha", "--json"))
    said = by_metric(plain, "alpha")["expected_return"]
    assert [said[name] for name in ("value", "low", "high", "n")] == [
        shown[name] for name in ("mean", "low", "high", "n_episodes")
    ]


def test_a_run_of_questions_has_the_numbers_of_the_board(answered: Answered, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, evaluation, client = answered("qa")
    body = told(client, run_path(evaluation))
    (own,) = body["metrics"]
    assert own["value"] == pytest.approx(0.75)
    assert (own["model"], own["metric"], own["n"], own["condition"]) == ("m", "exact_choice", 4, "letters")
    assert body["cost"] == cost_of(usd=2.5, calls=4, prompt_tokens=250, completion_tokens=25)
    use(folder, monkeypatch)
    house = Warehouse(settings_in(folder).warehouse)
    with house.connect(only=QA_BOARD_READS) as connection:
        for name, table in build_qa_boards(connection).items():
            house.write(name, table, **build_family_levels(name, "qa"))
    shown = {row["model"]: row for row in strict(ok("qa", "board", "--by", "part", "--json"))}["m"]
    assert [own[name] for name in ("value", "low", "high")] == [shown[name] for name in ("score", "score_low", "score_high")]


def test_a_run_of_rubrics_has_the_numbers_of_the_board(answered: Answered, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, evaluation, client = answered("rubric")
    body = told(client, run_path(evaluation))
    assert {one["model"] for one in body["metrics"]} == {"openai/model-0", "openai/model-1"}
    house = Warehouse(settings_in(folder).warehouse)
    levels = house.read("rubric_scores", columns=["level", "model", "hybrid", "coverage"]).to_pylist()
    own = by_metric(body, "openai/model-0")
    for row in levels:
        if (row["level"], row["model"]) == ("model", "openai/model-0"):
            assert own["score"]["value"] == pytest.approx(row["hybrid"])
            assert own["coverage"]["value"] == pytest.approx(row["coverage"])
    use(folder, monkeypatch)
    with house.connect(only=BOARD_READS) as connection:
        house.write("rubric_board", rubric_board(connection))
    board = {row["model"]: row for row in strict(ok("rubric", "board", "--by", "blueprint", "--json"))}
    for model in ("openai/model-0", "openai/model-1"):
        said, shown = by_metric(body, model)["score"], board[model]
        assert [said[name] for name in ("value", "low", "high", "n")] == [
            shown[name] for name in ("score", "low", "high", "n_scored")
        ]
    assert own["coverage"]["low"] is None
    assert own["coverage"]["reason"]


def test_a_run_of_surveys_has_the_numbers_of_the_leaderboard(answered: Answered, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, evaluation, client = answered("survey")
    body = told(client, run_path(evaluation))
    (own,) = body["metrics"]
    assert own["value"] == pytest.approx((0.5 + 0.7 + 0.9 + 0.6 + 0.8) / 5)
    assert (own["model"], own["metric"], own["n"], own["context_level"]) == ("m", "js", 5, "0")
    # One prompt for all questions.
    assert body["cost"] == cost_of(usd=0.75, calls=1, prompt_tokens=60, completion_tokens=6)
    use(folder, monkeypatch)
    arguments = ("--by", "segment", "--round", "S1", "--snapshot", "base", "--json")
    shown = [row for row in strict(ok("board", *arguments)) if (row["model"], row["condition"][:5]) == ("m", "distr")]
    assert [own[name] for name in ("value", "low", "high")] == [shown[0][name] for name in ("score", "score_low", "score_high")]


@pytest.mark.parametrize("family", ANSWER_AND_BATTERY_COLUMNS)
def test_every_trace_is_served_and_none_of_another_run(answered: Answered, family: str) -> None:
    _, evaluation, client = answered(family)
    path = run_path(evaluation)
    body = told(client, path)
    assert body["traces"]
    for uri in body["traces"][:3]:
        trace = told(client, uri)
        assert (trace["run_id"], trace["model"]) == (body["run_id"], trace["model"])
        assert trace["prompt_tokens" if family != "games" else "turns"] is not None
    pages, uri = [], f"{path}/traces?limit=7"
    while uri:
        page = told(client, uri)
        pages += page["traces"]
        uri = page["traces_next"]
    assert pages == body["traces"]
    for absent in ("nothing", "key of nobody", "x" * 300, "%00", key_of("other", "law/0"), "..%2f.."):
        assert client.get(f"{path}/traces/{absent}").status_code == 404


def test_a_trace_of_a_game_is_the_episode_with_its_turns(answered: Answered) -> None:
    _, evaluation, client = answered("games")
    own, plain = (told(client, run_path(evaluation, place)) for place in (0, 1))
    traces = [told(client, uri) for uri in own["traces"][::4]]
    of_another = min({uri.rpartition("/")[2] for uri in plain["traces"]} - {uri.rpartition("/")[2] for uri in own["traces"]})
    assert client.get(f"{run_path(evaluation)}/traces/{of_another}").status_code == 404
    assert len(own["traces"]) == 24  # twelve episodes of the persona, twelve of the baseline
    for trace in traces:
        is_asked = trace["model"] == "alpha"
        assert (trace["status"], trace["item_id"].split("/")[0]) == ("played", trace["cluster"])
        assert [turn["response"] for turn in trace["turns"]] == (["ACTION: bet"] if is_asked else [])


def test_a_trace_of_a_question_says_why_there_is_no_answer(answered: Answered) -> None:
    _, evaluation, client = answered("qa")
    trace, given = (told(client, f"{run_path(evaluation)}/traces/{key_of('m', item)}") for item in ("law/4", "law/0"))
    assert (trace["status"], trace["text"], trace["reason"]) == ("error", None, "the server is gone")
    assert trace["scores"][0]["score"] is None
    assert (given["text"], given["prompt_id"], given["cost_usd"]) == ("The answer is law/0", "p", 0.5)
    assert given["scores"][0]["score"] == pytest.approx(1)
    for row in (trace, given):
        assert len(row["scores"]) == len({score["metric"] for score in row["scores"]})


@pytest.mark.parametrize("family", ANSWER_AND_BATTERY_COLUMNS)
def test_before_anything_is_made_there_is_no_number(tmp_path: Path, answered: Answered, family: str) -> None:
    evaluation = answered(family).evaluation
    kept = [(one.key, one.asks) for one in evaluation.runs]
    waiting = submitted(tmp_path, family, evaluation.plan["config"], [RunSpec(*one) for one in kept])
    with client_in(tmp_path, "operator") as client:
        body = told(client, run_path(waiting))
    assert (body["status"], body["metrics"], body["traces"], body["traces_next"]) == ("queued", [], [], None)
    unknown = {**NOTHING, "usd": None}
    assert body["cost"] == {**unknown, "call_costs": unknown}
    assert body["reason"] is None


def test_what_has_no_score_is_null_with_a_reason_and_never_0(tmp_path: Path) -> None:
    keep_in(Path(settings_in(tmp_path).warehouse), {"qa_scores": [qa_row(None, item_id=f"law/{at}") for at in range(3)]})
    keep_prompts(tmp_path, 3)
    evaluation = submitted(tmp_path, "qa", {"qa_responses": {"models": ["m"]}}, partition(LAW))
    with client_in(tmp_path, "operator") as client:
        (own,) = told(client, run_path(evaluation))["metrics"]
    assert (own["value"], own["low"], own["n"]) == (None, None, 0)
    assert own["reason"]


def test_the_state_of_a_run_follows_the_events_of_its_partition(tmp_path: Path) -> None:
    evaluation = asked_qa(tmp_path)
    with client_in(tmp_path, "operator") as client, EvaluationStore(settings_in(tmp_path).responses_url, RUN_LOG) as store:
        first = client.get(run_path(evaluation))
        same = client.get(run_path(evaluation), headers={"If-None-Match": first.headers["etag"]})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", first.headers["etag"])
        item = {"stage": "qa_responses", "key": LAW, "status": "failed", "reason": "no key"}
        tell(store, evaluation.queue_id, "item", item)
        changed = client.get(run_path(evaluation), headers={"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200
    assert (changed.json()["status"], changed.json()["reason"]) == ("failed", "no key")


def test_unknown_runs_are_not_found(answered: Answered) -> None:
    _, evaluation, client = answered("qa")
    path = run_path(evaluation)
    for absent in ("0" * 32, "nobody", "%00", "f" * 300, evaluation.queue_id):
        for tail in ("", "/traces", "/traces/x"):
            assert client.get(f"/api/evaluations/{absent}{tail}").status_code == 404
    assert client.get(f"{path}/traces?limit=201").status_code == 422
    assert client.get("/api/evaluations/queue").status_code == 200


def test_a_new_score_is_seen_at_once_and_a_damaged_file_is_no_fault_of_the_client(tmp_path: Path) -> None:
    evaluation = asked_qa(tmp_path)
    house = Warehouse(settings_in(tmp_path).warehouse)
    at = {"suite": "mmlu", "part": "law", "snapshot": "base"}
    with client_in(tmp_path, "operator") as client:
        before = told(client, run_path(evaluation))
        rows = house.read("qa_scores", **at)
        house.write("qa_scores", rows.slice(0, 2), **at)
        after = told(client, run_path(evaluation))
        Path(house.folder("qa_scores", **at), "part-0.parquet").write_bytes(b"no parquet")
        damaged = client.get(run_path(evaluation))
    assert [one["metrics"][0]["value"] for one in (before, after)] == pytest.approx([0.75, 1])
    assert damaged.status_code == 503
    assert str(tmp_path) not in damaged.text


def run_of(folder: Path, evaluation: Evaluation) -> dict[str, Any]:
    with client_in(folder, "operator") as client:
        found: dict[str, Any] = client.get(f"/api/evaluations/{evaluation.runs[0].run_id}").json()
    return found


def test_what_was_not_answered_is_counted_and_stated_beside_the_metric(answered: Callable[[str], AnsweredRun]) -> None:
    """Four right answers of five looked like a run that was answered in full."""
    _, evaluation, client = answered("qa")
    run_id = evaluation.runs[0].run_id
    body = client.get(f"/api/evaluations/{run_id}").json()
    said = "4 of 5 responses were given: 1 failed"
    counts = {"n_planned": 5, "answered": 4, "failed": 1, "skipped": 0, "scored": 4}
    assert body["outcomes"] == {"unit": "response", **counts, "warning": said}
    (own,) = body["metrics"]
    assert (own["n"], own["n_requested"]) == (4, 5)
    assert own["remark"] == said
    shown = client.get(f"/runs/{run_id}").text
    for said in ("4 of 5 responses were given: 1 failed", "requested: 5 responses", "4 of 5<", "Paid by this evaluation"):
        assert said in shown


def test_what_is_asked_for_follows_from_the_prompts_of_the_plan(tmp_path: Path) -> None:
    """Answers to other conditions and items, and further draws, were taken for the run's own."""
    rows = [qa_row(1.0, item_id=f"law/{at}") for at in range(4)]
    rows += [qa_row(0.0, item_id="law/0", draw=1), qa_row(0.0, item_id="law/0", condition="parens")]
    keep_prompts(tmp_path, 8, ("letters", "parens"))
    calls = [{**row, "call_status": "answered", "request_key": key_of(row["condition"], row["item_id"])} for row in rows]
    keep_in(Path(settings_in(tmp_path).warehouse), {"qa_scores": rows, "qa_responses": calls})
    asked = submitted(tmp_path, "qa", {"qa_responses": {"models": ["m"], "limit": 4}}, partition(LAW))
    body = run_of(tmp_path, asked)
    assert (body["outcomes"]["n_planned"], body["outcomes"]["answered"]) == (4, 2)  # law/0 and law/2: each second item
    assert body["outcomes"]["warning"] == "2 of 4 responses were given: 2 are not made"
    assert [(one["condition"], one["value"], one["n"]) for one in body["metrics"]] == [("letters", 1.0, 2)]
    assert len(body["traces"]) == 2


@pytest.mark.parametrize("told", [{"template": "cot"}, {"order": "unknown"}])
def test_a_run_that_was_never_asked_has_nothing_of_another_one(tmp_path: Path, told: dict[str, str]) -> None:
    """Cancelled before its prompts were made, it showed the answers to the prompts of another evaluation as its own."""
    asked_qa(tmp_path)
    body = run_of(tmp_path, submitted(tmp_path, "qa", {"qa_responses": {"models": ["m"], "limit": 2, **told}}, partition(LAW)))
    assert (body["outcomes"]["n_planned"], body["outcomes"]["answered"], body["outcomes"]["scored"]) == (None, 0, 0)
    assert (body["metrics"], body["traces"], body["cost"]["calls"]) == ([], [], 0)


def test_of_surveys_and_rubrics_each_way_of_asking_has_its_own_counts(tmp_path: Path) -> None:
    """What a budget left out stood nowhere."""
    house, at = Warehouse(settings_in(tmp_path).warehouse), {"round": "S1", "segment": "country:kenya", "snapshot": "base"}
    survey, rubric = asked_survey(tmp_path), asked_rubric(tmp_path)
    rows = house.read("predictions", **at).to_pylist()
    rows[5] = {**rows[5], "call_status": "budget"}
    house.write("predictions", rows_in(PREDICTIONS, rows), **at)
    body = run_of(tmp_path, survey)
    assert body["outcomes"]["warning"] == "5 of 6 predictions were given: a budget ended 1"
    (own,) = body["metrics"]
    assert (own["n"], own["n_requested"], own["remark"]) == (5, 6, body["outcomes"]["warning"])

    at = {"blueprint": BLUEPRINT, "snapshot": "base"}
    rows = house.read("rubric_responses", **at).to_pylist()
    own_rows = [row for row in rows if row["model"] in ("openai/model-0", "openai/model-1")]
    own_rows[0]["status"] = "error"
    failed = sum(row["status"] == "error" for row in own_rows)
    house.write("rubric_responses", rows_in(RUBRIC_RESPONSES, rows), **at)
    body = run_of(tmp_path, rubric)
    assert (body["outcomes"]["n_planned"], body["outcomes"]["failed"]) == (len(own_rows), failed)
    remarks = {one["model"]: one["remark"] or "" for one in body["metrics"]}
    assert "failed" in remarks[own_rows[0]["model"]]


def test_a_value_that_rests_on_more_than_the_run_asked_for_says_so(tmp_path: Path) -> None:
    plan = asked_survey(tmp_path).plan["config"]["predictions"]
    few = submitted(tmp_path, "survey", {"predictions": {**plan, "questions": 2}}, partition("S1/country:kenya"))
    body = run_of(tmp_path, few)
    assert body["outcomes"]["n_planned"] == 2
    (own,) = body["metrics"]
    assert own["remark"] == "the value includes 4 further predictions from another run of this snapshot"

    house, at = Warehouse(settings_in(tmp_path).warehouse), {"blueprint": BLUEPRINT, "snapshot": "base"}
    rubric = asked_rubric(tmp_path)
    rows = house.read("rubric_responses", **at).to_pylist()
    again = [{**row, "draw": row["draw"] + 7} for row in rows if row["model"] == "openai/model-0"]
    house.write("rubric_responses", rows_in(RUBRIC_RESPONSES, rows + again), **at)
    remarks = {one["model"]: one["remark"] for one in run_of(tmp_path, rubric)["metrics"]}
    assert f"includes {len(again)} further responses" in remarks["openai/model-0"]
    assert "further" not in (remarks["openai/model-1"] or "")


def test_a_baseline_with_nothing_to_go_by_says_why_and_has_not_failed(tmp_path: Path) -> None:
    """In a first round, a third of the predictions of all baselines had failed, as it seemed."""
    house, at = Warehouse(settings_in(tmp_path).warehouse), {"round": "S1", "segment": "country:kenya", "snapshot": "base"}
    plan = asked_survey(tmp_path).plan["config"]["predictions"]
    (name,) = (
        spec.name for spec in load_known_models(settings_in(tmp_path), COMPUTED_MODELS).resolve(["baseline/previous-round"])
    )
    unanswered = {"call_status": "missing", "error": "there is no round before", "response": None}
    silent = {"model": name, "model_variant": name, **unanswered}
    rows = house.read("predictions", **at).to_pylist()
    rows += [{**row, **silent, "request_key": key_of(name, row["condition"])} for row in rows if row["model"] == "m"]
    house.write("predictions", rows_in(PREDICTIONS, rows), **at)
    scores = house.read("scores", **at).to_pylist()
    unscored = {"model": name, "model_variant": name, "score": None, "status": "missing"}
    house.write("scores", rows_in(SCORES, scores + [{**row, **unscored} for row in scores if row["model"] == "m"]), **at)
    asked = submitted(tmp_path, "survey", {"predictions": {**plan, "models": ["m", name]}}, partition("S1/country:kenya"))
    body = run_of(tmp_path, asked)
    assert (body["outcomes"]["n_planned"], body["outcomes"]["failed"], body["outcomes"]["warning"]) == (6, 0, None)
    assert {one["model"]: one["reason"] for one in body["metrics"]}[name] == "there is no round before"


def test_a_segment_that_is_not_drawn_says_why_nothing_is_asked_of_it(tmp_path: Path) -> None:
    """Such a run was completed, without a reason."""
    house, at = Warehouse(settings_in(tmp_path).warehouse), {"round": "S1", "segment": "country:kenya"}
    plan = asked_survey(tmp_path).plan["config"]["predictions"]
    survey = house.read("survey_responses", **at).to_pylist()
    house.write("survey_responses", rows_in(SURVEY_RESPONSES, [{**row, "segment_order": 1} for row in survey]), **at)
    prompts = [{**row, "context_level": "0", "condition": "distribution/attribute-label"} for row in survey]
    house.write("blueprints", rows_in(BLUEPRINTS, prompts), **at)
    for sample, asked in ((2, 6), (1, 0)):
        run = submitted(tmp_path, "survey", {"predictions": {**plan, "sample_segments": sample}}, partition("S1/country:kenya"))
        outcomes = run_of(tmp_path, run)["outcomes"]
        assert outcomes["n_planned"] == asked
    assert (outcomes["answered"], outcomes["failed"]) == (0, 0)
    assert "the sample" in outcomes["warning"]


def asked_kuhn(folder: Path, rows: list[dict[str, Any]], further: list[dict[str, Any]]) -> Evaluation:
    """A run of `baseline/always-pass` on two seeds."""
    told = {"league": "poker", "scenario": "kuhn"}
    at = {**LEAGUE_SPACE.levels(KUHN), "snapshot": "base"}
    house = Warehouse(settings_in(folder).warehouse)
    house.write("episode_scores", rows_in(EPISODE_SCORES, [{**row, **told} for row in (*rows, *further)]), **at)
    played = [{**row, **told, "status": "played" if row["status"] == "scored" else "skipped_budget"} for row in rows]
    house.write("episodes", rows_in(EPISODES, played), **at)
    house.write("episode_turns", rows_in(EPISODE_TURNS, []), **at)
    dealt, version = {"seeds": "1-2", "opponents": ["baseline/random"]}, games_of()[0]["version"]
    config = {"episodes": {"players": ["baseline/always-pass"], "draws": 3}}
    return submitted(
        folder,
        "games",
        config,
        [RunSpec(KUHN, {"persona_id": "none", "scenario_id": KUHN, "persona": "", "scenario_version": version, **dealt})],
    )


def games_of(metric: Mapping[str, Any] = CHIPS_WON) -> list[dict[str, Any]]:
    """Four episodes: two seeds in both seats."""
    made = scored_games("baseline/always-pass", "baseline/random", {1: (1.0, 3.0), 2: (5.0, 99.0)}, metric)
    version = load_known_scenarios(Settings.read_environment({}))[KUHN].version
    return [{**row, "version": version} for row in made]


def test_a_mean_of_the_games_that_a_budget_left_over_says_so(tmp_path: Path) -> None:
    """The mean of the episodes that happened to be played had no remark; moves made for a player were not told."""
    rows = games_of()
    lost = dict.fromkeys(("numerator", "denominator", "value"))
    rows[3] = {**rows[3], **lost, "status": "unscored", "reason": "the budget ended"}
    rates = {("default_rate", "share"): 1.0, ("refused_rate", "per turn"): 6.0}
    form = [
        {**row, "numerator": total, "denominator": 4.0}
        for (name, unit), total in rates.items()
        for row in games_of({**CHIPS_WON, "metric": name, "unit": unit, "direction": "lower"})[:3]
    ]
    body = run_of(tmp_path, asked_kuhn(tmp_path, rows, form))
    said = "3 of 4 episodes were played: a budget ended 1"
    counts = {"n_planned": 4, "answered": 3, "failed": 0, "skipped": 1, "scored": 3}
    assert body["outcomes"] == {"unit": "episode", **counts, "warning": said}
    own = {one["metric"]: one for one in body["metrics"]}["expected_return"]
    assert (own["value"], own["n"], own["n_requested"]) == (pytest.approx(3), 3, 4)
    assert own["default_rate"] == pytest.approx(0.25)
    # A turn can be declined several times over: 6 texts in 4 turns are no share of the turns.
    assert own["remark"].startswith(f"{said}; ")
    assert "25 % of its turns" in own["remark"]
    assert "1.5 times per turn" in own["remark"]


def test_games_that_are_still_to_be_played_are_asked_for(tmp_path: Path) -> None:
    body = run_of(tmp_path, asked_kuhn(tmp_path, games_of()[:1], []))
    assert (body["outcomes"]["n_planned"], body["outcomes"]["answered"]) == (4, 1)
    assert body["outcomes"]["warning"] == "1 of 4 episodes were played: 3 are not made"


def test_what_the_evaluation_bought_is_reported_from_what_was_there(tmp_path: Path) -> None:
    """An evaluation that replays every answer seemed to have paid for them all."""
    evaluation = asked_qa(tmp_path)
    bought, replayed, elsewhere = (key_of("m", f"law/{at}") for at in (0, 1, 2))
    url = settings_in(tmp_path).responses_url
    for key, queue_id in ((bought, evaluation.queue_id), (replayed, None), (elsewhere, "f" * 32)):
        with ResponseStore(url, queue_id=queue_id) as store:
            store.add([response(1, request_key=key, cost_usd=0.5)])
    cost = run_of(tmp_path, evaluation)["cost"]
    assert (cost["usd"], cost["calls"]) == (2.5, 4)  # the request that failed cost 0.5 too
    known = {"usd": 0.5, "calls": 1, "prompt_tokens": 10, "completion_tokens": 5}
    assert cost["call_costs"] == {**known, "unpriced": 0, "unpriced_usd_most": None}


def test_a_dagster_run_of_an_evaluation_notes_what_it_buys(tmp_path: Path) -> None:
    url = settings_in(tmp_path).responses_url

    @dg.asset
    def buys(store: Store) -> None:
        store.responses.add([response(1)])

    for tags in ({QUEUE_TAG: "a" * 32}, {}):
        dg.materialize([buys], resources={"store": Store(responses_url=url)}, tags=tags)
    with ResponseStore(url) as store:
        assert store.sum_call_costs([response(1).request_key], "a" * 32).calls == 1


def test_results_are_made_once_for_all_who_ask_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two who opened the page of a run had it computed twice."""
    evaluation, settings = asked_qa(tmp_path), settings_in(tmp_path)
    asked = RunContext(evaluation, evaluation.runs[0], settings, Warehouse(settings.warehouse))
    made, may_go_on, begun = list[Results](), threading.Event(), threading.Event()

    def make(family: FamilyResults) -> Results:
        begun.set()
        assert may_go_on.wait(30)
        made.append(Results([], {}, UsageTotals(), UsageTotals(), []))
        return made[-1]

    monkeypatch.setattr(result_routes, "make_results", make)
    callers = [threading.Thread(target=result_routes.load_run_results, args=[asked]) for _ in range(4)]
    for caller in callers:
        caller.start()
    assert begun.wait(30)
    may_go_on.set()
    for caller in callers:
        caller.join(30)
    assert len(made) == 1


def test_results_are_kept_of_so_many_runs(answered: Answered, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five hundred runs were kept, of whatever size."""
    folder, evaluation, _ = answered("games")
    settings, made = settings_in(folder), list[str]()

    def make(family: FamilyResults) -> Results:
        made.append(family.run.run.run_id)
        return Results([], {}, UsageTotals(), UsageTotals(), [])

    monkeypatch.setattr(result_routes, "make_results", make)
    monkeypatch.setattr(result_routes, "_latest_results", {})
    monkeypatch.setattr(result_routes, "_MAX_CACHED_RUNS", 1)
    one, two = (RunContext(evaluation, run, settings, Warehouse(settings.warehouse)) for run in evaluation.runs)
    for asked in (one, one, two, two, one):
        result_routes.load_run_results(asked)
    assert made == [run.run.run_id for run in (one, two, one)]


def test_results_are_made_again_when_a_scenario_changes(tmp_path: Path) -> None:
    """A new version of a manifest left the results of the old one standing."""
    evaluation, settings = asked_qa(tmp_path), settings_in(tmp_path, DTEF_SCENARIOS=str(tmp_path / "scenarios"))
    with EvaluationStore(settings.responses_url, RUN_LOG):
        asked = RunContext(evaluation, evaluation.runs[0], settings, Warehouse(settings.warehouse))
        before = asked.source_stamp(["qa_scores"])
        same = asked.source_stamp(["qa_scores"])
        place = tmp_path / "scenarios" / "made" / "one.yaml"
        place.parent.mkdir(parents=True)
        place.write_text("id: made/one", encoding="utf-8")
        after = asked.source_stamp(["qa_scores"])
    assert before == same
    assert before != after


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"judges": ["standard=gpt-4.1-mini", "prompt-aware=gpt-4.1-mini"]}, None),
        ({"judges": ["standard=gpt-4.1-mini"]}, "not by standard(gpt-4.1-mini)"),
        ({"judges": ["standard=gpt-4.1-mini", "prompt-aware=gpt-4.1-mini"], "judge_draws": 2}, "in 2 draws"),
        ({"judges": ["standard=a-model-that-has-gone"]}, None),
    ],
)
def test_judgements_by_others_are_no_results_of_the_run(tmp_path: Path, asked: dict[str, Any], said: str | None) -> None:
    """A finished run had the numbers of whoever judged the same responses last."""
    asked_rubric(tmp_path)
    config = {"rubric_responses": {"models": ["openai/model-0", "openai/model-1"]}, "rubric_judgements": asked}
    evaluation = submitted(tmp_path, "rubric", config, partition(BLUEPRINT))
    body = run_of(tmp_path, evaluation)
    assert {one["value"] is None for one in body["metrics"]} == {said is not None}
    assert (body["outcomes"]["scored"] == 0) == (said is not None)
    assert {(said or "") in (one["reason"] or "") for one in body["metrics"]} == {True}
    with client_in(tmp_path, "operator") as client:
        trace = client.get(body["traces"][0]).json()
    assert ([] == trace["scores"] == trace["judgements"]) == (said is not None)


def test_scores_by_others_are_no_results_of_the_run(tmp_path: Path) -> None:
    """The judgements are the run's own, but others' were scored."""
    asked_rubric(tmp_path)
    house, at = Warehouse(settings_in(tmp_path).warehouse), {"blueprint": BLUEPRINT, "snapshot": "base"}
    (row,) = house.read("rubric_runs", **at).to_pylist()
    house.write("rubric_runs", rows_in(RUBRIC_RUNS, [{**row, "judges": ["standard(another)"]}]), **at)
    judges = ["standard=gpt-4.1-mini", "prompt-aware=gpt-4.1-mini"]
    config = {"rubric_responses": {"models": ["openai/model-0", "openai/model-1"]}, "rubric_judgements": {"judges": judges}}
    body = run_of(tmp_path, submitted(tmp_path, "rubric", config, partition(BLUEPRINT)))
    assert {"the scores are by standard(another)" in (one["reason"] or "") for one in body["metrics"]} == {True}
    assert {one["value"] for one in body["metrics"]} == {None}


def test_answers_of_which_none_is_scored_are_reported(tmp_path: Path) -> None:
    """A judge whose replies could not be read left no word of it beside two answers."""
    asked_rubric(tmp_path)
    house, at = Warehouse(settings_in(tmp_path).warehouse), {"blueprint": BLUEPRINT, "snapshot": "base"}
    lost = {"coverage": None, "similarity": None, "hybrid": None, "n_scored": 0, "n_responses_scored": 0}
    rows = [
        {**row, **lost, "reasons": [("no criterion could be scored", 6)]}
        for row in house.read("rubric_scores", **at).to_pylist()
    ]
    house.write("rubric_scores", rows_in(RUBRIC_SCORES, rows), **at)
    config = {"rubric_responses": {"models": ["openai/model-0"]}}
    body = run_of(tmp_path, submitted(tmp_path, "rubric", config, partition(BLUEPRINT)))
    assert body["outcomes"]["warning"].endswith("none of 6 responses has a score")
    assert {one["reason"] for one in body["metrics"]} == {"no criterion could be scored: 6 responses"}

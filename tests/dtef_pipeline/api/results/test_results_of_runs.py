"""What a run of an evaluation came to, over HTTP: the numbers are those of the boards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from dtef_pipeline.games.persona_results import GAME_RESULTS_READS, compute_game_results
from dtef_pipeline.qa.suites import QA_BOARD_READS, build_qa_boards
from dtef_pipeline.rubric.board import BOARD_READS, rubric_board
from resources.evaluations.evaluation_store import Evaluation, EvaluationStore, RunSpec
from resources.warehouse import Warehouse, build_family_levels
from tests.dtef_pipeline.api.asked_runs import (
    ANSWER_AND_BATTERY_COLUMNS,
    CALM,
    KUHN,
    LAW,
    asked_qa,
    keep_prompts,
    key_of,
    partition,
    submitted,
)
from tests.dtef_pipeline.api.conftest import AnsweredRun
from tests.dtef_pipeline.api.made import client_in, settings_in
from tests.dtef_pipeline.cli.commands import ok, use
from tests.made.qa_scores import keep_in
from tests.made.qa_scores import score_row as qa_row
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
    trace = told(client, f"{run_path(evaluation)}/traces/{key_of('m', 'law/4')}")
    answered = told(client, f"{run_path(evaluation)}/traces/{key_of('m', 'law/0')}")
    assert (trace["status"], trace["text"], trace["reason"]) == ("error", None, "the server is gone")
    assert trace["scores"][0]["score"] is None
    assert (answered["text"], answered["prompt_id"], answered["cost_usd"]) == ("The answer is law/0", "p", 0.5)
    assert answered["scores"][0]["score"] == pytest.approx(1)


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

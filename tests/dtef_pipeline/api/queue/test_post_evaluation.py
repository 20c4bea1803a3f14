"""What POST /api/evaluations takes, and what it says of everything else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from fastapi.testclient import TestClient

from dtef_pipeline.api.plans.games_plan import MAX_EPISODES
from resources.evaluations.evaluation_store import EvaluationStore
from tests.dtef_pipeline.api.made import client_in
from tests.made.run_events import RUN_LOG
from tests.made.shared_cases import cases, cases_beside

PERSONAS = {"calm": "approved", "rash": "draft", "gone": "retired"}
KUHN = {
    "persona_ids": ["calm"],
    "scenario_ids": ["poker/kuhn"],
    "models": ["baseline/random", "openai/made-up"],
    "seeds": "1-3",
}


def write_personas(folder: Path) -> None:
    folder.mkdir()
    for name, status in PERSONAS.items():
        persona = {
            "id": name,
            "version": 2,
            "status": status,
            "display_name": name.title(),
            "system_prompt": f"You are {name}.",
        }
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(persona), encoding="utf-8")


@pytest.fixture
def client(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    write_personas(state / "personas")
    with client_in(state, "operator") as opened:
        yield opened


@pytest.fixture(autouse=True)
def _own_personas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the API's tests are of a folder; that folder has personas of its own."""
    from tests.dtef_pipeline.api import made

    of_folder = made.settings_in
    monkeypatch.setattr(
        made, "settings_in", lambda folder, **more: of_folder(folder, DTEF_PERSONAS=str(folder / "personas"), **more)
    )


def post(client: TestClient, key: str | None = None, **changed: Any) -> httpx2.Response:
    body = {name: value for name, value in {**KUHN, **changed}.items() if value is not ...}
    return client.post("/api/evaluations", json=body, headers={} if key is None else {"Idempotency-Key": key})


def test_a_manifest_is_queued_as_one_run_per_persona_and_scenario(client: TestClient, state: Path) -> None:
    answer = post(client, persona_ids=["calm", "none"], scenario_ids=["poker/kuhn", "poker/leduc"], budget={"max_calls": 5})
    assert answer.status_code == 202
    body = answer.json()
    assert answer.headers["location"] == f"/api/evaluations/queue/{body['queue_id']}"
    assert body["events"] == f"{answer.headers['location']}/events"
    assert (body["status"], len(set(body["run_ids"]))) == ("queued", 4)
    with EvaluationStore(state / "responses.sqlite", RUN_LOG) as store:
        kept = store.evaluation(body["queue_id"])
        assert [one.kind for one in store.events(body["queue_id"])] == ["queued"]
    assert [(one.key, one.asks["persona_id"]) for one in kept.runs] == [
        ("poker/kuhn", "calm"),
        ("poker/leduc", "calm"),
        ("poker/kuhn", "none"),
        ("poker/leduc", "none"),
    ]
    assert (kept.plan["job"], kept.plan["space"], kept.plan["new_keys"]) == ("games_pipeline", "league_scenario", True)
    played = kept.plan["config"]["episodes"]
    assert (played["personas"], played["seeds"], played["max_calls"]) == (["calm:v2", "none"], "1-3", 5)
    assert set(kept.plan["config"]) == {"scenario_items", "episode_prompts", "episodes", "episode_scores"}


CASES = cases_beside(__file__)
REFUSED: tuple[tuple[dict[str, Any], int, str], ...] = (
    *CASES["refused"],
    ({"models": ...}, 422, "models: is missing"),
    ({"seeds": "9" * 2_001}, 422, "seeds: got a text of 2,001 characters; allowed: at most 2,000"),
    ({"seeds": "1-100000"}, 422, f"allowed: at most {MAX_EPISODES:,}"),
    ({"seeds": ",".join(f"{n}00000-{n}99999" for n in range(1, 90))}, 422, f"allowed: at most {MAX_EPISODES:,}"),
    ({"draws": 100_000}, 422, f"allowed: at most {MAX_EPISODES:,}"),
    ({"models": ["a\x00b"]}, 400, "NUL"),
    ({"models": ["x" * 900_000]}, 422, "models: got a text of 900,000 characters"),
)


def test_what_cannot_be_run_is_refused_with_what_is_allowed(client: TestClient, subtests: pytest.Subtests) -> None:
    for changed, status, said in REFUSED:
        with subtests.test(str(changed)[:60]):
            answer = post(client, **changed)
            assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text[
                :500
            ]
            assert said in answer.json()["detail"]
            assert status == 400 or not any("[" in one["path"] for one in answer.json()["errors"])
            assert len(answer.text) < 5_000
            assert status == 400 or all(one["path"] in answer.json()["detail"] for one in answer.json()["errors"])
            assert "`dtef " not in answer.text


def test_faults_that_do_not_rest_on_one_another_are_reported_at_once(client: TestClient, subtests: pytest.Subtests) -> None:
    """Each was told when the one before it was mended; names that nobody knows, when the settings were mended."""
    many = {"persona_ids": [f"zed-{n}" for n in range(100)]}, 404, ["persona_ids"] * 20
    of_games = [({**KUHN, **changed}, status, paths) for changed, status, paths in (*CASES["together"], many)]
    for sent, status, paths in (*of_games, *((sent, 422, paths) for sent, paths in CASES["of_others"])):
        with subtests.test(str(sent)[:60]):
            answer = client.post("/api/evaluations", json=sent)
            told = [one["path"] for one in answer.json()["errors"]]
            assert (answer.status_code, told) == (status, paths), answer.text[:500]


def test_seeds_in_many_spans_are_counted_once_and_at_once(client: TestClient) -> None:
    """Each span was written out, seed by seed: 240 spans of 100,000 took the API seven seconds."""
    asked = {"persona_ids": ["none"], "models": ["baseline/random"], "opponents": ["baseline/random"]}
    few = post(client, **asked, seeds=",".join(f"{first}-{first + 99}" for first in range(0, 15_000, 100)))
    assert few.status_code == 202, few.text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dtef_pipeline.games.episode_items.resolve_seeds", None)
        assert (
            post(client, **asked, seeds=",".join(f"{number}00000-{number}99999" for number in range(1, 120))).status_code == 422
        )


def test_more_runs_than_allowed_are_refused(client: TestClient, state: Path) -> None:
    many = [f"p{number}" for number in range(101)]
    for name in many:
        text = (state / "personas" / "calm.yaml").read_text(encoding="utf-8").replace("id: calm", f"id: {name}")
        (state / "personas" / f"{name}.yaml").write_text(text, encoding="utf-8")
    answer = post(client, persona_ids=many, scenario_ids=["poker/kuhn", "poker/leduc"])
    assert answer.status_code == 422
    assert "202 runs, one per persona and scenario; allowed: at most 200" in answer.json()["detail"]
    answer = post(client, models=[f"openai/{number}" for number in range(201)])
    assert (answer.status_code, "at most 200 items" in answer.json()["detail"]) == (422, True), answer.text


def test_the_same_key_and_manifest_give_the_same_ids_however_it_is_spelled(client: TestClient, state: Path) -> None:
    first = post(client, "k1").json()
    assert post(client, "k1", draws=1, opponents=[], family="games", snapshot="base", budget=None).json() == first
    assert post(client, "k1", budget={}).json() == post(client, "k1", budget={"max_calls": None}).json() == first
    backwards = dict(reversed(KUHN.items()))
    again = client.post("/api/evaluations", json=backwards, headers={"Idempotency-Key": "k1"})
    assert (again.status_code, again.json()) == (202, first)
    other = post(client, "k1", seeds="1-4")
    assert (other.status_code, "another manifest" in other.json()["detail"]) == (409, True)
    assert post(client, "k2").json()["queue_id"] != first["queue_id"]
    assert post(client).json()["queue_id"] != post(client).json()["queue_id"]
    path = state / "personas" / "calm.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("approved", "retired"), encoding="utf-8")
    assert post(client, "k1").json() == first, "what was taken once is not checked again"
    assert post(client, "k3").status_code == 409


def test_a_retired_scenario_is_played_no_more(client: TestClient) -> None:
    for status in ("production", "retired"):
        assert client.post("/api/scenarios/poker/kuhn/status", json={"status": status}).status_code == 200
    answer = client.post("/api/evaluations", json=KUHN)
    assert (answer.status_code, answer.json()["detail"][:40]) == (409, "scenario_ids: scenario poker/kuhn is ret")


def test_who_has_too_many_that_wait_is_sent_away(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtef_pipeline.api.queue.queue_routes.MAX_UNENDED", 1)
    assert post(client, "first").status_code == 202
    answer = post(client)
    assert (answer.status_code, "retry-after" in answer.headers) == (429, True)
    assert answer.json()["detail"].startswith("1 evaluation of operator waits or runs; allowed: 1")
    # What exists already is no further one.
    assert post(client, "first").status_code == 202


def test_an_idempotency_key_is_short_printable_text(client: TestClient) -> None:
    assert post(client, "x" * 200).status_code == 202
    for key in ("", "x" * 201, "tab\there", "\u00e9"):
        answer = client.post("/api/evaluations", json=KUHN, headers=[(b"Idempotency-Key", key.encode("latin-1"))])
        assert answer.status_code == 422, key


def test_the_published_cases(client: TestClient) -> None:
    of_status = {status: name for name, status in PERSONAS.items()}
    for case in cases("votes", "post_evaluation"):
        given = case["in"]
        named = given["personas"] if "personas" in given else [of_status.get(given["persona"], given["persona"])]
        assert post(client, persona_ids=named).status_code == case["out"], case["id"]


def test_others_are_answered_while_a_submission_is_prepared(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first submission imports litellm, which takes seconds."""
    from resources.gateway import litellm_module, model_checks

    begun, may_end = threading.Event(), threading.Event()

    def load_slowly() -> Any:
        begun.set()
        may_end.wait()
        return litellm_module.load_litellm()

    monkeypatch.setattr(model_checks, "load_litellm", load_slowly)
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(client.post, "/api/evaluations", json=KUHN)
        try:
            assert begun.wait(60)
            assert client.get("/api/health").status_code == 200
            assert client.get("/api/personas").status_code == 200
            quick = client.post("/api/evaluations", json={**KUHN, "models": ["baseline/random"], "persona_ids": ["none"]})
            assert quick.status_code == 202, quick.text
            assert not slow.done()
        finally:
            may_end.set()
        assert slow.result().status_code == 202

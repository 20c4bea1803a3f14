"""Answers as they are served are what the description says, with no member that it keeps quiet about; and a vote can be made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs  # comes with schemathesis
import pytest
from fastapi.testclient import TestClient

from dtef_pipeline.api.app import operations, read_role
from dtef_pipeline.api.tokens import TOKEN_ROLES
from dtef_pipeline.families import FAMILIES
from resources.evaluations.evaluation_calls import CallCounts, EvaluationCalls, StageCalls
from resources.evaluations.evaluation_store import EvaluationStore, sum_call_costs_by
from tests.dtef_pipeline.api.asked_runs import ANSWER_AND_BATTERY_COLUMNS, with_board, with_votes
from tests.dtef_pipeline.api.made import client_in, faults_of
from tests.dtef_pipeline.cli.test_preference_votes import asked
from tests.made.qa_scores import keep_in
from tests.made.run_events import tell

PERSONA = {"id": "quiet", "display_name": "Quiet", "system_prompt": "You say little.", "traits": {"risk": "low"}}
MANIFEST = {"persona_ids": ["none"], "scenario_ids": ["poker/kuhn"], "models": ["baseline/random"], "seeds": "1-2"}
NO_JSON = {
    "GET /api/evaluations/queue/{queue_id}/events",
}
EVALUATIONS, RUN = "/api/evaluations", "/api/evaluations/{run_id}"
QUEUE, ONE = f"{EVALUATIONS}/queue", f"{EVALUATIONS}/queue/{{queue_id}}"
PERSONAS, SCENARIOS, FEEDBACK = "/api/personas", "/api/scenarios", "/api/feedback"


class Described:
    """An API that is asked, and its description that each answer is held against."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.document: dict[str, Any] = client.app.openapi()  # type: ignore[attr-defined]
        self.operations = {f"{method} {path}": one for method, path, one in operations(self.document)}
        self.seen: set[tuple[str, int]] = set()

    def ask(self, method: str, path: str, status: int = 200, **sent: Any) -> httpx2.Response:
        """Ask for a path, whose places in braces take what `at` says."""
        at = sent.pop("at", {})
        answer = self.client.request(method, path.format(**at), **sent)
        assert answer.status_code == status, (method, path, answer.text)
        self.check(f"{method} {path}", answer)
        return answer

    def check(self, operation: str, answer: httpx2.Response) -> None:
        is_refused = 400 <= answer.status_code < 500
        told = self.operations[operation]["responses"]["4XX" if is_refused else str(answer.status_code)]
        assert faults_of(answer, told, self.document) == [], operation
        assert answer.status_code >= 400 or {
            name for name in ("etag", "location", "retry-after") if name in answer.headers
        } == {name.lower() for name in told.get("headers", {}) if name != "WWW-Authenticate"}, operation
        self.seen.add((operation, answer.status_code))


def with_events(store: EvaluationStore, games: str, failed: str) -> None:
    """Every kind of event, as stages and the sensor tell them."""
    of_run = {"dagster_run_id": "8f1c"}
    calls = StageCalls(CallCounts(3, 1, 2), "no answer within 60 s", "max_calls reached")
    stage = {"stage": "episodes"}
    tell(store, games, "started", of_run)
    tell(store, games, "item", {**stage, "answered": 2, "failed": 0, "skipped": 0, "n_planned": 6})
    tell(store, games, "item", {"restarted": True, **of_run, "reason": "its worker died"})
    tell(store, games, "item", {**stage, **calls.build_json()})
    tell(store, games, "item", {**stage, "key": "poker/kuhn", "done": 1, "n_planned": 1, "status": "done"})
    told = EvaluationCalls({"episodes": calls})
    end = {**of_run, "calls": told.build_json(), "warning": told.unanswered_note, "call_costs": sum_call_costs_by(store, games)}
    tell(store, games, "completed", end)
    item = {
        "stage": "qa_responses",
        "key": "mmlu/law",
        "done": 1,
        "n_planned": 1,
        "status": "failed",
        "reason": "no space left",
    }
    tell(store, failed, "item", item)
    reasons = {"reason": "mmlu/law: no space left", "failed": {"mmlu/law": "no space left"}}
    tell(store, failed, "failed", {**of_run, **reasons})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Described, dict[str, Any]]]:
    """An administrator's, over evaluations of every family with results, votes, and responses that may be paired."""
    folder: Path = tmp_path_factory.mktemp("described")
    evaluations = {family: make(folder) for family, make in ANSWER_AND_BATTERY_COLUMNS.items()}
    with client_in(folder) as client:
        services = client.app.state.services  # type: ignore[attr-defined]
        row = {"suite": "made", "part": "all", "item_id": "1", "condition": "plain", "prompt_id": "p"}
        prompts = [row | {"messages": [{"role": "user", "text": "What is it?"}]}]
        responses = [row | {"snapshot": "base"} | asked(one) for one in ("one", "two")]
        keep_in(Path(services.settings.warehouse), {"qa_prompts": prompts, "qa_responses": responses})
        with_events(services.evaluations, evaluations["games"].queue_id, evaluations["qa"].queue_id)
        with_votes(services, 4)
        with_board(services)
        yield Described(client), evaluations


def ask_about_evaluations(api: Described, evaluations: Mapping[str, Any]) -> None:
    assert api.ask("POST", EVALUATIONS, 202, json=MANIFEST).json()["family"] == "games"
    assert len(api.ask("GET", QUEUE).json()["evaluations"]) == 5
    for one in evaluations.values():
        at = {"queue_id": one.queue_id}
        api.ask("GET", ONE, at=at)
        assert api.ask("GET", f"{ONE}/events/history", at=at).json()["events"]
        for run in one.runs:
            assert api.ask("GET", RUN, at={"run_id": run.run_id}).json()["metrics"]
            traces = api.ask("GET", f"{RUN}/traces", at={"run_id": run.run_id}).json()["traces"]
            assert traces
            for trace in traces[:3]:
                api.check(f"GET {RUN}/traces/{{trace_id}}", api.client.get(trace))
    api.ask("POST", f"{ONE}/cancel", 202, at={"queue_id": evaluations["survey"].queue_id})
    api.ask("POST", f"{ONE}/cancel", 409, at={"queue_id": evaluations["qa"].queue_id})


def ask_about_documents(api: Described) -> None:
    template = api.ask("GET", f"{SCENARIOS}/templates").json()["templates"][0]["manifest"]
    league, name = template["id"].split("/")
    for path, sent, at, first, second in (
        (PERSONAS, PERSONA, {"persona_id": "quiet"}, "approved", "draft"),
        (SCENARIOS, template, {"league": league, "name": name}, "production", "experimental"),
    ):
        one = path + "".join(f"/{{{place}}}" for place in at)
        etag = api.ask("POST", path, 201, json=sent).headers["etag"]
        api.ask("POST", path, 409, json=sent)
        api.ask("PUT", one, at=at, json=sent, headers={"If-Match": etag})
        api.ask("POST", f"{one}/status", at=at, json={"status": first})
        refused = api.ask("POST", f"{one}/status", 409, at=at, json={"status": second}).json()
        assert refused["allowed"] == ["retired"]
        api.ask("GET", one, at=at)
        assert {told["from"] for told in api.ask("GET", f"{one}/versions", at=at).json()["versions"]} == {"store"}
    assert len(api.ask("GET", PERSONAS).json()["personas"]) > 1
    assert len(api.ask("GET", SCENARIOS).json()["scenarios"]) > 1
    api.ask("GET", f"{SCENARIOS}/{{league}}/{{name}}/versions", at={"league": "poker", "name": "kuhn"})


def ask_about_votes(api: Described) -> None:
    api.ask("POST", f"{FEEDBACK}/pairs", 201, json={"family": "qa", "pattern": ["made/*"]})
    pair = api.ask("GET", f"{FEEDBACK}/next", params={"reviewer_id": "r1"}).json()
    ballot = {"pair_id": pair["pair_id"], "reviewer_id": "r1", "choice": "tie", "confidence": 5, "justification": None}
    vote_id = api.ask("POST", f"{FEEDBACK}/votes", 201, json=ballot).json()["vote_id"]
    assert api.ask("POST", f"{FEEDBACK}/votes", 422, json=ballot | {"choice": "C"}).json()["errors"]
    api.ask("POST", f"{FEEDBACK}/votes/{{vote_id}}/void", 201, at={"vote_id": vote_id}, json={"reason": "a test"})
    assert {one["action"] for one in api.ask("GET", f"{FEEDBACK}/actions").json()["actions"]} >= {"pairs", "void"}
    assert api.ask("GET", f"{FEEDBACK}/scores").json()["scores"]


def test_every_answer_is_as_it_is_described(made: tuple[Described, dict[str, Any]]) -> None:
    api, evaluations = made
    ask_about_evaluations(api, evaluations)
    ask_about_documents(api)
    ask_about_votes(api)
    assert api.ask("GET", "/api/health").json()["evaluations"]["failures"]
    described = {
        (name, int(status))
        for name, one in api.operations.items()
        for status, answer in one["responses"].items()
        if status[0] == "2" and "content" in answer and name not in NO_JSON
    }
    assert {one for one in api.seen if one[1] < 300} == described


def test_a_fault_of_the_configuration_is_as_it_is_described(tmp_path: Path) -> None:
    with client_in(tmp_path) as client:
        (tmp_path / "tokens.yaml").write_text("tokens: 1", encoding="utf-8")
        Described(client).ask("GET", "/api/health", 503)


def test_no_answer_is_described_by_nothing(made: tuple[Described, dict[str, Any]]) -> None:
    api, _ = made

    def empty(schema: Any) -> bool:
        if isinstance(schema, Mapping):
            named = schema.get("properties")
            return (
                schema == {}
                or any(empty(one) for name, one in schema.items() if name != "default")
                or (isinstance(named, Mapping) and not named)
            )
        return isinstance(schema, list) and any(map(empty, schema))

    bodies = [one for _, path in api.document["paths"].items() for one in path.values()]
    told = [content for one in bodies for answer in one["responses"].values() for content in answer.get("content", {}).values()]
    assert [one for one in told if not one.get("schema")] == []
    assert {name for name, one in api.document["components"]["schemas"].items() if empty(one.get("properties", one))} == set()


def test_a_vote_and_families_are_described_with_all_their_bounds(made: tuple[Described, dict[str, Any]]) -> None:
    api, _ = made
    sent = api.operations[f"POST {FEEDBACK}/votes"]["requestBody"]["content"]["application/json"]["schema"]
    checked = jsonschema_rs.Draft202012Validator({**sent, "components": api.document["components"]})
    good = {"pair_id": "p", "reviewer_id": "r", "choice": "A", "confidence": 1}
    assert all(checked.is_valid(good | one) for one in ({}, {"justification": "x" * 2_000}, {"justification": None}))
    faults: list[dict[str, Any]] = [
        *({"choice": one} for one in ("C", "a", None)),
        *({"confidence": one} for one in (0, 6, 1.5, "3", True)),
        *({"justification": one} for one in ("x" * 2_001, 1)),
        *({field: one} for field in ("pair_id", "reviewer_id") for one in ("", "  ", "x" * 201, 1)),
        {"comment": "x"},
    ]
    assert [one for one in faults if checked.is_valid(good | one)] == []
    assert not any(checked.is_valid({name: one for name, one in good.items() if name != left_out}) for left_out in good)
    names = [one.name for one in FAMILIES]
    for operation in (f"GET {FEEDBACK}/next", f"GET {FEEDBACK}/scores"):
        (asked_for,) = (one for one in api.operations[operation]["parameters"] if one["name"] == "family")
        assert asked_for["schema"]["anyOf"][0]["enum"] == [*names, "elsewhere"]
    assert api.document["components"]["schemas"]["PairRequest"]["properties"]["family"]["enum"] == names


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with client_in(tmp_path_factory.mktemp("api"), None) as client:
        yield client.app.openapi()  # type: ignore[attr-defined]


def test_every_operation_needs_a_role(document: dict[str, Any]) -> None:
    roles = {f"{method} {path}": read_role(one) for method, path, one in operations(document)}
    assert {name for name, role in roles.items() if role not in TOKEN_ROLES} <= {"GET /healthz"}
    assert {name for name, role in roles.items() if role == "reviewer"} <= {
        "GET /api/feedback/next",
        "POST /api/feedback/votes",
    }


def test_every_operation_says_what_it_does(document: dict[str, Any]) -> None:
    assert [path for _, path, one in operations(document) if not one.get("description", "").strip()] == []


def test_errors_are_described_as_problem_json(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        for status, answer in operation["responses"].items():
            if status[0] in "45":
                assert list(answer["content"]) == ["application/problem+json"], (method, path, status)


def test_headers_that_routes_read_are_described(document: dict[str, Any]) -> None:
    found = {f"{method} {path}": one for method, path, one in operations(document)}
    headers = {
        name: {header["name"]: header["required"] for header in one.get("parameters", []) if header["in"] == "header"}
        for name, one in found.items()
    }
    assert headers["GET /api/personas"] == {"If-None-Match": False}
    assert headers["PUT /api/personas/{persona_id}"] == {"If-Match": True}
    assert headers["POST /api/personas/{persona_id}/status"] == {"If-Match": False}
    assert headers["GET /api/evaluations/queue/{queue_id}/events"] == {"Last-Event-ID": False}


@pytest.mark.parametrize(("role", "status"), [(None, 401), ("reviewer", 403), ("operator", 200), ("admin", 200)])
def test_operators_are_served_the_description(tmp_path: Path, role: str | None, status: int) -> None:
    with client_in(tmp_path, role) as client:
        answer = client.get("/api/openapi.json")
    assert answer.status_code == status
    if status == 200:
        assert answer.json()["info"]["title"] == "DTEF pipeline"

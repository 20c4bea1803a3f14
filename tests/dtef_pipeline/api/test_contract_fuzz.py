"""The contract under fuzz: whatever is sent to any operation, no answer is an error of the server or shows its insides, and roles hold.

The operations and their requests are those of the API's own description, so that a new one is tried at once.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

with warnings.catch_warnings():
    # What packages that it is made of say to each other.
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig
    from schemathesis.core.control import SkipTest
    from schemathesis.generation import GenerationMode

from dtef_pipeline.api.app import make_app, operations
from dtef_pipeline.api.plans.plan import PlannedEvaluation
from dtef_pipeline.preference.pairing import make_new_pairs
from resources.evaluations.evaluation_store import RunSpec
from tests.dtef_pipeline.api.made import PINNED_GAME, ROLE_TOKENS, faults_of, services_in
from tests.made.run_events import tell
from tests.made.votes import responses

EXAMPLES = settings.default.max_examples // 6
"""Requests per operation, of each kind."""
INSIDES = (
    "Traceback",
    'File "',
    "/dtef_pipeline/",
    "site-packages",
    "sqlalchemy",
    "sqlite3",
    "psycopg",
    "pydantic",
    "object at 0x",
)
OF_REVIEWERS = {("GET", "/api/feedback/next"), ("POST", "/api/feedback/votes")}
OPEN = {("GET", "/healthz")}
"""Says that the process answers, and nothing else."""


PLAN = PlannedEvaluation("games", "league_scenario", ["poker/kuhn"], {}, "base", ()).build_plan_json()


class Fuzzed(NamedTuple):
    """An application to send anything to, and what is there, by the names of path parameters and of members of bodies."""

    client: TestClient
    known: Mapping[str, str]


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    """Over a store with a pair, and with an evaluation that has ended: the stream of its events has an end, too."""
    services = services_in(tmp_path_factory.mktemp("fuzz"))
    store = services.evaluations
    made, _ = store.submit(
        "games", {"seeds": [1]}, PLAN, [RunSpec("poker/kuhn", {"persona_id": "calm", **PINNED_GAME})], "operator"
    )
    tell(store, made.queue_id, "completed", {})
    rows = responses(2)
    services.votes.add_pairs(rows, make_new_pairs(rows))
    (pair,) = services.votes.pairs()
    known = {
        "queue_id": made.queue_id,
        "run_id": made.runs[0].run_id,
        "evaluation_id": made.queue_id,
        "pair_id": pair.pair_id,
        "reviewer_id": "r1",
    }
    with TestClient(make_app(services), raise_server_exceptions=False) as client:
        yield Fuzzed(client, known)


def described(client: TestClient) -> dict[str, Any]:
    document: dict[str, Any] = client.app.openapi()  # type: ignore[attr-defined]
    return document


def offence(answer: Any, operation: dict[str, Any], document: dict[str, Any]) -> str | None:
    """What is wrong with an answer; None: nothing."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if answer.status_code >= 500:
        return f"status {answer.status_code}"
    if shown := [inside for inside in INSIDES if inside in answer.text]:
        return f"shows {shown}"
    if answer.status_code >= 400 and (kind != "application/problem+json" or answer.json()["status"] != answer.status_code):
        return f"an error as {kind}"
    status = str(answer.status_code)
    known = operation["responses"].get("4XX" if status[0] == "4" else status)
    if known is None:
        return f"status {answer.status_code} is not described"
    if answer.status_code >= 400:
        return None
    allowed = [*known.get("content", {})]
    if kind not in (allowed or [""]) and answer.content:
        return f"{kind} is not described: {allowed}"
    return (
        f"not as described: {faults}" if kind == "application/json" and (faults := faults_of(answer, known, document)) else None
    )


class Asker:
    """Sends generated requests of one operation, and keeps the first offence."""

    def __init__(self, client: TestClient, operation: Any, token: str, known: Mapping[str, str]) -> None:
        self.client, self.operation, self.token, self.known = client, operation, token, known
        self.document = described(client)
        self.described: dict[str, Any] = self.document["paths"][operation.path][operation.method]
        self.asked = 0
        self.statuses = set[int]()
        self.offence: str | None = None

    def ask(self, case: Any) -> None:
        """Every second request is about what is there."""
        self.asked += 1
        if self.asked % 2:
            for name, value in self.known.items():
                for given in (case.path_parameters, case.body):
                    if isinstance(given, dict) and name in given:
                        given[name] = value
        sent = case.as_transport_kwargs(base_url="http://testserver")
        # Bytes of any kind reach a server in headers.
        headers = {name: str(value).encode("utf-8", "replace") for name, value in sent["headers"].items()}
        sent["headers"] = {**headers, "Authorization": f"Bearer {self.token}".encode()}
        sent.pop("cookies", None)
        if isinstance(sent.get("data"), str | bytes):
            sent["content"] = sent.pop("data")
        answer = self.client.request(**sent)
        self.statuses.add(answer.status_code)
        if self.offence is None and (said := offence(answer, self.described, self.document)):
            self.offence = f"{said}: {sent}: {answer.text[:300]}"


def schema_of(client: TestClient, mode: GenerationMode) -> Any:
    generation = GenerationConfig(modes=[mode], deterministic=True, max_examples=EXAMPLES, database="none")
    projects = ProjectsConfig(default=ProjectConfig(generation=generation))
    return schemathesis.openapi.from_dict(described(client), config=SchemathesisConfig(projects=projects))


def ask_all(asker: Asker, mode: GenerationMode) -> None:
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=asker.operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        asker.ask(case)

    try:
        ask()
    except (Unsatisfiable, SkipTest):
        # Where nothing can be wrong, there is nothing to send.
        assert mode is GenerationMode.NEGATIVE


def fuzzed(fuzz: Fuzzed, mode: GenerationMode) -> list[Asker]:
    """What asked each operation, with requests of a mode."""
    askers = [
        Asker(fuzz.client, found.ok(), ROLE_TOKENS["admin"], fuzz.known)
        for found in schema_of(fuzz.client, mode).get_all_operations()
    ]
    for asker in askers:
        ask_all(asker, mode)
    return askers


@pytest.mark.parametrize(
    "mode",
    [GenerationMode.NEGATIVE, pytest.param(GenerationMode.POSITIVE, marks=pytest.mark.thorough)],
    ids=lambda one: one.name.lower(),
)
def test_no_request_brings_an_error_of_the_server_or_shows_its_insides(fuzz: Fuzzed, mode: GenerationMode) -> None:
    askers = {f"{one.operation.method} {one.operation.path}": one for one in fuzzed(fuzz, mode)}
    assert {name: one.offence for name, one in askers.items() if one.offence is not None} == {}
    if mode is GenerationMode.POSITIVE:
        assert 201 in askers["post /api/feedback/votes"].statuses, "no vote that the description makes is taken"


def filled(path: str, known: Mapping[str, str]) -> str:
    """The path with what is there in its places."""
    return re.sub(r"{(\w+)}", lambda found: known.get(found[1], "nobody"), path)


def test_a_body_of_another_kind_brings_no_error_of_the_server(fuzz: Fuzzed) -> None:
    """Few of the requests that are generated are so plain."""
    document, found = described(fuzz.client), {}
    headers = {"Authorization": f"Bearer {ROLE_TOKENS['admin']}", "Content-Type": "application/json"}
    for method, path, operation in operations(document):
        for body in ("[]", "null", "1", '"x"', "{}") if "requestBody" in operation else ():
            answer = fuzz.client.request(method, filled(path, fuzz.known), content=body, headers=headers)
            if said := offence(answer, operation, document):
                found[f"{method} {path} {body}"] = said
    assert found == {}


@pytest.mark.parametrize(("role", "status"), [(None, 401), ("reviewer", 403)])
def test_every_operation_is_closed_without_a_token_and_to_reviewers_but_theirs(
    fuzz: Fuzzed, role: str | None, status: int
) -> None:
    headers = {} if role is None else {"Authorization": f"Bearer {ROLE_TOKENS[role]}"}
    found = {}
    for method, path, _ in operations(described(fuzz.client)):
        if (method, path) in OPEN or (role is not None and (method, path) in OF_REVIEWERS):
            continue
        for url in (path, filled(path, fuzz.known)):
            answer = fuzz.client.request(method, url, headers=headers)
            if answer.status_code != status or "problem+json" not in answer.headers["content-type"]:
                found[f"{method} {url}"] = (answer.status_code, answer.text[:200])
    assert found == {}

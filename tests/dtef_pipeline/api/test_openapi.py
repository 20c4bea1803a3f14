"""The description of the API is what the application says, every operation takes a role, and operators are served it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from dtef_pipeline.api.description import ROLE_MEMBER, operations
from dtef_pipeline.api.tokens import TOKEN_ROLES
from tests.conftest import ROOT
from tests.dtef_pipeline.api.made import client_in


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_reference", ROOT / "docs" / "api_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_description_and_the_table_of_endpoints_are_what_the_application_says(script: ModuleType) -> None:
    found = script.described()
    assert script.DESCRIPTION.read_text(encoding="utf-8") == script.as_text(found), "stale: run `make docs`"
    page = script.GUIDE.read_text(encoding="utf-8")
    assert page == script.with_table(page, script.endpoints(found)), "stale: run `make docs`"


def test_every_operation_takes_a_role_and_reviewers_have_theirs(script: ModuleType) -> None:
    roles = {f"{method} {path}": one.get(ROLE_MEMBER) for method, path, one in operations(script.described())}
    assert {name for name, role in roles.items() if role not in TOKEN_ROLES} <= {"GET /healthz"}
    assert {name for name, role in roles.items() if role == "reviewer"} <= {
        "GET /api/feedback/next",
        "GET /api/feedback/pairs/next",
        "POST /api/feedback/votes",
    }


def test_every_operation_says_what_it_does(script: ModuleType) -> None:
    assert [path for _, path, one in operations(script.described()) if not one.get("description", "").strip()] == []


def test_errors_are_described_as_problem_json(script: ModuleType) -> None:
    for method, path, operation in operations(script.described()):
        for status, answer in operation["responses"].items():
            if status[0] in "45":
                assert list(answer["content"]) == ["application/problem+json"], (method, path, status)


def test_refusals_are_described_per_operation_and_so_are_headers(script: ModuleType) -> None:
    found = {f"{method} {path}": one for method, path, one in operations(script.described())}
    refused = {name: {int(status) for status in one["responses"] if status[0] == "4"} for name, one in found.items()}
    assert refused["GET /api/health"] == {401, 403}
    assert refused["GET /api/personas/{persona_id}"] == {401, 403, 404, 422}
    assert refused["PUT /api/personas/{persona_id}"] == {400, 401, 403, 404, 409, 412, 413, 422, 428}
    assert refused["POST /api/feedback/votes"] == {400, 401, 403, 404, 409, 413, 422, 429}
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

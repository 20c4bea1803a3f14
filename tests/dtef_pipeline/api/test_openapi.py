"""Every operation of the API's description takes a role, and operators are served the description."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.api.description import operations, read_role
from dtef_pipeline.api.tokens import TOKEN_ROLES
from tests.dtef_pipeline.api.made import client_in


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

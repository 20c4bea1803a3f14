"""The OpenAPI description, with the role that each operation requires, for generating clients and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts

from dtef_pipeline.api.access import LOWEST_ROLE_OF, OperatorToken
from dtef_pipeline.api.problems import PROBLEM_TYPE
from dtef_pipeline.api.tokens import TokenRole

router = APIRouter()
ROLE_MEMBER = "x-dtef-role"
"""Key of an operation for the least role that may use it."""
_BEARER_SCHEME = "bearer"
_ANY_CLIENT_ERROR = "4XX"
"""Names of models whose schemas the application adds for all routes."""
_HTTP_VERBS = ("get", "post", "put", "patch", "delete")
_UNAVAILABLE = {"description": "The server cannot do this now: its store is not available, or its configuration is invalid."}


@router.get("/api/openapi.json", include_in_schema=False)
def openapi(who: OperatorToken, request: Request) -> JSONResponse:
    """Return this description."""
    return JSONResponse(request.app.openapi(), headers={"Cache-Control": "no-cache"})


def describe(app: FastAPI) -> None:
    """Install the description in the application, after all routes are added."""

    def build_description() -> dict[str, Any]:
        if not app.openapi_schema:
            plain = get_openapi(title=app.title, version=app.version, description=app.description or None, routes=app.routes)
            app.openapi_schema = _complete_description(plain, _collect_roles(app))
        return app.openapi_schema

    app.openapi = build_description  # type: ignore[method-assign]


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (method in capitals, path, operation) of a description, in the order of the paths."""
    for path, item in sorted(document["paths"].items()):
        for verb in _HTTP_VERBS:
            if verb in item:
                yield verb.upper(), path, item[verb]


def _complete_description(document: dict[str, Any], roles: Mapping[tuple[str, str], TokenRole]) -> dict[str, Any]:
    schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes[_BEARER_SCHEME] = {
        "type": "http",
        "scheme": "bearer",
        "description": "A token made by `dtef tokens NAME --role ROLE`.",
    }
    for method, path, operation in operations(document):
        if (role := roles.get((method, path))) is not None:
            operation[ROLE_MEMBER] = role
            operation["security"] = [{_BEARER_SCHEME: []}]
        answers = operation["responses"]
        _add_headers(path, operation)
        # The framework's descriptions of its errors, which this application replaces with problems.
        answers.pop("422", None)
        (problem,) = answers[_ANY_CLIENT_ERROR]["content"].values()
        answers["503"] = dict(_UNAVAILABLE)
        for status in (_ANY_CLIENT_ERROR, "503"):
            answers[status]["content"] = {PROBLEM_TYPE: problem}
    return document


def _add_headers(path: str, operation: dict[str, Any]) -> None:
    """Add the headers that routes read by themselves."""
    answers, parameters = operation["responses"], operation.setdefault("parameters", [])
    read = {
        "If-None-Match": ("304" in answers, "ETags of the versions that the client has."),
        "If-Match": (path.endswith("/status"), "The ETag of the version to change, as it was read."),
        "Last-Event-ID": (
            "text/event-stream" in answers.get("200", {}).get("content", {}),
            "The number of the last event received.",
        ),
    }
    names = {parameter["name"] for parameter in parameters}
    for name, (is_read, header_description) in read.items():
        if is_read and name not in names:
            parameters.append(
                {
                    "name": name,
                    "in": "header",
                    "required": False,
                    "schema": {"type": "string"},
                    "description": header_description,
                }
            )
    if not parameters:
        del operation["parameters"]


def _collect_roles(app: FastAPI) -> dict[tuple[str, str], TokenRole]:
    roles = {}
    for route in iter_route_contexts(app.routes):
        dependant = getattr(route, "dependant", None)
        if dependant is None or (role := _find_role(dependant)) is None:
            continue
        roles.update({(method, route.path_format or ""): role for method in route.methods or ()})
    return roles


def _find_role(dependant: Dependant) -> TokenRole | None:
    for dependency in dependant.dependencies:
        if dependency.call is not None and (role := LOWEST_ROLE_OF.get(dependency.call)) is not None:
            return role
    return None

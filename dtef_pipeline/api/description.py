"""The API described by itself: as OpenAPI, with the role that each operation takes, for programs that make clients or tests of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts

from dtef_pipeline.api.access import LOWEST_ROLE_OF, Operating
from dtef_pipeline.api.problems import PROBLEM_TYPE
from dtef_pipeline.api.tokens import TokenRole

router = APIRouter()
ROLE_MEMBER = "x-dtef-role"
"""Of an operation: the least role that may use it."""
_BEARER_SCHEME = "bearer"
_HTTP_VERBS = ("get", "post", "put", "patch", "delete")
_STORE_AWAY = {
    "description": "The store of the server cannot be reached or written now; the header Retry-After says when to try again."
}


@router.get("/api/openapi.json", include_in_schema=False)
def openapi(who: Operating, request: Request) -> JSONResponse:
    """This description."""
    return JSONResponse(request.app.openapi(), headers={"Cache-Control": "no-cache"})


def describe(app: FastAPI) -> None:
    """Have the application described so. All its routes are there already."""

    def described() -> dict[str, Any]:
        if not app.openapi_schema:
            plain = get_openapi(title=app.title, version=app.version, description=app.description or None, routes=app.routes)
            app.openapi_schema = _completed(plain, _roles(app))
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(method in capitals, path, operation) of a description, in the order of the paths."""
    for path, item in sorted(document["paths"].items()):
        for verb in _HTTP_VERBS:
            if verb in item:
                yield verb.upper(), path, item[verb]


def _completed(document: dict[str, Any], roles: Mapping[tuple[str, str], TokenRole]) -> dict[str, Any]:
    schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes[_BEARER_SCHEME] = {"type": "http", "scheme": "bearer", "description": "A token that `dtef tokens new` made."}
    for method, path, operation in operations(document):
        if (role := roles.get((method, path))) is not None:
            operation[ROLE_MEMBER] = role
            operation["security"] = [{_BEARER_SCHEME: []}]
        answers = operation["responses"]
        answers.setdefault("503", dict(_STORE_AWAY))
        problem = answers["4XX"].get("content")
        for status, answer in answers.items():
            if status[0] in "45":
                given = answer.get("content") or problem or {}
                answer["content"] = {PROBLEM_TYPE: next(iter(given.values()), {})}
    return document


def _roles(app: FastAPI) -> dict[tuple[str, str], TokenRole]:
    found = {}
    for one in iter_route_contexts(app.routes):
        dependant = getattr(one, "dependant", None)
        if dependant is None or (role := _role_of(dependant)) is None:
            continue
        found.update({(method, one.path_format or ""): role for method in one.methods or ()})
    return found


def _role_of(dependant: Dependant) -> TokenRole | None:
    for one in dependant.dependencies:
        if one.call is not None and (role := LOWEST_ROLE_OF.get(one.call)) is not None:
            return role
    return None

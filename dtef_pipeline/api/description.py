"""The OpenAPI description, with the role that each operation requires, for generating clients and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.problems import PROBLEM_TYPE, ProblemBody

router = APIRouter()
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ProblemBody, "description": "The error, as problem+json (RFC 9457)."},
    "503": {
        "model": ProblemBody,
        "description": "The server cannot do this now: its store is not available, or its configuration is invalid.",
    },
}
"""Responses in the description of every route."""
_HTTP_VERBS = ("get", "post", "put", "patch", "delete")


@router.get("/api/openapi.json", include_in_schema=False)
def openapi(who: OperatorToken, request: Request) -> JSONResponse:
    """Return this description."""
    return JSONResponse(request.app.openapi(), headers={"Cache-Control": "no-cache"})


def describe(app: FastAPI) -> None:
    """Install the description in the application, after all routes are added."""

    def build_description() -> dict[str, Any]:
        if not app.openapi_schema:
            document = get_openapi(title=app.title, version=app.version, routes=app.routes)
            for _, _, operation in operations(document):
                for status in ERROR_RESPONSES:
                    answer = operation["responses"][status]
                    # The framework can only say that a model is in application/json.
                    answer["content"] = {PROBLEM_TYPE: answer["content"]["application/json"]}
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = build_description  # type: ignore[method-assign]


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (method in capitals, path, operation) of a description, in the order of the paths."""
    for path, item in sorted(document["paths"].items()):
        for verb in _HTTP_VERBS:
            if verb in item:
                yield verb.upper(), path, item[verb]


def read_role(operation: Mapping[str, Any]) -> str | None:
    """Return the least role that may use an operation; None: it is open to all."""
    return next((role for scheme in operation.get("security", ()) for roles in scheme.values() for role in roles), None)

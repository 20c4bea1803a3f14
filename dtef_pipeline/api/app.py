"""The application: its routes, its errors, the headers of every response, and its OpenAPI description for generating clients and tests."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from starlette.datastructures import MutableHeaders, State
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtef_pipeline.api import service_health
from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.documents.document_history import PERSONAS, SCENARIOS
from dtef_pipeline.api.documents.document_routes import build_document_router, template_router
from dtef_pipeline.api.pages import (
    game_document_pages,
    new_evaluation_page,
    page_routes,
    queue_pages,
    review_pages,
    static_files,
    vote_pages,
)
from dtef_pipeline.api.pages.page_routes import handle_errors_with_pages
from dtef_pipeline.api.problems import PROBLEM_TYPE, Problem, ProblemBody, answer_problems, is_json
from dtef_pipeline.api.queue import queue_routes
from dtef_pipeline.api.queue.event_stream import Watchers
from dtef_pipeline.api.results import result_routes
from dtef_pipeline.api.review import feedback_routes
from dtef_pipeline.api.services import Services

description_router = APIRouter()
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ProblemBody, "description": "The error, as problem+json (RFC 9457)."},
    "503": {
        "model": ProblemBody,
        "description": "The server cannot do this now: its store is not available, or its configuration is invalid.",
    },
}
"""Responses in the description of every route."""
_HTTP_VERBS = ("get", "post", "put", "patch", "delete")


@description_router.get("/api/openapi.json", include_in_schema=False)
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


API_TITLE = "DTEF pipeline"
API_VERSION = "1"
_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
}
# A route of the queue comes before that of a run, which takes any id.
_ROUTERS = (
    description_router,
    build_document_router(PERSONAS),
    template_router,
    build_document_router(SCENARIOS),
    queue_routes.router,
    result_routes.router,
    feedback_routes.router,
    service_health.router,
    static_files.router,
    page_routes.router,
    queue_pages.router,
    new_evaluation_page.router,
    game_document_pages.persona_router,
    game_document_pages.scenario_router,
    vote_pages.router,
    static_files.report_router,
    service_health.pages_of_health,
    review_pages.router,
)


def make_app(services: Services) -> FastAPI:
    """Make the application over these services, which it closes at its end."""
    app = FastAPI(
        title=API_TITLE,
        version=API_VERSION,
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(require_storable_text)],
        responses=ERROR_RESPONSES,
    )
    use_services(app, services)
    answer_problems(app)
    handle_errors_with_pages(app)
    for router in _ROUTERS:
        app.include_router(router)
    describe(app)
    app.add_middleware(_Edges)
    return app


def use_services(app: FastAPI, services: Services) -> None:
    """Set the services of an application that is not serving now."""
    # The state may still have values of other services.
    app.state = State(
        {
            "services": services,
            "watchers": Watchers(),
            "feedback": feedback_routes.Feedback(services.votes),
            "health": service_health.HealthMonitor(services),
        }
    )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    try:
        yield
    finally:
        app.state.services.close()


LARGEST_BODY = 1_000_000
"""Bytes."""
# Matches text without escapes, surrogate pairs and all valid escapes, each once; stops at an invalid escape.
_UNSTORABLE_ESCAPE = re.compile(
    rb"(?:[^\\]++|\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?!u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})).))*+\\u",
    re.DOTALL,
)


class _Edges:
    """ASGI middleware that adds headers to every response, including streams. Reading a body beyond `LARGEST_BODY` raises an HTTPException
    with status 413."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = 0

        async def receive_limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > LARGEST_BODY:
                raise HTTPException(413, f"the body is larger than {LARGEST_BODY:,} bytes")
            return message

        async def add_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive_limited, add_headers if scope["type"] == "http" else send)


async def require_storable_text(request: Request) -> None:
    """Refuse NUL and unpaired surrogates, which PostgreSQL does not store, and JSON that is not UTF-8. Raises Problem 400."""
    if request.method == "GET":
        return
    body = await request.body()
    if _UNSTORABLE_ESCAPE.match(body):
        raise Problem(400, "the body has an invalid character: NUL or an unpaired surrogate")
    if not is_json(request):
        return
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(400, f"the body is not UTF-8, as JSON must be: {error.reason} at byte {error.start + 1}") from None
    if b"\0" in body:
        raise Problem(400, "the body has an invalid character, such as NUL, or is not UTF-8, as JSON must be")

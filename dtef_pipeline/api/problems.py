"""Errors as responses: `application/problem+json` (RFC 9457), with the value received and the values allowed, and never a stack trace."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from dtef_pipeline.api.answer_schemas import AnswerBody, make_optional
from dtef_pipeline.api.plans.plan import BodyFault, NotApproved, RefusedManifest, UnfitManifest, UnknownName, strip_commands
from dtef_pipeline.documents import Reason, convert_pydantic_errors, format_path
from dtef_pipeline.errors import (
    BallotError,
    ConfigError,
    DtefError,
    DuplicateVote,
    EvaluationEnded,
    IdempotencyConflict,
    StoreError,
    UnknownEvaluation,
    UnknownPair,
    UnknownVote,
    VoidedAlready,
)
from resources.failures import is_damaged

PROBLEM_TYPE = "application/problem+json"
_MAX_ERRORS = 100
_LONGEST_DETAIL = 2_000
"""Largest number of characters of a detail, and of the path and the message of an error."""
_JSON_TYPE = re.compile(r"\s*application/(?:[^;]*\+)?json\s*(?:;|\Z)", re.IGNORECASE)
_log = logging.getLogger(__name__)
_ANSWERED_AS: tuple[tuple[type[DtefError], int], ...] = (
    (UnknownPair, 404),
    (UnknownVote, 404),
    (UnknownEvaluation, 404),
    (UnknownName, 404),
    (NotApproved, 409),
    (DuplicateVote, 409),
    (VoidedAlready, 409),
    (IdempotencyConflict, 409),
    (EvaluationEnded, 409),
    (BallotError, 422),
    (UnfitManifest, 422),
    (StoreError, 503),
)
"""Statuses by type of error; the first match counts. Any other error is one of the installation, and its response names no files."""


class Problem(Exception):
    """An error response. `members`: further members of its body, such as `errors`: a list of {path, message}."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, **members: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.members = status, detail, dict(headers or {}), members


def make_fault_problem(faults: Sequence[BodyFault]) -> Problem:
    """Make a 422 with these errors."""
    message = "; ".join(f"{fault.path}: {fault.message}" for fault in faults)
    return Problem(422, message, errors=[fault._asdict() for fault in faults])


def is_json(request: Request) -> bool:
    """Whether the content type is JSON."""
    return _JSON_TYPE.match(request.headers.get("content-type", "")) is not None


def convert_faults(reasons: Iterable[Reason]) -> list[BodyFault]:
    """Convert errors of a body to the form in responses."""
    return [BodyFault(format_path(reason.place) or "body", reason.message) for reason in reasons]


class ReportedFault(AnswerBody):
    """One error of a request."""

    path: str
    """Path of the field, with dots; `body`: the whole body."""
    message: str
    """The value received and the values allowed."""


class ProblemBody(AnswerBody):
    """The body of every error (RFC 9457)."""

    type: Literal["about:blank"]
    title: str
    """Status in words."""
    status: int
    detail: str
    """The value received and the values allowed."""
    errors: list[ReportedFault] = make_optional()
    """The first 100 errors of the request."""
    further_errors: int = make_optional()
    """Number of further errors."""
    allowed: list[str] = make_optional()
    """With 409 for a status that cannot follow the present one: the statuses that can."""


def build_problem_response(
    status: int, detail: str, headers: Mapping[str, str] | None = None, members: Mapping[str, Any] | None = None
) -> JSONResponse:
    """Build the response for an error, with only the first of many errors and the beginning of long texts, because a client may send very
    many."""
    title = HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": _truncate_text(detail), **(members or {})}
    if errors := body.get("errors"):
        body["errors"] = [{name: _truncate_text(text) for name, text in error.items()} for error in errors[:_MAX_ERRORS]]
        if n_omitted := len(errors) - len(body["errors"]):
            body["further_errors"] = n_omitted
    return JSONResponse(body, status, {**(headers or {}), "Cache-Control": "no-store"}, PROBLEM_TYPE)


def _truncate_text(text: str) -> str:
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:_LONGEST_DETAIL]}... ({len(text):,} characters)"


def answer_problems(app: FastAPI) -> None:
    """Install these responses for all errors of the application."""
    for kind in (Problem, DtefError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, handle_problem)


async def handle_problem(request: Request, error: Exception) -> JSONResponse:
    """Handle an error as the framework requires."""
    return answer_error(request, error)


def answer_error(request: Request, error: Exception) -> JSONResponse:
    """Convert an error to a Problem, also for pages, which show it in another way."""
    if isinstance(error, RequestValidationError):
        error = _describe_invalid(request, error)
    if isinstance(error, Problem):
        return build_problem_response(error.status, error.detail, error.headers, error.members)
    if isinstance(error, HTTPException):
        return build_problem_response(
            error.status_code, _find_body_problem(error.__cause__) or str(error.detail), error.headers
        )
    if isinstance(error, DtefError):
        return _answer_ours(request, error)
    _log.error("%s %s", request.method, request.url.path, exc_info=error)
    return build_problem_response(500, "an error of the server; see its log")


def _answer_ours(request: Request, error: DtefError) -> JSONResponse:
    for kind, status in _ANSWERED_AS:
        if isinstance(error, kind):
            if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                _log.error("%s %s: %s", request.method, request.url.path, error)
                if is_damaged(str(error)):
                    return build_problem_response(
                        status, "the response store is damaged; the operator of this service must replace it with a backup"
                    )
                return build_problem_response(status, "the store is not available now; try again", {"Retry-After": "5"})
            return build_problem_response(status, strip_commands(str(error)), members=_list_faults(error))
    _log.error("%s %s: %s", request.method, request.url.path, error)
    message = (
        "the configuration of the server is invalid" if isinstance(error, ConfigError) else "the server cannot do this now"
    )
    return build_problem_response(503, f"{message}; see its log", {"Retry-After": "60"})


def _list_faults(error: DtefError) -> dict[str, Any]:
    """Return the member `errors` of a refused manifest or vote; empty for other errors."""
    if isinstance(error, RefusedManifest):
        return {"errors": [fault._asdict() for fault in error.faults]}
    if type(error) is not BallotError:
        return {}
    return {"errors": [BodyFault(*fault)._asdict() for fault in error.faults or [("body", str(error))]]}


def _describe_invalid(request: Request, error: RequestValidationError) -> Problem:
    """Describe the errors of a request that does not have the form of its route."""
    for fault in error.errors():
        if isinstance(fault.get("input"), bytes):
            # The default of `curl -d`.
            kind = request.headers.get("content-type", "no Content-Type")[:80]
            return make_fault_problem([BodyFault("header.Content-Type", f"got {kind}; allowed: application/json")])
        if fault["type"] == "json_invalid":
            message = f"is not JSON: {fault['ctx']['error']} at character {fault['loc'][-1]}"
            return make_fault_problem([BodyFault("body", message)])
    # The first part of each place says where the value came from: body, path, query or header.
    faults = [{**fault, "loc": fault["loc"][1:] if fault["loc"][:1] == ("body",) else fault["loc"]} for fault in error.errors()]
    return make_fault_problem(convert_faults(convert_pydantic_errors(faults, _find_body_model(request))))


def _find_body_model(request: Request) -> type[BaseModel]:
    """Return the model of the route's body; an empty one if it has no body."""
    route = request.scope.get("route")
    models = [param.field_info.annotation for param in getattr(getattr(route, "dependant", None), "body_params", ())]
    return next((model for model in models if isinstance(model, type) and issubclass(model, BaseModel)), BaseModel)


def _find_body_problem(cause: BaseException | None) -> str | None:
    """Say why a body could not be read, which the framework does not report; None: it is another error."""
    if isinstance(cause, RecursionError):
        return "the body is nested too deeply"
    if isinstance(cause, UnicodeDecodeError):
        return f"the body is not UTF-8, as JSON must be: {cause.reason} at byte {cause.start + 1}"
    # A fault of the JSON itself is reported elsewhere, with its position.
    return "the body has a number with too many digits" if isinstance(cause, ValueError) else None

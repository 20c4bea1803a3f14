"""Entity tags, computed only from the content of a body, so that two servers give the same tag (RFC 9110, sections 8.8.3 and 13.1)."""

from __future__ import annotations

import re
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from dtef_pipeline.api.problems import Problem
from dtef_pipeline.identity import digest


def describe_header(name: str, description: str, *, required: bool = False) -> dict[str, Any]:
    """Return the OpenAPI parameter for a header that a route reads itself."""
    return {"name": name, "in": "header", "required": required, "schema": {"type": "string"}, "description": description}


ETAG_HEADER = {"ETag": {"schema": {"type": "string"}, "description": "ETag of this state, for If-None-Match."}}
TAGGED: dict[str, Any] = {
    "responses": {
        200: {"description": "What there is.", "headers": ETAG_HEADER},
        304: {"description": "Not modified: If-None-Match names the present state.", "headers": ETAG_HEADER},
    },
    "openapi_extra": {"parameters": [describe_header("If-None-Match", "ETags of the versions that the client has.")]},
}
"""The description of routes with an ETag."""
# An element of a list of tags, which may be empty; a comma inside a tag is part of it. Linear: alternatives begin with other characters.
_ENTITY_TAG = re.compile(r'[ \t]*(?:(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*)?(?:,|\Z)')


def compute_weak_etag(body: Any) -> str:
    """Return `W/"..."`, a digest of the body as canonical JSON. The body must not contain the present time."""
    return f'W/"{digest("etag", body)}"'


def matches(header: str | None, etag: str) -> bool:
    """Whether a header If-None-Match or If-Match names the tag, in weak comparison. `*` names every tag, a malformed header none."""
    if header is None:
        return False
    if header.strip(" \t") == "*":
        return True
    named, position = set(), 0
    while position < len(header):
        match = _ENTITY_TAG.match(header, position)
        if match is None:
            return False
        named.add(match[1])
        position = match.end()
    return etag.removeprefix("W/").strip('"') in named


def build_tagged_response(request: Request, body: Any) -> Response:
    """Return the body as JSON with its tag, or 304 without a body if the client has it."""
    return apply_etag(request, JSONResponse(body), compute_weak_etag(body))


def apply_etag(request: Request, answer: Response, etag: str) -> Response:
    """Do the same for any response."""
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if matches(read_header(request, "if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    answer.headers.update(headers)
    return answer


def require_match(header: str | None, etag: str) -> None:
    """Require that a change names the state it applies to. `header`: the header If-Match.

    Raises Problem: 428 without it, 412 if it names another state.
    """
    if header is None:
        raise Problem(428, f"If-Match is missing; allowed: the ETag of the version to change, now {etag}")
    if not matches(header, etag):
        raise Problem(412, f"it has changed since: If-Match is {header[:80]}, the ETag now {etag}", {"ETag": etag})


def read_header(request: Request, name: str) -> str | None:
    """Return the value of a header; several of one name are joined to one list."""
    values = request.headers.getlist(name)
    return ", ".join(values) if values else None

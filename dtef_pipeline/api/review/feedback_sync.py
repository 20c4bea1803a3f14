"""Votes in bulk over HTTP, for research infrastructure: export, import, voids, the log of what administrators did, and scores."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import StringConstraints
from starlette.concurrency import run_in_threadpool

from dtef_pipeline.api.access import Administering, Operating
from dtef_pipeline.api.documents.document_history import AddedRecords
from dtef_pipeline.api.documents.document_routes import LINES_ANSWERED, LINES_SENT
from dtef_pipeline.api.etags import UNCHANGED, build_tagged_response
from dtef_pipeline.api.problems import OVER_HTTP, SENT_BODY, make_line_problem
from dtef_pipeline.api.review.feedback_bodies import PageOfActions, PreferenceBoard
from dtef_pipeline.api.review.feedback_routes import FamilyAsked, TakenVote
from dtef_pipeline.api.services import Used
from dtef_pipeline.documents import Part
from dtef_pipeline.errors import SourceError, UnknownVote
from resources.votes.vote_files import add_lines, build_export_lines, check_lines
from resources.votes.vote_tables import decode_time

router = APIRouter()
LARGEST_PLACE = 2**31 - 1
"""Largest number of entries per page of the log of actions."""
_VOTE_ID = re.compile(r"[0-9a-f]{32}")
_LINES_SENT_TOGETHER = 1_000


class VoidReason(Part):
    """Reason for voiding a vote."""

    reason: Annotated[str, StringConstraints(min_length=1, max_length=2_000, pattern=r"\S")]


@router.get("/api/feedback/export", response_class=StreamingResponse, responses=LINES_ANSWERED)
def export_over_http(held: Administering, services: Used, justifications: bool = True) -> Response:
    """All pairs, responses and votes, the same bytes as from `dtef export votes`. Reviewers without consent have pseudonyms."""
    lines = build_export_lines(services.votes, OVER_HTTP, held.name, justifications=justifications)
    headers = {"Cache-Control": "no-store", "Content-Disposition": 'attachment; filename="votes.jsonl"'}
    return StreamingResponse(_encode_blocks(lines), headers=headers, media_type="application/jsonl")


@router.post(
    "/api/feedback/import",
    status_code=201,
    response_model=AddedRecords,
    openapi_extra=LINES_SENT,
)
async def import_over_http(request: Request, held: Administering, services: Used) -> Response:
    """Add the records of JSON lines, all or none of them. 422 names the first invalid line."""
    lines = (await request.body()).split(b"\n")

    def add() -> dict[str, Any]:
        try:
            result = add_lines(services.votes, list(check_lines(SENT_BODY, lines)), held.name, OVER_HTTP)
        except SourceError as error:
            raise make_line_problem(error) from None
        return result._asdict()

    return JSONResponse(await run_in_threadpool(add), 201)


@router.post("/api/feedback/votes/{vote_id}/void", status_code=201, response_model=TakenVote)
def void_over_http(vote_id: str, given: VoidReason, held: Administering, services: Used) -> dict[str, str]:
    """Void a vote, so that it no longer counts. It is kept, and its reviewer cannot vote on the pair again. 409: it is already voided."""
    if not _VOTE_ID.fullmatch(vote_id):
        raise UnknownVote(f"unknown vote {vote_id[:80]!r}")
    services.votes.void(vote_id, held.name, given.reason)
    return {"vote_id": vote_id}


@router.get("/api/feedback/actions", response_model=PageOfActions)
def list_actions_over_http(
    held: Administering,
    services: Used,
    after: Annotated[int, Query(ge=0, le=LARGEST_PLACE)] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> Response:
    """Actions of administrators and operators, earliest first. `next`: the value of `after` for the next page; null: this is the last
    page."""
    rows = services.votes.actions(after, limit + 1)
    action_rows = [
        {
            "place": row["place"],
            "who": row["who"],
            "done_at": str(decode_time(row["done_at"]).isoformat()),  # type: ignore[union-attr]
            "what": row["what"],
            "before": json.loads(row["before"]),
            "after": json.loads(row["after"]),
        }
        for row in rows[:limit]
    ]
    return JSONResponse({"actions": action_rows, "next": action_rows[-1]["place"] if len(rows) > limit else None})


@router.get("/api/feedback/scores", response_model=PreferenceBoard, responses=UNCHANGED)
def list_scores(
    request: Request, held: Operating, services: Used, family: FamilyAsked = None, partition: str = "all"
) -> Response:
    """The preference board: one row per family, reviewers and player, with its interval, or the reason why there is none."""
    from dtef_pipeline.api.review.scores_response import scores_response

    return build_tagged_response(request, scores_response(services, family, partition))


def _encode_blocks(lines: list[str]) -> Iterator[bytes]:
    for start in range(0, len(lines), _LINES_SENT_TOGETHER):
        yield "".join(f"{line}\n" for line in lines[start : start + _LINES_SENT_TOGETHER]).encode()

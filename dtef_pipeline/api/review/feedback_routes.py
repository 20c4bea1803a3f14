"""Pairs and votes over HTTP: operators make pairs, reviewers get the next one and vote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import AfterValidator

from dtef_pipeline.api.access import Operating, Reviewing
from dtef_pipeline.api.answer_schemas import VotedFamilyName
from dtef_pipeline.api.problems import Problem, is_json, make_not_json_problem
from dtef_pipeline.api.review.feedback_bodies import BALLOT_SENT, ID_SENT, PairsWanted, check_voted_family
from dtef_pipeline.api.review.feedback_services import UsedForVotes
from dtef_pipeline.api.services import Used
from dtef_pipeline.api.tokens import HeldToken
from dtef_pipeline.documents import Part
from dtef_pipeline.preference.ballots import read_ballot, read_id
from dtef_pipeline.text.quantity_words import format_count
from resources.votes.vote_queries import refuse_judge

router = APIRouter()
_NOT_KEPT = {"Cache-Control": "no-store"}
_NONE_LEFT: dict[int | str, dict[str, Any]] = {204: {"description": "No pair is left."}}


FamilyAsked = Annotated[Annotated[VotedFamilyName, AfterValidator(check_voted_family)] | None, Query()]
"""None: all."""


class NewPairs(Part):
    """The new pairs."""

    pairs: int
    pair_ids: list[str]


class ServedPair(Part):
    """The part of a pair that a reviewer sees."""

    pair_id: str
    prompt: str
    run_a: str
    run_b: str


class TakenVote(Part):
    """A stored vote."""

    vote_id: str


async def _require_json(request: Request, holder: Reviewing) -> None:
    if not is_json(request):
        raise make_not_json_problem(request)


@router.post("/api/feedback/pairs", status_code=201, response_model=NewPairs)
def make_pairs(wanted: PairsWanted, held: Operating, services: Used, feedback: UsedForVotes) -> NewPairs:
    """Make pairs of stored responses. 409: no responses are left to pair."""
    from dtef_pipeline.api.review.paired_responses import pair_stored
    from resources.warehouse import Warehouse

    warehouse = Warehouse(services.settings.warehouse)
    with feedback.pairing:
        done = pair_stored(services.votes, warehouse, services.settings, wanted, held.name)
    if not done.new:
        count = f"{format_count(done.responses, 'stored response')} found" if done.responses else "no stored response matches"
        also = (
            "; to pair the stored responses of baselines too, set baselines: true"
            if done.computed and not done.responses
            else ""
        )
        raise Problem(409, f"nothing is left to pair: {count}{also}")
    return NewPairs(pairs=done.new, pair_ids=list(done.pair_ids))


@router.get("/api/feedback/next", response_model=ServedPair, responses=_NONE_LEFT)
def next_pair(
    held: Reviewing,
    services: Used,
    feedback: UsedForVotes,
    reviewer_id: Annotated[str, Query(json_schema_extra=ID_SENT)],
    family: FamilyAsked = None,
) -> Response:
    """The next pair for a reviewer, the same one until the reviewer votes on it."""
    reviewer_id = read_id("reviewer_id", reviewer_id)
    _require_own_id(held, reviewer_id)
    refuse_judge(services.votes.database, reviewer_id)
    pair = feedback.waiting.choose_next(reviewer_id, family)
    return JSONResponse(pair.serialize(), headers=_NOT_KEPT) if pair else Response(status_code=204, headers=_NOT_KEPT)


@router.post(
    "/api/feedback/votes",
    status_code=201,
    response_model=TakenVote,
    dependencies=[Depends(_require_json)],
    openapi_extra=BALLOT_SENT,
)
def take_vote(values: Annotated[Any, Body()], held: Reviewing, services: Used, feedback: UsedForVotes) -> Response:
    """Store a vote: pair_id, reviewer_id, choice (A, B or tie), confidence (1 to 5), and perhaps a justification."""
    if isinstance(values, Mapping) and isinstance(values.get("reviewer_id"), str):
        _require_own_id(held, values["reviewer_id"])
    ballot = read_ballot(values)
    if wait := feedback.rate.wait_s(ballot.reviewer_id):
        message = f"a reviewer may send at most {feedback.rate.most} votes per minute; send the next in {wait} s"
        raise Problem(429, message, {"Retry-After": str(wait)})
    vote_id = services.votes.take(ballot)
    feedback.waiting.voted(ballot.pair_id, ballot.reviewer_id)
    return JSONResponse({"vote_id": vote_id}, 201, _NOT_KEPT)


def _require_own_id(holder: HeldToken, reviewer_id: str) -> None:
    """Check the reviewer's id. An operator's token may vote for many reviewers, for example in a study with its own pages; a reviewer's
    token only for one."""
    if not holder.may("operator") and reviewer_id != holder.name:
        raise Problem(403, f"reviewer_id: the token belongs to {holder.name}, who can vote only under that id")

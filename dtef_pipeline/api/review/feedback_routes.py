"""Pairs and votes over HTTP: operators make pairs and read scores, reviewers vote, administrators void votes and read the log of actions."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, Field, StringConstraints

from dtef_pipeline.api.access import AdminToken, OperatorToken, ReviewerToken
from dtef_pipeline.api.answer_schemas import AnswerBody, FamilyName, RowBody, VotedFamilyName, describe_row, list_families
from dtef_pipeline.api.etags import TAGGED, build_tagged_response
from dtef_pipeline.api.plans.plan import SnapshotName
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.services import Services, ServicesDep
from dtef_pipeline.api.tokens import RateLimit, TokenHolder
from dtef_pipeline.documents import Part
from dtef_pipeline.errors import UnknownVote
from dtef_pipeline.preference.pairing import OTHER_TOOLS
from dtef_pipeline.preference.score_columns import PREFERENCE_SCORES
from dtef_pipeline.preference.votes import Ballot, Id, SentBallot
from dtef_pipeline.text.number_words import format_count
from resources.votes.pair_queue import WaitingPairs
from resources.votes.vote_queries import refuse_judge, vote_counts
from resources.votes.vote_store import VoteStore
from resources.votes.vote_tables import decode_time


class ActionRecord(AnswerBody):
    """An action of an administrator or operator."""

    place: int
    """Number, from 1."""
    user: str
    """Name of a token, or of a user on the server; empty: unknown."""
    done_at: datetime
    action: str
    """Such as pairs, void, import, export, reviewer, persona_version, scenario_status, cancel evaluation."""
    before: dict[str, Any]
    """State before the action."""
    after: dict[str, Any]
    """State after the action, or a description of the action."""


class ActionPage(AnswerBody):
    """Actions, earliest first."""

    actions: list[ActionRecord]
    next: int | None
    """Value of `after` for the next page; null: this is the last."""


class PlayerRow(RowBody):
    """Scores of a player from the votes of people, or of one judge, on the responses of a family."""

    model_config = describe_row(PREFERENCE_SCORES)


class PreferenceBoard(AnswerBody):
    """Rows of the preference board; empty until votes are rolled up."""

    scores: list[PlayerRow]
    votes_version: str
    """Version of all votes that count now; each row has the version of the votes that it was computed from."""
    note: str | None
    """Note that votes were added or voided after the rows were computed, or that there are no rows yet; null: neither."""


_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=300)]
_Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]


def check_family(family: str) -> str:
    """For validators. Raises ValueError for an unknown family."""
    return _require_family(family, list_families())


def check_voted_family(family: str) -> str:
    """For validators of votes, which may also have the family of other tools' votes."""
    return _require_family(family, list_families(OTHER_TOOLS))


def _require_family(family: str, names: Sequence[str]) -> str:
    if family not in names:
        raise ValueError(f"got {repr(family)[:80]}; allowed: {', '.join(names)}")
    return family


class PairRequest(Part):
    """Selection of stored responses to pair, as in `dtef preference pairs`."""

    family: Annotated[FamilyName, AfterValidator(check_family)]
    pattern: Annotated[list[_Pattern], Field(max_length=100)] = []
    """Patterns of partitions; empty: all."""
    models: Annotated[list[_Pattern], Field(max_length=100)] = []
    """Names of models; empty: all."""
    snapshot: SnapshotName = "base"
    baselines: Annotated[bool, Field(strict=True)] = False
    max_pairs: _Count | None = None
    per_item: _Count | None = None


VOTES_A_MINUTE = 60
"""Of one reviewer: a person reads before voting, and a program that guesses does not."""


class Feedback:
    """Made once per application."""

    def __init__(self, votes: VoteStore) -> None:
        self.waiting = WaitingPairs(votes)
        self.rate = RateLimit(VOTES_A_MINUTE)
        self.pairing = threading.Lock()
        """Locked while pairs are made, so that two concurrent requests do not both count the same pairs."""


async def get_feedback(request: Request) -> Feedback:
    """Return the object of the application that serves the request."""
    feedback: Feedback = request.app.state.feedback
    return feedback


FeedbackDep = Annotated[Feedback, Depends(get_feedback)]


router = APIRouter()
LARGEST_PLACE = 2**31 - 1
"""Of the log of actions."""
_VOTE_ID = re.compile(r"[0-9a-f]{32}")
_NOT_KEPT = {"Cache-Control": "no-store"}
_NONE_LEFT: dict[int | str, dict[str, Any]] = {204: {"description": "No pair is left."}}


FamilyOption = Annotated[Annotated[VotedFamilyName, AfterValidator(check_voted_family)] | None, Query()]
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


class StoredVote(Part):
    """A stored vote."""

    vote_id: str


class VoidReason(Part):
    """Why a vote counts no more."""

    reason: Annotated[str, StringConstraints(min_length=1, max_length=2_000, pattern=r"\S")]


@router.post("/api/feedback/pairs", status_code=201, response_model=NewPairs)
def make_pairs(pair_request: PairRequest, holder: OperatorToken, services: ServicesDep, feedback: FeedbackDep) -> NewPairs:
    """Make pairs of stored responses. 409: no responses are left to pair."""
    from dtef_pipeline.api.review.paired_responses import pair_stored
    from resources.warehouse import Warehouse

    warehouse = Warehouse(services.settings.warehouse)
    with feedback.pairing:
        result = pair_stored(services.votes, warehouse, services.settings, pair_request, holder.name)
    if not result.new:
        count = (
            f"{format_count(result.responses, 'stored response')} found" if result.responses else "no stored response matches"
        )
        also = (
            "; to pair the stored responses of baselines too, set baselines: true"
            if result.computed and not result.responses
            else ""
        )
        raise Problem(409, f"nothing is left to pair: {count}{also}")
    return NewPairs(pairs=result.new, pair_ids=list(result.pair_ids))


@router.get("/api/feedback/next", response_model=ServedPair, responses=_NONE_LEFT)
def next_pair(
    holder: ReviewerToken,
    services: ServicesDep,
    feedback: FeedbackDep,
    reviewer_id: Annotated[Id, Query()],
    family: FamilyOption = None,
) -> Response:
    """The next pair for a reviewer: one with the fewest votes."""
    _require_own_id(holder, reviewer_id)
    refuse_judge(services.votes.database, reviewer_id)
    pair = feedback.waiting.choose_next(reviewer_id, family)
    return JSONResponse(pair.serialize(), headers=_NOT_KEPT) if pair else Response(status_code=204, headers=_NOT_KEPT)


@router.post("/api/feedback/votes", status_code=201, response_model=StoredVote)
def take_vote(ballot: SentBallot, holder: ReviewerToken, services: ServicesDep, feedback: FeedbackDep) -> Response:
    """Store a vote: pair_id, reviewer_id, choice (A, B or tie), confidence (1 to 5), and perhaps a justification."""
    return JSONResponse({"vote_id": store_vote(ballot.to_ballot(), holder, services, feedback)}, 201, _NOT_KEPT)


def store_vote(ballot: Ballot, token: TokenHolder, services: Services, feedback: Feedback) -> str:
    """The id of the vote. Raises Problem for the id of another reviewer, and for votes that come too fast."""
    _require_own_id(token, ballot.reviewer_id)
    if wait := feedback.rate.wait_s(ballot.reviewer_id):
        message = f"a reviewer may send at most {feedback.rate.most} votes per minute; send the next in {wait} s"
        raise Problem(429, message, {"Retry-After": str(wait)})
    return services.votes.take(ballot)


@router.post("/api/feedback/votes/{vote_id}/void", status_code=201, response_model=StoredVote)
def void_over_http(vote_id: str, body: VoidReason, holder: AdminToken, services: ServicesDep) -> dict[str, str]:
    """Let a vote count no more. It stays where it is, and its reviewer cannot vote on the pair again. 409: it is voided already."""
    if not _VOTE_ID.fullmatch(vote_id):
        raise UnknownVote(f"there is no vote {vote_id[:80]!r}")
    services.votes.void(vote_id, holder.name, body.reason)
    return {"vote_id": vote_id}


@router.get("/api/feedback/actions", response_model=ActionPage)
def list_actions_over_http(
    holder: AdminToken,
    services: ServicesDep,
    after: Annotated[int, Query(ge=0, le=LARGEST_PLACE)] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> Response:
    """Actions of administrators and operators, earliest first. `next`: value of `after` for the next page; null: this is the last."""
    rows = services.votes.actions(after, limit + 1)
    action_rows = [
        {
            "place": row["place"],
            "user": row["who"],
            "done_at": str(decode_time(row["done_at"]).isoformat()),  # type: ignore[union-attr]
            "action": row["what"],
            "before": json.loads(row["before"]),
            "after": json.loads(row["after"]),
        }
        for row in rows[:limit]
    ]
    return JSONResponse({"actions": action_rows, "next": action_rows[-1]["place"] if len(rows) > limit else None})


@router.get("/api/feedback/scores", response_model=PreferenceBoard, **TAGGED)
def list_scores(
    request: Request, holder: OperatorToken, services: ServicesDep, family: FamilyOption = None, partition: str = "all"
) -> Response:
    """The preference board: one row per family, reviewers and player, with its interval, and the reason where there is none."""
    return build_tagged_response(request, scores_response(services, family, partition))


def _require_own_id(holder: TokenHolder, reviewer_id: str) -> None:
    """Check the reviewer's id. An operator's token may vote for many reviewers, for example in a study with its own pages; a reviewer's
    token only for one."""
    if not holder.may("operator") and reviewer_id != holder.name:
        raise Problem(403, f"reviewer_id: the token belongs to {holder.name}, who can vote only under that id")


_SCORES_TABLE = "preference_scores"
_SCORES_FOLLOW = "Dagster computes them, usually within 15 minutes"
_known: WeakKeyDictionary[VoteStore, tuple[tuple[int, int], str]] = WeakKeyDictionary()


def compute_current_version(store: VoteStore) -> str:
    """Return `compute_votes_version` of all votes in the store that count.

    Votes and voids are append-only, so it is recomputed when their numbers change.
    """
    from dtef_pipeline.preference.vote_fit import compute_votes_version
    from dtef_pipeline.preference.votes import REVIEWER_KINDS
    from resources.votes.vote_store import read_player_votes

    counts = vote_counts(store.database)
    numbers = counts.n_votes, counts.n_voided
    before, version = _known.get(store, (None, ""))
    if before != numbers:
        version = compute_votes_version(
            [vote for kind in REVIEWER_KINDS for vote in read_player_votes(store, reviewer_kind=kind)]
        )
        _known[store] = numbers, version
    return version


def find_stale_reason(versions: Collection[str | None], now: str) -> str | None:
    """Return a note on a board whose rows have these versions of votes; None: it is up to date, or there are no votes.

    A version covers the votes of all families.
    """
    if not versions:
        return None if now.startswith("0-") else "no scores have been computed from the votes yet"
    reason = "votes were added or voided after these scores were computed, possibly for another family"
    return None if set(versions) <= {now, None} else reason


def scores_response(services: Services, family: str | None, partition: str) -> dict[str, Any]:
    """Return the rows of `preference_scores`, of one family if given, each with a `note` on the limit of its interval.

    `votes_version`: version of the votes that count now; `note`: says if the rows were computed from others. Empty without a table. Raises
    WarehouseError for an unreadable table.
    """
    from resources.warehouse import Warehouse

    rows = Warehouse(services.settings.warehouse).read_or_empty(_SCORES_TABLE).to_pylist()
    now = compute_current_version(services.votes)
    reason = find_stale_reason([row["votes_version"] for row in rows], now)
    scores = [row for row in rows if row["partition"] == partition and family in (None, row["family"])]
    return {"scores": scores, "votes_version": now, "note": f"{reason}; {_SCORES_FOLLOW}" if reason else None}

"""The joins over the tables of votes: where a vote comes from, and what it says of players."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dtef_pipeline.asking.models import is_computed
from resources.pair_sides import LEFT_SIDE, RIGHT_SIDE, SIDE_TEXTS, with_sides
from resources.responses.database import responses
from resources.vote_tables import (
    judging_requests,
    manifests,
    paired_requests,
    paired_responses,
    paired_runs,
    pairs,
    run_requests,
    voids,
    votes,
)

_OF_VOTE = (
    "vote_id",
    "pair_id",
    "reviewer_id",
    "reviewer_kind",
    "choice",
    "shown_as_a",
    "confidence",
    "justification",
    "voted_at",
)
_OF_STORED = ("prompt_id", "model", "model_variant", "served_model", "fingerprint", "answered_at")


def audit_statement(vote_id: str) -> sa.Select[Any]:
    """One row per side and request of a vote: vote -> pair -> response -> request key -> stored response and the run that asked for it;
    and -> manifest of the pair's making."""
    of_vote = judging_requests.c.vote_id == votes.c.vote_id
    # Neither engine aggregates in the order in which rows were added.
    in_order = (
        sa.select(judging_requests.c.request_key).where(of_vote).order_by(judging_requests.c.place).correlate(votes).subquery()
    )
    judging = sa.select(sa.func.aggregate_strings(in_order.c.request_key, " ")).scalar_subquery()
    side = sa.case((paired_responses.c.response_id == pairs.c.left_id, "left"), else_="right").label("side")
    asked_for = sa.and_(
        run_requests.c.response_id == paired_requests.c.response_id,
        run_requests.c.request_key == paired_requests.c.request_key,
    )
    return (
        sa.select(
            *(votes.c[name] for name in _OF_VOTE),
            voids.c.admin.label("voided_by"),
            voids.c.reason.label("voided_because"),
            *(pairs.c[name] for name in ("family", "item_id", "draw", "replaced")),
            side,
            *(paired_responses.c[name] for name in ("response_id", "player", "snapshot")),
            paired_requests.c.request_key,
            *(responses.c[name] for name in _OF_STORED),
            *(paired_runs.c[name] for name in ("run_id", "code_version", "config_hash")),
            *(manifests.c[name].label(f"paired_{name}") for name in ("manifest_id", "code_version", "config_hash")),
            judging.label("judge_request_keys"),
        )
        .select_from(votes)
        .join(pairs, pairs.c.pair_id == votes.c.pair_id)
        .join(paired_responses, paired_responses.c.response_id.in_([pairs.c.left_id, pairs.c.right_id]))
        .join(paired_requests, paired_requests.c.response_id == paired_responses.c.response_id, isouter=True)
        .join(responses, responses.c.request_key == paired_requests.c.request_key, isouter=True)
        .join(run_requests, asked_for, isouter=True)
        .join(paired_runs, paired_runs.c.run_id == run_requests.c.run_id, isouter=True)
        .join(manifests, manifests.c.manifest_id == paired_responses.c.manifest_id, isouter=True)
        .join(voids, voids.c.vote_id == votes.c.vote_id, isouter=True)
        .where(votes.c.vote_id == vote_id)
        .order_by(side, paired_requests.c.place)
    )


def why_incomplete(row: Mapping[str, Any]) -> str | None:
    """Why a row of the audit does not lead back to a run; None: it does."""
    if row["request_key"] is None:
        return "the response came from a file of another tool: no request stands behind it"
    if row["run_id"] is not None:
        return None
    if is_computed(row["player"]):
        return "the response was computed from the data: no model was asked"
    if row["prompt_id"] is None:
        return "the stored response is not in this store, and the pair came from a file that says nothing of runs"
    return "the pair was made before runs were noted, or of a response that was stored before or came from a file"


def players_statement(family: str | None, reviewer_kind: str, leaks: bool) -> sa.Select[Any]:
    """One row per vote that is not voided, with the players and the lengths of their texts."""
    statement = with_sides(
        sa.select(
            pairs.c.family,
            pairs.c.item_id,
            LEFT_SIDE.c.player.label("left"),
            RIGHT_SIDE.c.player.label("right"),
            votes.c.choice,
            votes.c.shown_as_a,
            votes.c.reviewer_id,
            votes.c.reviewer_kind,
            votes.c.confidence,
            votes.c.justification,
            pairs.c.replaced,
            sa.func.length(LEFT_SIDE.c.text).label("left_length"),
            sa.func.length(RIGHT_SIDE.c.text).label("right_length"),
        )
        .select_from(votes)
        .join(pairs, pairs.c.pair_id == votes.c.pair_id)
        .join(voids, voids.c.vote_id == votes.c.vote_id, isouter=True)
        .where(voids.c.void_id.is_(None), votes.c.reviewer_kind == reviewer_kind)
        .order_by(votes.c.vote_id)
    )
    if family is not None:
        statement = statement.where(pairs.c.family == family)
    return statement if leaks else statement.where(pairs.c.replaced == 0)


def texts_statement(pair_ids: Sequence[str]) -> sa.Select[Any]:
    """One row per pair: `left_text` and `right_text`, `left_player` and `right_player`, and names."""
    return with_sides(sa.select(pairs.c.pair_id, *SIDE_TEXTS)).where(pairs.c.pair_id.in_(pair_ids))

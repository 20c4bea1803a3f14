"""Queries on the tables of votes: the origin of a vote, votes on players, counts, and ids of judges."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.errors import BallotError
from dtef_pipeline.preference.pair_verdicts import is_id_of_judge
from resources.responses.database import ResponseDatabase, responses
from resources.votes import vote_tables as tables
from resources.votes.vote_tables import (
    LEFT_SIDE,
    RIGHT_SIDE,
    SIDE_TEXTS,
    join_sides,
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

JUDGE_KIND = "judge"
NOT_OF_A_JUDGE = "the id of a person, which no judge has"
_OF_VOTE = (
    *("vote_id", "pair_id", "reviewer_id", "reviewer_kind", "choice", "shown_as_a"),
    *("confidence", "justification", "voted_at"),
)
_OF_STORED = ("prompt_id", "model", "model_variant", "served_model", "fingerprint", "answered_at")


def build_audit_query(vote_id: str) -> sa.Select[Any]:
    """Select one row per side and request of a vote: vote -> pair -> response -> request key -> stored response and the run that requested
    it; and -> manifest of the pair's creation.
    """
    matches = judging_requests.c.vote_id == votes.c.vote_id
    # No engine guarantees to aggregate in insertion order.
    ordered_keys = (
        sa.select(judging_requests.c.request_key).where(matches).order_by(judging_requests.c.place).correlate(votes).subquery()
    )
    judging = sa.select(sa.func.aggregate_strings(ordered_keys.c.request_key, " ")).scalar_subquery()
    side = sa.case((paired_responses.c.response_id == pairs.c.left_id, "left"), else_="right").label("side")
    request_match = sa.and_(
        run_requests.c.response_id == paired_requests.c.response_id, run_requests.c.request_key == paired_requests.c.request_key
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
        .join(run_requests, request_match, isouter=True)
        .join(paired_runs, paired_runs.c.run_id == run_requests.c.run_id, isouter=True)
        .join(manifests, manifests.c.manifest_id == paired_responses.c.manifest_id, isouter=True)
        .join(voids, voids.c.vote_id == votes.c.vote_id, isouter=True)
        .where(votes.c.vote_id == vote_id)
        .order_by(side, paired_requests.c.place)
    )


def find_incomplete_reason(row: Mapping[str, Any]) -> str | None:
    """Return why an audit row does not lead back to a run, or None if it does."""
    if row["request_key"] is None:
        return "the response came from a file of another tool and has no request"
    if row["run_id"] is not None:
        return None
    if is_computed(row["player"]):
        return "the response was computed from the data: no model was asked"
    if row["prompt_id"] is None:
        return "the response is not in this store, and the file of the pair has no runs"
    return "the pair was made before runs were noted, or of a response that was stored before or came from a file"


def build_players_query(family: str | None, reviewer_kind: str) -> sa.Select[Any]:
    """Select one row per vote that is not voided, with players and text lengths."""
    statement = join_sides(
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
    return statement if family is None else statement.where(pairs.c.family == family)


def build_texts_query(pair_ids: Sequence[str]) -> sa.Select[Any]:
    """Select one row per pair: `left_text` and `right_text`, `left_player` and `right_player`, and names."""
    return join_sides(sa.select(pairs.c.pair_id, *SIDE_TEXTS)).where(pairs.c.pair_id.in_(pair_ids))


def build_waiting_query(reviewer_id: str, family: str | None = None) -> sa.Select[Any]:
    """Select `pair_id` and `n_votes` of pairs of stored responses without the reviewer's vote, fewest votes first."""
    counts = sa.select(votes.c.pair_id, sa.func.count().label("n")).group_by(votes.c.pair_id).subquery()
    n_votes = sa.func.coalesce(counts.c.n, 0)
    own_votes = sa.select(votes.c.vote_id).where(votes.c.pair_id == pairs.c.pair_id, votes.c.reviewer_id == reviewer_id)
    statement = (
        join_sides(sa.select(pairs.c.pair_id, n_votes.label("n_votes")))
        .join(counts, counts.c.pair_id == pairs.c.pair_id, isouter=True)
        .where(~own_votes.exists())
        .order_by(n_votes, pairs.c.pair_id)
    )
    return statement if family is None else statement.where(pairs.c.family == family)


class VotesOfReviewer(NamedTuple):
    """One reviewer's votes."""

    reviewer_id: str
    reviewer_kind: str
    n_votes: int
    last_at: datetime | None
    """Time of the last vote; None: all votes were imported without a time."""


class VoteCounts(NamedTuple):
    """Counts of a store's votes, including voided ones."""

    n_votes: int
    n_voided: int
    n_pairs: int
    by_choice: Mapping[str, int]
    """Votes by choice: A, B and tie."""
    by_side: Mapping[str, int]
    """Votes by side: those for the response that is stored as left or as right."""
    reviewers: Sequence[VotesOfReviewer]
    """Reviewers, those with the most votes first."""


def vote_counts(database: ResponseDatabase) -> VoteCounts:
    """Return the current counts."""
    vote = tables.votes.c
    number = sa.func.count().label("n")
    statements = {
        "choices": sa.select(vote.choice, vote.shown_as_a, number).group_by(vote.choice, vote.shown_as_a),
        "reviewers": sa.select(vote.reviewer_id, vote.reviewer_kind, number, sa.func.max(vote.voted_at).label("last"))
        .group_by(vote.reviewer_id, vote.reviewer_kind)
        .order_by(number.desc(), vote.reviewer_id),
        "voided": sa.select(sa.func.count().label("n")).select_from(tables.voids),
        "pairs": sa.select(sa.func.count().label("n")).select_from(tables.pairs),
    }
    results = database.read(
        lambda connection: {name: connection.execute(statement).mappings().all() for name, statement in statements.items()}
    )
    choices, sides = _count_choices(results["choices"])
    return VoteCounts(
        n_votes=sum(choices.values()),
        n_voided=results["voided"][0]["n"],
        n_pairs=results["pairs"][0]["n"],
        by_choice=choices,
        by_side=sides,
        reviewers=[
            VotesOfReviewer(row["reviewer_id"], row["reviewer_kind"], row["n"], tables.decode_time(row["last"]))
            for row in results["reviewers"]
        ],
    )


def list_latest_actions(database: ResponseDatabase, limit: int, before: int | None = None) -> list[dict[str, Any]]:
    """Return actions of administrators and operators as `VoteStore.actions` does, but latest first; `before`: below this place."""
    action = tables.actions.c
    statement = sa.select(tables.actions).order_by(action.place.desc()).limit(limit)
    if before is not None:
        statement = statement.where(action.place < before)
    return database.read(lambda connection: [dict(row) for row in connection.execute(statement).mappings()])


def _count_choices(rows: Sequence[Any]) -> tuple[dict[str, int], dict[str, int]]:
    choices, sides = dict.fromkeys(("A", "B", "tie"), 0), dict.fromkeys(("left", "right"), 0)
    for row in rows:
        choices[row["choice"]] = choices.get(row["choice"], 0) + row["n"]
        if row["choice"] in ("A", "B"):
            is_left = (row["choice"] == "A") == (row["shown_as_a"] == "left")
            sides["left" if is_left else "right"] += row["n"]
    return choices, sides


def find_judges(connection: sa.Connection, database: ResponseDatabase, ids: Collection[str]) -> set[str]:
    """Return the ids that are judges': by their form, or because a judge is known or has voted under them."""
    judges = {reviewer_id for reviewer_id in ids if is_id_of_judge(reviewer_id)}
    for table in (tables.reviewers, tables.votes):
        columns = table.c
        query = sa.select(columns.reviewer_id).where(
            columns.reviewer_kind == JUDGE_KIND, columns.reviewer_id.in_(database.key_query)
        )
        judges |= {
            row["reviewer_id"] for row in tables.query_listed_rows(connection, database, query.distinct(), set(ids) - judges)
        }
    return judges


def refuse_judge(database: ResponseDatabase, reviewer_id: str, field: str = "reviewer_id") -> None:
    """Raise BallotError if the id of a person is a judge's."""
    if database.read(lambda connection: find_judges(connection, database, [reviewer_id])):
        message = f"{format_judge_refusal(reviewer_id, field)}; allowed: {NOT_OF_A_JUDGE}"
        raise BallotError(message, [(field, message.removeprefix(f"{field}: "))])


def format_judge_refusal(reviewer_id: str, field: str = "reviewer_id") -> str:
    return f"{field}: the id {reviewer_id[:80]!r} belongs to a judge"

"""Votes of models in the store: which pairs a judge has not voted on, and its votes, each under the judge's own id."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from dtef_pipeline.preference.ballots import Ballot
from dtef_pipeline.preference.own_judges import is_own_pair
from dtef_pipeline.preference.vote_records import Record
from dtef_pipeline.preference.votes import Choice
from resources import vote_tables as tables
from resources.judge_ids import JUDGE_KIND
from resources.pair_sides import LEFT_SIDE, RIGHT_SIDE, with_sides
from resources.votes import VoteStore


class JudgedPair(NamedTuple):
    """A vote as a judge gives it: it is not asked how certain it is."""

    pair_id: str
    choice: Choice
    justification: str


def add_judge(store: VoteStore, reviewer_id: str) -> None:
    """Make the judge known as one, whose id every export may show. Done again, it changes nothing."""
    if reviewer_id not in store.reviewers():
        store.say_of_reviewer(reviewer_id, consent=True, reviewer_kind=JUDGE_KIND)


def own_pairs(store: VoteStore, reviewer_id: str, own_servers: Collection[str] = ()) -> frozenset[str]:
    """Ids of the pairs with a response of the judge's own maker; `own_servers`: as of `is_self_judged`."""
    statement = with_sides(sa.select(tables.pairs.c.pair_id, LEFT_SIDE.c.player, RIGHT_SIDE.c.player))
    rows = store.database.read(lambda connection: connection.execute(statement).all())
    return frozenset(pair_id for pair_id, one, other in rows if is_own_pair(reviewer_id, one, other, own_servers))


def pairs_voted_on_in_its_name(store: VoteStore, reviewer_id: str, family: str | None = None) -> int:
    """How many pairs the judge is not asked about because a vote that is not its own stands under its id."""
    vote, pair = tables.votes.c, tables.pairs.c
    statement = sa.select(sa.func.count()).where(vote.reviewer_id == reviewer_id, vote.reviewer_kind != JUDGE_KIND)
    if family is not None:
        statement = statement.join_from(tables.votes, tables.pairs, pair.pair_id == vote.pair_id).where(pair.family == family)
    return int(store.database.read(lambda connection: connection.scalar(statement)) or 0)


def take_judged(store: VoteStore, reviewer_id: str, judged: Sequence[JudgedPair]) -> int:
    """Store a judge's votes under the time of now, in one transaction; returns how many are new. On each pair its first vote stays."""
    now = store.clock()
    records: list[Record] = [
        store.vote_record(Ballot(one.pair_id, reviewer_id, one.choice, 1, one.justification), now, JUDGE_KIND)
        | {"confidence": None}
        for one in judged
    ]

    def work(connection: sa.Connection) -> int:
        return tables.add_rows(connection, store.database, "vote", records)

    return store.database.write(work) if records else 0

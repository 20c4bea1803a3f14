"""Votes in the store that tests of boards start with: on responses to questions, made without random numbers."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from dtef_pipeline.preference.pairing import make_new_pairs
from dtef_pipeline.preference.vote_records import Record
from dtef_pipeline.preference.votes import Ballot, PairedResponse, VotePair, make_paired_response
from resources.settings import Settings
from resources.votes import vote_tables as tables
from resources.votes.vote_store import VoteStore, store_judge_votes

PLAYERS = ("alpha", "beta")


def written(players: Sequence[str] = PLAYERS, items: int = 60, suite: str = "made") -> list[PairedResponse]:
    """One response of each player to each item of a suite, which says whose it is; the first player's are longer."""
    return [
        make_paired_response(
            "qa",
            f"{suite}/all/{item}",
            player,
            f"{player} says {item}{' at length' * (1 + (item * 3 + place) % 4)}.",
            prompt=f"What is {item}?",
            snapshot="base",
            names=(player,),
        )
        for item in range(items)
        for place, player in enumerate(players)
    ]


def store_votes(
    votes: int, players: Sequence[str] = PLAYERS, *, suite: str = "made", reviewers: int = 6, reviewer_kind: str = "person"
) -> None:
    """So many votes on pairs of these players, of people in turn or of one judge. People prefer the earlier player two times of three,
    the judge the later one."""
    with VoteStore(Settings.read_environment().responses_url) as store:
        responses = written(players, -(-votes // (len(players) - 1)), suite)
        by_id = {one.response_id: one for one in responses}
        pairs = make_new_pairs(responses, per_item=len(players) - 1)
        store.add_pairs(responses, pairs, user="test")
        # Ids of pairs are keyed by a salt of the store, so that their order is another one in each.
        stored = sorted(store.pairs(), key=lambda pair: (pair.left, pair.right))
        known = [pair for pair in stored if pair.left in by_id][:votes]
        records = [_vote(store, pair, by_id, players, at, reviewers, reviewer_kind) for at, pair in enumerate(known)]

        def add(connection: sa.Connection) -> int:
            return tables.add_rows(connection, store.database, "vote", records)

        assert store.database.write(add) == votes


def add_judged(model: str, settings: Sequence[str], votes: int) -> None:
    """So many votes of each variant of a model that judges, on the first pairs of the store; none says what it saw."""
    with VoteStore(Settings.read_environment().responses_url) as store:
        pairs = store.pairs()[:votes]
        for one in settings:
            ids = f"pairs({model}{one})#01234567"
            store_judge_votes(store, [Ballot(pair.pair_id, ids, "A" if at % 3 else "B", 1) for at, pair in enumerate(pairs)])


def _vote(
    store: VoteStore,
    pair: VotePair,
    by_id: dict[str, PairedResponse],
    players: Sequence[str],
    at: int,
    reviewers: int,
    reviewer_kind: str,
) -> Record:
    earlier_is_left = players.index(by_id[pair.left].player) < players.index(by_id[pair.right].player)
    prefers_earlier = ((at + at // reviewers) % 3 != 0) == (reviewer_kind == "person")
    reviewer = f"r{at % reviewers}" if reviewer_kind == "person" else "a judge"
    record = store.vote_record(Ballot(pair.pair_id, reviewer, "A", 1 + at % 5), store.clock(), reviewer_kind)
    return record | {"choice": "A" if (record["shown_as_a"] == "left") == (earlier_is_left == prefers_earlier) else "B"}

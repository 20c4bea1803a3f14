"""Pairs as many reviewers get them at once: the fewest votes first, not all the same, and nothing twice."""

from __future__ import annotations

from collections import Counter

import pytest

from dtef_pipeline.errors import UnknownPair
from dtef_pipeline.preference.pairing import make_new_pairs
from dtef_pipeline.preference.votes import Ballot
from resources.votes.pair_queue import WaitingPairs
from resources.votes.vote_store import VoteStore
from tests.made.voted import responses


def filled(store: VoteStore) -> list[str]:
    """The ids of 6 pairs."""
    rows = responses(4)
    store.add_pairs(rows, make_new_pairs(rows))
    return [pair.pair_id for pair in store.pairs()]


def vote(store: VoteStore, waiting: WaitingPairs, reviewer: str) -> str:
    """The next pair of the reviewer, with a vote on it."""
    pair = waiting.choose_next(reviewer)
    assert pair is not None
    store.take(Ballot(pair.pair_id, reviewer, "A", 3))
    return pair.pair_id


def test_reviewers_who_come_at_once_get_different_pairs_and_keep_them(sqlite_location: str) -> None:
    with VoteStore(sqlite_location) as store:
        every = filled(store)
        waiting = WaitingPairs(store)
        first = {f"r{place}": waiting.choose_next(f"r{place}") for place in range(80)}
        assert {pair.pair_id for pair in first.values() if pair} == set(every)
        assert {who: waiting.choose_next(who) for who in first} == first


def test_pairs_with_the_fewest_votes_come_first(sqlite_location: str) -> None:
    with VoteStore(sqlite_location) as store:
        every = filled(store)
        waiting = WaitingPairs(store)
        for turn in range(3):
            for place in range(6):
                vote(store, waiting, f"r{turn}-{place}")
        assert Counter(one.pair_id for _, one, _ in store.votes()) == dict.fromkeys(every, 3)
        assert sorted(vote(store, waiting, "all") for _ in every) == every
        assert waiting.choose_next("all") is None


def test_votes_and_pairs_of_other_processes_count(location: str) -> None:
    with VoteStore(location) as store:
        every = filled(store)
        waiting = WaitingPairs(store)
        assert waiting.choose_next("r1")
        for pair_id in every[:5]:
            store.take(Ballot(pair_id, "elsewhere", "A", 3))
        found = waiting.choose_next("r2")
        assert found
        assert found.pair_id == every[5]
        for pair_id in every:
            store.take(Ballot(pair_id, "r3", "A", 3))
        assert waiting.choose_next("r3") is None
        rows = responses(2, items=2)
        store.add_pairs(rows, make_new_pairs(rows, store.pairs()))
        assert waiting.choose_next("r3")


def test_pairs_for_later_come_last_in_their_order(sqlite_location: str) -> None:
    with VoteStore(sqlite_location) as store:
        every = filled(store)
        waiting = WaitingPairs(store)
        later = (every[2], "0" * 32, every[0])
        seen = []
        while (pair := waiting.choose_next("r1", later=later)) is not None:
            seen.append(pair.pair_id)
            store.take(Ballot(pair.pair_id, "r1", "A", 3))
        assert sorted(seen[:4]) == [one for one in every if one not in later]
        assert seen[4:] == [every[2], every[0]]
        first = waiting.choose_next("r2")
        assert first
        other = waiting.choose_next("r2", later=(first.pair_id,))
        assert other
        assert other.pair_id != first.pair_id
        assert waiting.pair(first.pair_id) == first
        with pytest.raises(UnknownPair, match="there is no pair"):
            waiting.pair("0" * 32)


def test_how_far_a_reviewer_is(sqlite_location: str) -> None:
    with VoteStore(sqlite_location) as store:
        filled(store)
        waiting = WaitingPairs(store)
        assert waiting.progress("r1") == (0, 6, True)
        vote(store, waiting, "r1")
        vote(store, waiting, "r2")
        assert waiting.progress("r1") == (1, 5, True)
        rows = responses(8, 2)
        store.add_pairs(rows, make_new_pairs(rows, store.pairs()))
        assert waiting.progress("r1") == (1, 2 * 28 - 1, False)

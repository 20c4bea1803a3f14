"""The next pair for a reviewer, in a process that serves many reviewers.

Pairs with the fewest votes come first, as in `VoteStore.waiting`. A pair that a reviewer holds counts as one vote more, so that
simultaneous reviewers get different pairs.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from dtef_pipeline.errors import UnknownPair
from dtef_pipeline.identity import normalize_text
from dtef_pipeline.judging.hidden_names import Blinding
from dtef_pipeline.preference.pairing import BlindedPair
from resources.votes.vote_queries import build_waiting_query
from resources.votes.vote_store import VoteStore
from resources.votes.vote_tables import LEFT_SIDE, RIGHT_SIDE, join_sides, paired_responses, pairs, votes

LayOut = Callable[[str, BlindedPair], BlindedPair]
"""Returns the layout of a family's pairs for readers, given the family's name."""
_IN_HAND_S = 600.0
"""Seconds for which a served pair counts as being voted on by its reviewer."""
_MOST_IN_HAND = 20_000
_COUNTED_EXACTLY = 20


class ReviewerProgress(NamedTuple):
    """A reviewer's progress."""

    voted: int
    """Number of pairs with a vote of the reviewer, void ones included: a pair is voted on once."""
    left: int
    is_exact: bool
    """Whether `left` is exact; otherwise some of the remaining pairs may have equal texts and are not served."""


class _HeldPair(NamedTuple):
    pair_id: str
    until: float
    """Time of the clock."""


class WaitingPairs:
    """The pairs of a store as reviewers get them. Thread-safe."""

    def __init__(
        self, store: VoteStore, lay_out: LayOut = lambda family, pair: pair, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock`: seconds from any moment on, never going back."""
        self._store, self._lay_out, self._clock = store, lay_out, clock
        self._lock = threading.Lock()
        self._in_hand: OrderedDict[tuple[str, str | None], _HeldPair] = OrderedDict()
        self._n_known = -1
        self._names: Blinding | None = None
        self._alike: set[str] = set()
        """Ids of pairs that are not served, because their texts are equal to a reader."""

    def choose_next(self, reviewer_id: str, family: str | None = None, later: Sequence[str] = ()) -> BlindedPair | None:
        """Return a reviewer's next pair, the same until the reviewer votes on it, or None if none is left.

        `later`: ids of pairs that come after all others, in this order. Raises StoreError if the store cannot be read.
        """
        with self._lock:
            self._refresh()
            self._release_late()
            for pair_id in self._iterate_candidates(reviewer_id, family, later):
                if (pair := self._serve_pair(pair_id)) is not None:
                    self._hold((reviewer_id, family), pair_id)
                    return pair
            return None

    def pair(self, pair_id: str) -> BlindedPair:
        """Return one pair as reviewers get it. Raises UnknownPair, and StoreError as `choose_next`."""
        with self._lock:
            self._refresh()
            if (view := self._serve_pair(pair_id)) is None:
                raise UnknownPair(f"there is no pair {pair_id[:80]!r} that is served")
            return view

    def progress(self, reviewer_id: str) -> ReviewerProgress:
        """Return how many pairs the reviewer has voted on and how many are left (exact if few). Raises StoreError as `choose_next`."""
        with self._lock:
            self._refresh()
            n_voted = self._count(votes, votes.c.reviewer_id == reviewer_id)
            ids = [row["pair_id"] for row in self._store.rows(build_waiting_query(reviewer_id))]
            ids = [pair_id for pair_id in ids if pair_id not in self._alike]
            is_exact = len(ids) <= _COUNTED_EXACTLY
            number = sum(self._serve_pair(pair_id) is not None for pair_id in ids) if is_exact else len(ids)
            return ReviewerProgress(n_voted, number, is_exact)

    def release(self, pair_id: str, reviewer_id: str) -> None:
        """Release a pair after the store has taken a vote on it."""
        with self._lock:
            for key in [key for key, hold in self._in_hand.items() if key[0] == reviewer_id and hold.pair_id == pair_id]:
                del self._in_hand[key]

    def _iterate_candidates(self, reviewer_id: str, family: str | None, later: Sequence[str]) -> Iterator[str]:
        """Yield pairs without the reviewer's vote: first the held one, then by votes and reviewers holding them, then `later`."""
        n_votes = {row["pair_id"]: row["n_votes"] for row in self._store.rows(build_waiting_query(reviewer_id, family))}
        n_in_hand = Counter(hold.pair_id for hold in self._in_hand.values())
        last, hold = frozenset(later), self._in_hand.get((reviewer_id, family))
        if hold and hold.pair_id in n_votes and hold.pair_id not in last:
            yield hold.pair_id
        # Pairs with the same number of votes keep the order of the query.
        ids = sorted(n_votes, key=lambda pair_id: n_votes[pair_id] + n_in_hand[pair_id])
        yield from (pair_id for pair_id in ids if pair_id not in last)
        yield from (pair_id for pair_id in later if pair_id in n_votes)

    def _serve_pair(self, pair_id: str) -> BlindedPair | None:
        """Return the pair as a reviewer gets it, or None if it does not exist or its texts read alike."""
        if pair_id in self._alike:
            return None
        rows = self._store.rows(join_sides(sa.select(pairs.c.family)).where(pairs.c.pair_id == pair_id))
        if not rows:
            return None
        pair = self._store.reviewer_view(pair_id, self._names)
        if normalize_text(pair.run_a) == normalize_text(pair.run_b):
            self._alike.add(pair_id)
            return None
        return self._lay_out(rows[0]["family"], pair)

    def _refresh(self) -> None:
        """Read names and texts again if there are more responses or pairs, which are never changed or removed."""
        n_known = self._count(paired_responses) + self._count(pairs)
        if n_known != self._n_known:
            same_texts = join_sides(sa.select(pairs.c.pair_id)).where(LEFT_SIDE.c.text == RIGHT_SIDE.c.text)
            self._alike = {row["pair_id"] for row in self._store.rows(same_texts)}
            self._n_known, self._names = n_known, self._store.hidden_names()

    def _count(self, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
        (row,) = self._store.rows(sa.select(sa.func.count().label("n")).select_from(table).where(*conditions))
        return int(row["n"])

    def _hold(self, key: tuple[str, str | None], pair_id: str) -> None:
        self._in_hand.pop(key, None)
        if len(self._in_hand) >= _MOST_IN_HAND:
            self._in_hand.popitem(last=False)
        self._in_hand[key] = _HeldPair(pair_id, self._clock() + _IN_HAND_S)

    def _release_late(self) -> None:
        now = self._clock()
        while self._in_hand and next(iter(self._in_hand.values())).until <= now:
            self._in_hand.popitem(last=False)

"""Which pair a reviewer gets next, for a process that serves many reviewers: the order is kept in memory, and the database is asked for little.

Pairs with the fewest votes come first, as of `VoteStore.waiting`. A pair that somebody has in hand counts as if it had a vote more, so that
reviewers who come at the same time get different pairs.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left, insort
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

import sqlalchemy as sa

from dtef_pipeline.errors import UnknownPair
from dtef_pipeline.identity import normalize_text
from dtef_pipeline.judging.hidden_names import Blinding
from dtef_pipeline.preference.pair_blinding import BlindedPair
from resources.votes.vote_store import VoteStore
from resources.votes.vote_tables import LEFT_SIDE, RIGHT_SIDE, join_sides, paired_responses, pairs, votes

LayOut = Callable[[str, BlindedPair], BlindedPair]
"""How people read a pair of a family, given the name of the family."""
_LOOKED_AT_EVERY_S = 1.0
"""How often the database is asked whether another process has added something."""
_IN_HAND_S = 600.0
"""How long a reviewer is expected to vote on the pair that was served last."""
_MOST_IN_HAND = 20_000
_COUNTED_EXACTLY = 20
_MOST_CHARACTERS_KEPT = 20_000_000
_PAIRS_TOGETHER = (20, 200, 2_000)
"""How many pairs are looked through together, the last number again and again."""


class ReviewerProgress(NamedTuple):
    """How far a reviewer is."""

    voted: int
    """Pairs with a vote of the reviewer, a voided one too: a pair is voted on once."""
    left: int
    is_exact: bool
    """False: of those left, some may turn out to have texts that read alike, and are not served."""


class _Counts(NamedTuple):
    """How much there is: nothing is ever changed or taken away, so that these tell whether something is new."""

    responses: int
    pairs: int
    votes: int


class _HeldPair(NamedTuple):
    pair_id: str
    until: float
    """Of the clock."""


class WaitingPairs:
    """The pairs of a store as reviewers get them. Safe to use from several threads."""

    def __init__(
        self, store: VoteStore, lay_out: LayOut = lambda family, pair: pair, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock`: seconds from any moment on, which never go back."""
        self._store, self._lay_out, self._clock = store, lay_out, clock
        self._lock = threading.Lock()
        self._known = _Counts(-1, -1, -1)
        self._looked_at = -math.inf
        self._order = _Order({}, {})
        self._in_hand: OrderedDict[tuple[str, str | None], _HeldPair] = OrderedDict()
        self._names: Blinding | None = None
        self._kept = _PairCache()

    def choose_next(self, reviewer_id: str, family: str | None = None, later: Sequence[str] = ()) -> BlindedPair | None:
        """The next pair for a reviewer, the same one until the reviewer votes on it; None: there is none left.

        `later`: ids of pairs that come after all others, in this order. Raises StoreError when the store cannot be read.
        """
        with self._lock:
            self._refresh(self._clock() - self._looked_at >= _LOOKED_AT_EVERY_S)
            pair = self._choose_pair(reviewer_id, family, later)
            if pair is None and self._refresh(True):
                pair = self._choose_pair(reviewer_id, family, later)
            return pair

    def pair(self, pair_id: str) -> BlindedPair:
        """One pair as reviewers get it. Raises UnknownPair, and StoreError as `choose_next`."""
        with self._lock:
            self._refresh(pair_id not in self._order.family_of)
            if (view := self._serve_pair(pair_id)) is None:
                raise UnknownPair(f"there is no pair {pair_id[:80]!r} that is served")
            return view

    def progress(self, reviewer_id: str) -> ReviewerProgress:
        """How many pairs the reviewer has voted on, and how many are left: exactly, where few are. Raises StoreError as `choose_next`."""
        with self._lock:
            self._refresh(self._clock() - self._looked_at >= _LOOKED_AT_EVERY_S)
            statement = sa.select(votes.c.pair_id).where(votes.c.reviewer_id == reviewer_id)
            own_ids = set(self._store.database.read(lambda connection: connection.scalars(statement).all()))
            ids = [pair_id for pair_id in self._order.family_of if pair_id not in own_ids and pair_id not in self._kept.alike]
            is_exact = len(ids) <= _COUNTED_EXACTLY
            number = sum(self._serve_pair(pair_id) is not None for pair_id in ids) if is_exact else len(ids)
            return ReviewerProgress(len(own_ids), number, is_exact)

    def voted(self, pair_id: str, reviewer_id: str) -> None:
        """Count a vote that the store has taken."""
        with self._lock:
            for key in ((reviewer_id, None), (reviewer_id, self._order.family_of.get(pair_id))):
                if key in self._in_hand and self._in_hand[key].pair_id == pair_id:
                    self._release_pair(key)
            if pair_id in self._order.family_of:
                self._order.count(pair_id, votes=1)
            self._known = self._known._replace(votes=self._known.votes + 1)

    def refresh_pairs(self) -> None:
        """Ask the database with the next pair, since this process has added something."""
        with self._lock:
            self._looked_at = -math.inf

    def _refresh(self, is_due: bool) -> bool:
        """Bring in what is new, if the database is asked at all; returns whether anything is."""
        if not is_due and self._known.pairs >= 0:
            return False
        database, before = self._store.database, self._known
        now = database.read(_read_counts)
        if now.responses != before.responses:
            self._names, self._kept = self._store.hidden_names(), _PairCache()
        if now != before:
            family_of = self._order.family_of if now.pairs == before.pairs else database.read(_read_families)
            self._order = _Order(family_of, database.read(_count_votes_by_pair))
            for entry in self._in_hand.values():
                self._order.count(entry.pair_id, in_hand=1)
        self._known, self._looked_at = now, self._clock()
        return now != before

    def _choose_pair(self, reviewer_id: str, family: str | None, later: Sequence[str]) -> BlindedPair | None:
        self._release_late()
        hold, last = self._in_hand.get((reviewer_id, family)), frozenset(later)
        first = [hold.pair_id] if hold and hold.pair_id not in last else []
        ids = (candidate for candidate in self._order.ids(family) if candidate not in last)
        for chunk in _split_growing(chain(ids, self._order.only(later, family)), first):
            voted_ids = self._find_voted(reviewer_id, chunk)
            for pair_id in chunk:
                if pair_id not in voted_ids and (pair := self._serve_pair(pair_id)) is not None:
                    self._hold((reviewer_id, family), pair_id)
                    return pair
        return None

    def _find_voted(self, reviewer_id: str, pair_ids: Sequence[str]) -> set[str]:
        database, vote = self._store.database, votes.c
        statement = sa.select(vote.pair_id).where(vote.reviewer_id == reviewer_id, vote.pair_id.in_(database.listed))
        return set(database.read(lambda connection: connection.scalars(statement, database.keys(pair_ids)).all()))

    def _serve_pair(self, pair_id: str) -> BlindedPair | None:
        """The pair as a reviewer gets it; None: its texts read alike."""
        if pair_id not in self._order.family_of or pair_id in self._kept.alike:
            return None
        if (hit := self._kept.get(pair_id)) is not None:
            return hit
        pair = self._store.reviewer_view(pair_id, self._names)
        if normalize_text(pair.run_a) == normalize_text(pair.run_b):
            self._kept.alike.add(pair_id)
            return None
        return self._kept.keep(self._lay_out(self._order.family_of[pair_id], pair))

    def _hold(self, key: tuple[str, str | None], pair_id: str) -> None:
        if key in self._in_hand:
            self._release_pair(key)
        if len(self._in_hand) >= _MOST_IN_HAND:
            self._release_pair(next(iter(self._in_hand)))
        self._in_hand[key] = _HeldPair(pair_id, self._clock() + _IN_HAND_S)
        self._order.count(pair_id, in_hand=1)

    def _release_pair(self, key: tuple[str, str | None]) -> None:
        self._order.count(self._in_hand.pop(key).pair_id, in_hand=-1)

    def _release_late(self) -> None:
        now = self._clock()
        while self._in_hand and next(iter(self._in_hand.values())).until <= now:
            self._release_pair(next(iter(self._in_hand)))


class _Order:
    """The pairs by how many votes they have or are about to have, then by how many they have, then by id."""

    def __init__(self, family_of: Mapping[str, str], votes_by_pair: Mapping[str, int]) -> None:
        self.family_of = family_of
        self._votes = Counter({pair_id: votes_by_pair.get(pair_id, 0) for pair_id in family_of})
        self._in_hand: Counter[str] = Counter()
        self._shelves: dict[int, list[tuple[int, str]]] = {}
        for pair_id, count in sorted(self._votes.items()):
            self._shelves.setdefault(count, []).append((count, pair_id))

    def count(self, pair_id: str, *, votes: int = 0, in_hand: int = 0) -> None:
        """Add to the votes that the pair has, and to the reviewers who have it in hand."""
        if pair_id not in self.family_of:
            return
        place, shelf = self._find_place(pair_id)
        shelf.pop(bisect_left(shelf, place))
        self._votes[pair_id] += votes
        self._in_hand[pair_id] = max(0, self._in_hand[pair_id] + in_hand)
        place, shelf = self._find_place(pair_id)
        insort(shelf, place)

    def ids(self, family: str | None) -> Iterator[str]:
        """All pairs in their order; of one family only, if it is named."""
        for number in sorted(self._shelves):
            yield from (pair_id for _, pair_id in self._shelves[number] if family is None or self.family_of[pair_id] == family)

    def only(self, ids: Iterable[str], family: str | None) -> list[str]:
        """Those of the ids that are of pairs there are, in the order given; of one family only, if it is named."""
        return [pair_id for pair_id in ids if pair_id in self.family_of and family in (None, self.family_of[pair_id])]

    def _find_place(self, pair_id: str) -> tuple[tuple[int, str], list[tuple[int, str]]]:
        has = self._votes[pair_id]
        return (has, pair_id), self._shelves.setdefault(has + self._in_hand[pair_id], [])


class _PairCache:
    """Pairs that were served lately, as long as they have few characters together."""

    def __init__(self) -> None:
        self.alike: set[str] = set()
        """Ids of pairs that are not served, because their texts read alike."""
        self._pairs: OrderedDict[str, BlindedPair] = OrderedDict()
        self._characters = 0

    def get(self, pair_id: str) -> BlindedPair | None:
        if (pair := self._pairs.get(pair_id)) is not None:
            self._pairs.move_to_end(pair_id)
        return pair

    def keep(self, pair: BlindedPair) -> BlindedPair:
        self._pairs[pair.pair_id] = pair
        self._characters += sum(map(len, pair))
        while self._characters > _MOST_CHARACTERS_KEPT:
            self._characters -= sum(map(len, self._pairs.popitem(last=False)[1]))
        return pair


def _split_growing(ids: Iterator[str], first: Sequence[str]) -> Iterator[Sequence[str]]:
    """The ids in pieces that grow, `first` before them."""
    sizes = iter(_PAIRS_TOGETHER)
    chunk = [*first, *islice(ids, _PAIRS_TOGETHER[0])]
    while chunk:
        yield chunk
        chunk = list(islice(ids, next(sizes, _PAIRS_TOGETHER[-1])))


def _read_counts(connection: sa.Connection) -> _Counts:
    counts = (sa.select(sa.func.count()).select_from(table).scalar_subquery() for table in (paired_responses, pairs, votes))
    return _Counts(*connection.execute(sa.select(*counts)).one())


def _read_families(connection: sa.Connection) -> dict[str, str]:
    """The family of each pair that has two different texts, by its id."""
    statement = join_sides(sa.select(pairs.c.pair_id, pairs.c.family)).where(LEFT_SIDE.c.text != RIGHT_SIDE.c.text)
    return dict(connection.execute(statement).all())


def _count_votes_by_pair(connection: sa.Connection) -> dict[str, int]:
    statement = sa.select(votes.c.pair_id, sa.func.count()).group_by(votes.c.pair_id)
    return dict(connection.execute(statement).all())

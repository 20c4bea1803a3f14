"""Who was compared with whom: pairs of responses by their players, how often they were voted on, and for whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from dtef_pipeline.preference.score_columns import EVERY_PARTITION, PREFERENCE_MET


class PlayersPair(NamedTuple):
    """A stored pair, of players."""

    pair_id: str
    family: str
    item_id: str
    left: str
    """A player, here and below."""
    right: str
    leak_risk: bool


class CastVote(NamedTuple):
    """A stored vote on a pair, voided or not."""

    pair_id: str
    judge: str | None
    """The reviewer's id; None: a person voted."""
    preferred: Literal["left", "right", "tie"]
    is_void: bool


@dataclass(slots=True)
class _PairCounts:
    """What two players have in a partition; votes by judge, those of people under None."""

    n_pairs: int = 0
    n_leak_risk: int = 0
    counted: dict[str | None, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))


_Partition = tuple[str, str]
"""Family and partition."""
_VOTES_MET = ("n_voted", "n_votes", "for_player", "for_other", "n_ties", "n_votes_leak_risk", "n_void")


def count_meetings(pairs: Iterable[PlayersPair], votes: Iterable[CastVote]) -> pa.Table:
    """`PREFERENCE_MET` of all pairs and votes of a store; without pairs no rows. Votes on pairs that are not there are passed over."""
    votes_by_pair: dict[str, list[CastVote]] = defaultdict(list)
    for vote in votes:
        votes_by_pair[vote.pair_id].append(vote)
    counts: dict[_Partition, dict[tuple[str, str], _PairCounts]] = defaultdict(lambda: defaultdict(_PairCounts))
    for pair in pairs:
        first, second = sorted((pair.left, pair.right))
        for partition in _list_partitions(pair.item_id):
            _count(counts[pair.family, partition][first, second], pair, first, votes_by_pair[pair.pair_id])
    rows = [row for key in sorted(counts, key=_sort_key) for row in _build_rows(key, counts[key])]
    return pa.Table.from_pylist(rows, schema=PREFERENCE_MET)


def _sort_key(key: _Partition) -> tuple[str, bool, str]:
    """Whole families stand before their partitions."""
    return key[0], key[1] != EVERY_PARTITION, key[1]


def _build_rows(key: _Partition, meetings: Mapping[tuple[str, str], _PairCounts]) -> Iterator[dict[str, Any]]:
    """One row per two players of people, and of each judge that voted there."""
    judges = sorted({judge for total in meetings.values() for judge in total.counted if judge is not None})
    for judge in (None, *judges):
        who = {"family": key[0], "partition": key[1], "reviewer_kind": "person" if judge is None else "judge", "judge": judge}
        for (player, opponent), total in sorted(meetings.items(), key=lambda pair: pair[0]):
            votes = total.counted[judge]
            counts = {"n_pairs": total.n_pairs, "n_leak_risk": total.n_leak_risk, **{name: votes[name] for name in _VOTES_MET}}
            yield {**who, "player": player, "other": opponent, **counts}


def _list_partitions(item_id: str) -> list[str]:
    """The whole family, and the first level of the item's partition, where it has one: as scores have them."""
    first, has_partition, _ = item_id.partition("/")
    return [EVERY_PARTITION, *([first] if has_partition and first != EVERY_PARTITION else [])]


def _count(counts: _PairCounts, pair: PlayersPair, first: str, votes: list[CastVote]) -> None:
    counts.n_pairs += 1
    counts.n_leak_risk += pair.leak_risk
    for judge in {vote.judge for vote in votes if not vote.is_void}:
        counts.counted[judge]["n_voted"] += 1
    for vote in votes:
        judge_counts = counts.counted[vote.judge]
        if vote.is_void:
            judge_counts["n_void"] += 1
            continue
        judge_counts["n_votes"] += 1
        judge_counts["n_votes_leak_risk"] += pair.leak_risk
        judge_counts[_classify_vote(vote, pair, first)] += 1


def _classify_vote(vote: CastVote, pair: PlayersPair, first: str) -> str:
    if vote.preferred == "tie":
        return "n_ties"
    better = pair.left if vote.preferred == "left" else pair.right
    return "for_player" if better == first else "for_other"

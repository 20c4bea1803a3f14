"""Who was compared with whom: pairs of responses by their players, how often they were voted on, and for whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from dtef_pipeline.preference.score_columns import EVERY_PARTITION, PREFERENCE_MET
from dtef_pipeline.preference.votes import REVIEWER_KINDS


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
    reviewer_kind: str
    preferred: Literal["left", "right", "tie"]
    is_void: bool


@dataclass(slots=True)
class _Met:
    """What two players have in a partition; votes by kind of reviewers."""

    n_pairs: int = 0
    n_leak_risk: int = 0
    counted: dict[str, dict[str, int]] = field(default_factory=lambda: {kind: defaultdict(int) for kind in REVIEWER_KINDS})


_COUNTED = ("n_voted", "n_votes", "for_player", "for_other", "n_ties", "n_votes_leak_risk", "n_void")


def who_met(pairs: Iterable[PlayersPair], votes: Iterable[CastVote]) -> pa.Table:
    """`PREFERENCE_MET` of all pairs and votes of a store; without pairs no rows. Votes on pairs that are not there are passed over."""
    said: dict[str, list[CastVote]] = defaultdict(list)
    for vote in votes:
        said[vote.pair_id].append(vote)
    found: dict[tuple[str, str, str, str], _Met] = defaultdict(_Met)
    for pair in pairs:
        first, second = sorted((pair.left, pair.right))
        for partition in _partitions(pair.item_id):
            _count(found[pair.family, partition, first, second], pair, first, said[pair.pair_id])
    rows = [
        {**_named(key, kind), "n_pairs": met.n_pairs, "n_leak_risk": met.n_leak_risk, **_numbers(met.counted[kind])}
        for key, met in sorted(found.items(), key=lambda one: (one[0][0], one[0][1] != EVERY_PARTITION, one[0]))
        for kind in REVIEWER_KINDS
    ]
    return pa.Table.from_pylist(rows, schema=PREFERENCE_MET)


def _partitions(item_id: str) -> list[str]:
    """The whole family, and the first level of the item's partition, where it has one: as scores have them."""
    first, has_partition, _ = item_id.partition("/")
    return [EVERY_PARTITION, *([first] if has_partition and first != EVERY_PARTITION else [])]


def _count(met: _Met, pair: PlayersPair, first: str, votes: list[CastVote]) -> None:
    met.n_pairs += 1
    met.n_leak_risk += pair.leak_risk
    for kind in {vote.reviewer_kind for vote in votes if not vote.is_void}:
        met.counted[kind]["n_voted"] += 1
    for vote in votes:
        own = met.counted[vote.reviewer_kind]
        if vote.is_void:
            own["n_void"] += 1
            continue
        own["n_votes"] += 1
        own["n_votes_leak_risk"] += pair.leak_risk
        if vote.preferred == "tie":
            own["n_ties"] += 1
        else:
            own["for_player" if getattr(pair, vote.preferred) == first else "for_other"] += 1


def _named(key: tuple[str, str, str, str], kind: str) -> dict[str, Any]:
    family, partition, player, other = key
    return {"family": family, "partition": partition, "reviewer_kind": kind, "player": player, "other": other}


def _numbers(counted: dict[str, int]) -> dict[str, int]:
    return {name: counted[name] for name in _COUNTED}

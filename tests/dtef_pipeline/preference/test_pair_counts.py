"""Who was compared with whom: counted by hand."""

from __future__ import annotations

from dtef_pipeline.preference.pair_counts import CastVote, PlayersPair, count_meetings
from dtef_pipeline.preference.score_columns import PREFERENCE_MET

_MET_PAIRS = [
    PlayersPair("p1", "qa", "mmlu/anatomy/1", "fox", "owl", False),
    PlayersPair("p2", "qa", "mmlu/anatomy/2", "owl", "fox", True),
    PlayersPair("p3", "qa", "gsm8k/all/1", "fox", "hen", False),
    PlayersPair("p4", "elsewhere", "letter-1", "fox", "owl", False),
]
_MET_VOTES = [
    CastVote("p1", None, "left", False),
    CastVote("p1", None, "tie", False),
    CastVote("p2", None, "left", False),
    CastVote("p2", None, "right", True),
    CastVote("p2", "pairs(x)", "right", False),
    CastVote("p3", None, "right", True),
    CastVote("gone", None, "right", False),
]


def _met(family: str, partition: str, kind: str) -> dict[tuple[str, str], tuple[int, ...]]:
    table = count_meetings(_MET_PAIRS, _MET_VOTES)
    assert table.schema == PREFERENCE_MET
    rows = [
        row for row in table.to_pylist() if (row["family"], row["partition"], row["reviewer_kind"]) == (family, partition, kind)
    ]
    return {(row["player"], row["other"]): tuple(row.values())[6:] for row in rows}


def test_pairs_are_counted_by_players_whichever_stood_left() -> None:
    # pairs, with a leak risk, with a vote; votes, for the first, for the other, ties, with a leak risk, void
    assert _met("qa", "mmlu", "person") == {("fox", "owl"): (2, 1, 2, 3, 1, 1, 1, 1, 1)}
    assert _met("qa", "mmlu", "judge") == {("fox", "owl"): (2, 1, 1, 1, 1, 0, 0, 1, 0)}


def test_a_voided_vote_counts_nowhere_else() -> None:
    assert _met("qa", "gsm8k", "person") == {("fox", "hen"): (1, 0, 0, 0, 0, 0, 0, 0, 1)}


def test_a_pair_without_votes_is_there_and_an_item_without_partition_stands_in_the_whole_family_alone() -> None:
    assert _met("elsewhere", "all", "person") == {("fox", "owl"): (1, 0, 0, 0, 0, 0, 0, 0, 0)}
    assert set(count_meetings(_MET_PAIRS, [])["partition"].to_pylist()) == {"all", "mmlu", "gsm8k"}
    assert not len(count_meetings([], []))

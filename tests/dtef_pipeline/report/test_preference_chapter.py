"""The chapter on human preference: each fit apart, with what holds of it in words, and beside metrics of the family."""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb
import pytest

from dtef_pipeline.preference.paired_source import MetricSource
from dtef_pipeline.preference.published_scores import preference_scores
from dtef_pipeline.preference.votes import PlayersVote
from dtef_pipeline.preference.who_met import CastVote, PlayersPair, who_met
from dtef_pipeline.report.preference_chapter import preference_chapters

_SCORED = MetricSource(
    ("scored",),
    "SELECT 'mmlu' AS partition, 'accuracy' AS metric, player, 'higher' AS direction, value, NULL AS low, NULL AS high, 9 AS n FROM scored",
)


def _voted(
    left: str, right: str, preferred: str, reviewer: str, kind: str = "person", item: str = "mmlu/anatomy/1"
) -> PlayersVote:
    assert preferred in ("left", "right", "tie")
    return PlayersVote("qa", item, left, right, preferred, reviewer, kind, None, False, 9, 5)  # type: ignore[arg-type]


def _connected(votes: Sequence[PlayersVote]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("preference_scores", preference_scores(votes))
    pairs = [PlayersPair(str(at), one.family, one.item_id, one.left, one.right, at == 0) for at, one in enumerate(votes)]
    cast = [
        CastVote(str(at), one.reviewer_id if one.reviewer_kind == "judge" else None, one.preferred, False)
        for at, one in enumerate(votes)
    ]
    connection.register("preference_met", who_met(pairs, cast))
    connection.execute(
        "CREATE TABLE scored AS SELECT * FROM (VALUES ('fox', 0.9), ('owl', 0.5), ('hen', 0.1)) t(player, value)"
    )
    return connection


def _words(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", re.sub("</?(bdi|wbr)>", "", markup)).split())


def _chapter(votes: Sequence[PlayersVote]) -> str:
    (found,) = preference_chapters(_connected(votes), "qa", [_SCORED])
    assert (found.anchor, found.title) == ("preference", "Human preference")
    return _words(found.markup)


_ROUND_ROBIN = [
    _voted(left, right, preferred, f"r{at}")
    for at in range(6)
    for left, right, preferred in (
        ("fox", "owl", "left" if at else "right"),
        ("owl", "hen", "left" if at else "tie"),
        ("hen", "fox", "right"),
    )
]


def test_a_family_without_votes_has_no_chapter_unless_it_is_always_there() -> None:
    nothing = duckdb.connect()
    assert preference_chapters(nothing, "qa", [_SCORED]) == []
    assert preference_chapters(_connected(_ROUND_ROBIN), "games", [_SCORED]) == []
    (begins,) = preference_chapters(nothing, "games", [_SCORED], always=True)
    assert "No votes yet: dtef preference pairs makes pairs" in _words(begins.markup)


def test_a_fit_is_shown_with_its_options_its_pairs_and_the_order_by_metrics() -> None:
    said = _chapter(_ROUND_ROBIN)
    for one in (
        "18 votes of 6 reviewers, worth 6.0 equally busy ones. How they count: a tie is half a win of each player; every vote counts 1;",
        "The longer text was preferred in",
        "18 pairs of responses, 18 with a vote that counts; a name stood in the texts of 1, with 1 vote; 0 voided votes.",
        "accuracy 3 1.000 fox fox no interval: 3 players, at least 8 are needed",
        "5 of 6",  # fox against owl
        "5.5 of 6",  # owl against hen, with one tie
    ):
        assert one in said, one


@pytest.mark.parametrize("name", ["</script><b>fox", "\u202efox", "fox\0"])
def test_names_of_players_are_text(name: str) -> None:
    (found,) = preference_chapters(_connected([_voted(name, "owl", "left", "r1")]), "qa", [_SCORED])
    assert "<b>" not in found.markup

"""The table of scores from all votes: a fit for each family, partition and kind of reviewers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.preference.fitted import fit_votes
from dtef_pipeline.preference.published_scores import position, preference_scores
from dtef_pipeline.preference.score_columns import PREFERENCE_SCORES
from dtef_pipeline.preference.stored_votes import columns_of_votes, version_of_votes, votes_on_items
from dtef_pipeline.preference.votes import PlayersVote

VOTE = PlayersVote("qa", "s/all/1", "a", "b", "left", "r", "person", 3, False, 10, 20)
KEY = "0123456789abcdef0123456789abcdef"


def said(shown: str, swapped: str) -> PlayersVote:
    words = f"[shown {shown} by {KEY}] [swapped {swapped} by {KEY}] Because."
    return replace(VOTE, reviewer_kind="judge", justification=words)


def votes() -> list[PlayersVote]:
    sides = ("left", "right", "tie", "left")
    return [
        replace(
            VOTE,
            item_id=f"{'st'[at % 2]}/all/{at}",
            preferred=sides[at % 4],
            reviewer_id=f"r{at % 7}",
            left=f"p{at % 3}",
            right="q",
        )  # type: ignore[arg-type]
        for at in range(84)
    ]


def test_every_fit_is_that_of_its_own_votes() -> None:
    people = votes()
    judged = [replace(one, reviewer_kind="judge", reviewer_id="j") for one in people[:40]]
    elsewhere = [replace(one, family="elsewhere", item_id="7") for one in people]
    table = preference_scores([*judged, *people, *elsewhere])
    assert table.schema == PREFERENCE_SCORES
    rows = table.to_pylist()
    groups = list(dict.fromkeys((row["family"], row["partition"], row["reviewer_kind"]) for row in rows))
    assert groups == [
        ("elsewhere", "all", "person"),
        *(("qa", "all", kind) for kind in ("judge", "person")),
        *(("qa", part, kind) for part in "st" for kind in ("judge", "person")),
    ]
    own = fit_votes(columns_of_votes("s", votes_on_items(people, ["s/*"])))
    found = {
        row["player"]: row for row in rows if (row["family"], row["partition"], row["reviewer_kind"]) == ("qa", "s", "person")
    }
    for score in own.scores:
        row = found[score.model]
        assert (row["beta"], row["low"], row["se"]) == pytest.approx((score.beta, score.low, score.se))
        assert (row["rank"], row["tier"], row["n_votes"], row["n_reviewers"]) == (
            score.rank,
            score.tier,
            score.n,
            score.n_reviewers,
        )
        assert (row["votes"], row["ties"], row["prior_l2"], row["weight"], row["degrees"]) == (
            42,
            "half",
            None,
            None,
            "reviewers",
        )
    assert {row["votes_version"] for row in rows} == {version_of_votes([*people, *judged, *elsewhere])}


def test_without_votes_there_are_no_rows() -> None:
    assert len(preference_scores([])) == 0


def test_flips_and_places_are_counted_of_judges_alone() -> None:
    looks = [said("A", "A"), said("A", "B"), said("tie", "tie"), said("tie", "B")]
    assert position(looks) == {"flip_rate": 0.5, "first_share": 0.6}
    assert position([replace(one, reviewer_kind="person") for one in looks]) == {"flip_rate": None, "first_share": None}
    assert position([said("tie", "tie")]) == {"flip_rate": 0.0, "first_share": None}


@given(st.permutations(range(6)), st.integers(0, 5))
def test_the_version_knows_every_vote_and_not_their_order(order: list[int], changed: int) -> None:
    some = votes()[:6]
    assert version_of_votes([some[at] for at in order]) == version_of_votes(some)
    other = [replace(one, confidence=4) if at == changed else one for at, one in enumerate(some)]
    assert version_of_votes(other) != version_of_votes(some) != version_of_votes(some[1:])

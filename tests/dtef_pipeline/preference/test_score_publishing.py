"""The table of scores from all votes, and its agreement with metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from dtef_pipeline.preference.pair_verdicts import is_own_pair
from dtef_pipeline.preference.score_columns import PREFERENCE_SCORES
from dtef_pipeline.preference.score_publishing import (
    AGREEMENT_COLUMNS,
    compare_with_metrics,
    compute_position_bias,
    convert_judge_scores,
    preference_scores,
)
from dtef_pipeline.preference.vote_fit import VoteSettings, build_vote_columns, compute_votes_version, filter_by_item, fit_votes
from dtef_pipeline.preference.votes import PlayersVote
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)
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
            preferred_side=sides[at % 4],
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
    own = fit_votes(build_vote_columns("s", filter_by_item(people, ["s/*"])))
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
        assert (row["votes"], row["ties"], row["prior_l2"], row["weight"]) == (42, "half", None, None)
    assert {row["votes_version"] for row in rows} == {compute_votes_version([*people, *judged, *elsewhere])}


def test_each_judge_is_a_fit_of_its_own() -> None:
    """Judges were one fit, so that a board showed the mean of a good and of a bad one."""
    judges = {f"pairs(openai/gpt-4o[temperature={heat}])#01234567": heat for heat in (0, 1)}
    for_judge = {name: "left" if heat else "right" for name, heat in judges.items()}
    some = [
        replace(said(first, other), item_id=f"s/{at}", reviewer_id=name, preferred_side=for_judge[name], confidence=None)  # type: ignore[arg-type]
        for name in judges
        for at in range(6)
        for first, other in [("A", "AB"[at % 2 and judges[name]])]
    ]
    rows = preference_scores([*votes(), *some], VoteSettings(prior_l2=1.0)).to_pylist()
    own = {(row["judge"], row["player"]): row for row in rows if row["reviewer_kind"] == "judge" and row["partition"] == "s"}
    for name, heat in judges.items():
        assert (own[name, "a"]["beta"] > 0) == bool(heat)
        assert (own[name, "a"]["votes"], own[name, "a"]["reviewers"]) == (6, 1)
        assert own[name, "a"]["flip_rate"] == pytest.approx(0.5 if heat else 1.0)
    assert {row["judge"] for row in rows if row["reviewer_kind"] == "person"} == {None}


def test_people_are_weighted_by_confidence_where_judges_are_not() -> None:
    """One vote of a judge, who gives no confidence, was enough for no board at all."""
    judged = [replace(one, reviewer_kind="judge", reviewer_id="j", confidence=None) for one in votes()[:40]]
    mixed = [replace(one, family="elsewhere", confidence=None if at else 2) for at, one in enumerate(votes())]
    rows = preference_scores([*votes(), *judged, *mixed], VoteSettings(weight="confidence")).to_pylist()
    told = {(row["family"], row["reviewer_kind"], row["weight"], row["unweighted_reason"]) for row in rows}
    assert told == {
        ("qa", "person", "confidence", None),
        ("qa", "judge", None, "judges give no confidence"),
        ("elsewhere", "person", None, "83 of 84 votes have no confidence"),
        ("elsewhere", "person", None, "41 of 42 votes have no confidence"),
        ("elsewhere", "person", None, "42 of 42 votes have no confidence"),
    }


def test_rows_say_which_votes_they_are_of_and_that_lengths_were_made_equal() -> None:
    some = [replace(one, leak_risk=at % 7 == 0, left_length=10 + at % 5) for at, one in enumerate(votes())]
    judge = {"reviewer_kind": "judge", "reviewer_id": "pairs(openai/gpt-4o)#01234567"}
    own = [replace(one, **judge, left="openai/gpt-4o-mini[temperature=0]", right="x/y") for one in votes()[1:21:2]]  # type: ignore[arg-type]
    others = [replace(one, **judge, left="x/z", right="x/y") for one in votes()[1:11:2]]  # type: ignore[arg-type]
    how = VoteSettings(control="length", items=["t/*"], without_leak_risk=True, no_own_judge=True)
    rows = preference_scores([*some, *own, *others], how).to_pylist()
    people, judged = (
        [row for row in rows if (row["reviewer_kind"], row["partition"]) == (kind, "t")] for kind in ("person", "judge")
    )
    assert {(row["votes"], row["items"], row["control"], row["leaks_left_out"]) for row in people} == {(36, "t/*", "length", 6)}
    assert all(row["length_effect"] is not None for row in people)
    assert {(row["votes"], row["self_judged"], row["self_judged_left_out"]) for row in judged} == {(5, 0, 10)}
    assert {row["partition"] for row in rows} == {"all", "t"}
    counted = preference_scores([*own, *others]).to_pylist()[0]
    assert (counted["votes"], counted["self_judged"], counted["self_judged_left_out"]) == (15, 10, 0)


@pytest.mark.parametrize(("judge", "player", "is_own"), CASES["whose_vote_is_self_judged"])
def test_whose_vote_is_self_judged(judge: str, player: str, is_own: bool) -> None:
    for sides in ((player, "q"), ("q", player)):
        assert is_own_pair(judge, *sides, {"openai/served"}) is is_own


def test_without_votes_there_are_no_rows() -> None:
    assert len(preference_scores([])) == 0


def test_flips_and_places_are_counted_of_judges_alone() -> None:
    looks = [said("A", "A"), said("A", "B"), said("tie", "tie"), said("tie", "B")]
    assert compute_position_bias(looks) == {"flip_rate": 0.5, "first_share": 0.6}
    assert compute_position_bias([replace(one, reviewer_kind="person") for one in looks]) == {
        "flip_rate": None,
        "first_share": None,
    }
    assert compute_position_bias([said("tie", "tie")]) == {"flip_rate": 0.0, "first_share": None}


@given(st.permutations(range(6)), st.integers(0, 5))
def test_the_version_knows_every_vote_and_not_their_order(order: list[int], changed: int) -> None:
    some = votes()[:6]
    assert compute_votes_version([some[at] for at in order]) == compute_votes_version(some)
    other = [replace(one, confidence=4) if at == changed else one for at, one in enumerate(some)]
    assert compute_votes_version(other) != compute_votes_version(some) != compute_votes_version(some[1:])


SCORE = {"family": "qa", "partition": "all", "reviewer_kind": "person", "judge": None, "low": None, "high": None, "n_votes": 10}


def scores(betas: Mapping[str, float | None], component: int = 0, **others: object) -> pd.DataFrame:
    rows = [{**SCORE, "player": name, "beta": beta, "component": component, **others} for name, beta in betas.items()]
    return pd.DataFrame(rows).astype({"beta": float})


def metric(values: Mapping[str, float], direction: str = "higher", name: str = "m") -> pd.DataFrame:
    of = {"partition": "x", "metric": name, "direction": direction, "low": None, "high": None, "n": 3}
    return pd.DataFrame([{**of, "player": player, "value": value} for player, value in values.items()])


def test_tau_is_that_of_scipy_over_the_players_that_both_have_and_less_can_be_better() -> None:
    rng = np.random.default_rng(3)
    betas = {f"p{at}": float(rng.normal()) for at in range(12)}
    values = {f"p{at}": float(at % 7 + rng.normal()) for at in range(2, 15)}
    found = compare_with_metrics(scores(betas), pd.concat([metric(values), metric(values, "lower", "n")]))
    assert list(found.columns) == list(AGREEMENT_COLUMNS)
    both = sorted(set(betas) & set(values))
    expected = kendalltau([betas[one] for one in both], [values[one] for one in both]).statistic
    higher, lower = (found[found["metric"] == name] for name in ("m", "n"))
    assert higher["tau"].iloc[0] == pytest.approx(expected)
    assert lower["tau"].iloc[0] == pytest.approx(-expected)
    assert set(higher["player"]) == set(both)
    assert set(higher["tau_interval"]) == {"jackknife over players, atanh"}
    assert higher["preferred_place"].tolist() == list(range(1, 11))
    best = higher.loc[higher["value"].idxmax()]
    assert best["metric_place"] == 1
    assert lower[lower["player"] == best["player"]]["metric_place"].iloc[0] == 10


def test_too_few_players_have_a_reason_in_place_of_an_interval_or_of_tau() -> None:
    three = compare_with_metrics(scores({"a": 1, "b": 0, "c": -1}), metric({"a": 3, "b": 1, "c": 2}))
    assert three["tau"].iloc[0] == pytest.approx(1 / 3)
    assert three["tau_low"].isna().all()
    assert three["tau_interval"].isna().all()
    assert "at least 8 are needed" in three["reason"].iloc[0]
    one = compare_with_metrics(scores({"a": 1, "b": None}), metric({"a": 3, "b": 1}))
    assert one["tau"].isna().all()
    assert "at least 2 players" in one["reason"].iloc[0]
    assert not len(compare_with_metrics(scores({"a": None}), metric({"a": 3})))
    assert not len(compare_with_metrics(scores({"a": 1}), metric({"b": 3})))


def test_players_of_other_components_are_left_out_and_counted() -> None:
    apart = pd.concat([scores({"a": 1, "b": -1, "c": 0}), scores({"d": 5, "e": -5}, 1)])
    found = compare_with_metrics(apart, metric({"a": 2, "b": 1, "c": 0, "d": 9, "e": 8}))
    assert set(found["player"]) == {"a", "b", "c"}
    assert "2 in other components are left out" in found["reason"].iloc[0]


def test_judges_are_a_metric_beside_people() -> None:
    both = pd.concat([scores({"a": 1, "b": -1}), scores({"a": -2, "b": 2}, reviewer_kind="judge", judge="j")])
    found = compare_with_metrics(both[both["reviewer_kind"] == "person"], convert_judge_scores(both))
    assert found["metric"].unique().tolist() == ["preference of j"]
    assert found["tau"].iloc[0] == pytest.approx(-1)

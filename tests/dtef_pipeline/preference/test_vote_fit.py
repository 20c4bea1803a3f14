"""Scores of votes are those of the shared cases, of published fits and of another program, and their intervals hold."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from benchmarks.preference_coverage import VoteWorld, coverage
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.preference.pair_verdicts import is_own_pair
from dtef_pipeline.preference.score_columns import PREFERENCE_SCORES
from dtef_pipeline.preference.score_publishing import (
    AGREEMENT_COLUMNS,
    compare_with_metrics,
    compute_position_bias,
    convert_judge_scores,
    preference_scores,
)
from dtef_pipeline.preference.vote_files import VoteColumns, read_votes
from dtef_pipeline.preference.vote_fit import (
    PreferenceFit,
    VoteSettings,
    build_vote_columns,
    compute_votes_version,
    filter_by_item,
    fit_votes,
)
from dtef_pipeline.preference.votes import PlayersVote
from dtef_pipeline.statistics.bradley_terry import fit_strengths
from dtef_pipeline.statistics.clustered_errors import estimate_errors
from tests.conftest import SHARED
from tests.made.shared_cases import case_parameters, cases_beside
from tests.made.votes import paired, votes_of

VOTES = SHARED / "votes"
needs_votes = pytest.mark.skipif(not VOTES.is_dir(), reason=f"no published votes at {VOTES}")
RESULTS = ("beta", "share")


def fitted(document: dict[str, Any], **options: Any) -> PreferenceFit:
    return fit_votes(votes_of(document), VoteSettings(**options))


def by_model(found: PreferenceFit, name: str) -> dict[str, Any]:
    return {score.model: getattr(score, name) for score in found.scores}


@pytest.mark.parametrize("case", case_parameters("votes", "bradley_terry"))
def test_shared_case(case: dict[str, Any]) -> None:
    found = fitted({"votes": case["in"]["votes"]}, prior_l2=case["in"].get("l2", 0.0))
    for name, expected in case["out"].items():
        if name in RESULTS and expected is not None:
            assert by_model(found, name) == pytest.approx(expected, abs=case["tol"])
        elif name in RESULTS:
            assert set(by_model(found, name).values()) == {None}
        else:
            assert found.document()[name] == expected


@pytest.mark.parametrize("case", case_parameters("votes", "davidson"))
def test_shared_case_of_davidson(case: dict[str, Any]) -> None:
    found = fitted({"votes": case["in"]["votes"]}, ties="davidson")
    beta = by_model(found, "beta")
    assert beta["A"] - beta["B"] == pytest.approx(case["out"]["difference"], abs=case["tol"])
    assert found.nu == pytest.approx(case["out"]["nu"], abs=case["tol"])


@pytest.fixture(scope="module")
def real() -> VoteColumns:
    if not VOTES.is_dir():
        pytest.skip(f"no published votes at {VOTES}")
    return read_votes(VOTES / "llmfao" / "votes.csv")


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((VOTES / "llmfao" / "fits.json").read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize(
    ("ties", "column"), [("half", "beta_half_tie"), ("davidson", "beta_davidson"), ("drop", "beta_ties_dropped")]
)
def test_real_votes_have_the_published_scores(real: VoteColumns, published: dict[str, Any], ties: Any, column: str) -> None:
    found = fit_votes(real, VoteSettings(ties=ties))
    assert by_model(found, "beta") == pytest.approx({row["model"]: row[column] for row in published["scores"]}, abs=1e-4)
    assert found.nu == (pytest.approx(published["davidson_nu"], abs=1e-4) if ties == "davidson" else None)


def test_real_votes_without_prompts_have_the_published_errors(real: VoteColumns, published: dict[str, Any]) -> None:
    found = fit_votes(replace(real, prompt_ids=None))
    assert (found.votes, found.reviewers, len(found.scores)) == tuple(
        published[name] for name in ("votes", "reviewers", "models")
    )
    for name, column in (("se_model", "se_model"), ("share", "share_half_tie")):
        assert by_model(found, name) == pytest.approx({row["model"]: row[column] for row in published["scores"]}, abs=1e-3)
    # Those published count every reviewer for one, R / (R - 1).
    rows, reviewer = zip(real.left, real.right, real.outcome, strict=True), np.unique(real.reviewer_ids, return_inverse=True)[1]
    errors = estimate_errors(fit_strengths(paired([*rows], cluster=reviewer)))
    ratio = (1 - 1 / errors.effective[0]) / (1 - 1 / published["reviewers"])
    by_reviewer = dict(zip(real.players, np.sqrt(np.diag(errors.covariances[0]) * ratio), strict=True))
    assert by_reviewer == pytest.approx({row["model"]: row["se_by_reviewer"] for row in published["scores"]}, abs=1e-3)


def test_errors_of_real_votes_count_how_prompts_differ(real: VoteColumns) -> None:
    """Five prompts were taken for all that could be asked: errors were three quarters of what prompts and reviewers leave."""
    before, after = (by_model(fit_votes(votes), "se") for votes in (replace(real, prompt_ids=None), real))
    ratios = [after[name] / before[name] for name in before if after[name] is not None]
    assert 1.2 < np.median(ratios) < 1.5
    assert min(ratios) > 1 - 1e-9
    few = [score.reason for score in fit_votes(real).scores if score.se is None]
    assert all("prompts with equally many votes" in reason for reason in few)
    assert 5 < len(few) < 20


def test_real_votes_do_not_depend_on_their_order(real: VoteColumns) -> None:
    order = np.random.default_rng(3).permutation(real.votes)
    assert real.reviewer_ids is not None
    assert real.prompt_ids is not None
    turned = VoteColumns(
        real.source, real.players, real.left[order], real.right[order], real.outcome[order], real.counts,
        tuple(real.reviewer_ids[at] for at in order), prompt_ids=tuple(real.prompt_ids[at] for at in order),
    )  # fmt: skip
    for name in ("beta", "se", "tier"):
        assert by_model(fit_votes(turned), name) == pytest.approx(by_model(fit_votes(real), name), abs=1e-9)


def test_scores_are_those_of_evalica(real: VoteColumns) -> None:
    evalica = pytest.importorskip("evalica")
    winner = {1: evalica.Winner.X, -1: evalica.Winner.Y, 0: evalica.Winner.Draw}
    sides = ([real.players[at] for at in side] for side in (real.left, real.right))
    scores = evalica.bradley_terry(*sides, [winner[int(found)] for found in real.outcome], tolerance=1e-9, limit=20_000).scores
    logits = np.log(scores)
    assert by_model(fit_votes(real), "beta") == pytest.approx((logits - logits.mean()).to_dict(), abs=1e-5)


@needs_votes
def test_a_small_set_has_the_published_shares() -> None:
    document = json.loads((VOTES / "food.json").read_text(encoding="utf-8"))
    expected = document["published"]["bradley_terry_share"]
    assert by_model(fitted(document), "share") == pytest.approx(expected, abs=1e-5)


@needs_votes
def test_citations_have_the_published_coefficients_and_errors() -> None:
    """Published with one journal at 0, so that errors are those of differences from it."""
    document = json.loads((VOTES / "citations.json").read_text(encoding="utf-8"))
    beta = by_model(fitted(document), "beta")
    against = {name: value - beta[document["reference"]] for name, value in beta.items()}
    assert against == pytest.approx(document["published_beta"], abs=document["tolerance"])
    names = sorted(beta)
    place = {name: at for at, name in enumerate(names)}
    rows = [(place[one], place[other], 1) for one, other, _ in document["wins"]]
    fit = fit_strengths(paired(rows, weight=[count for *_, count in document["wins"]]))
    zero, variance = place[document["reference"]], np.diag(fit.inverse)
    for name, se in document["published_se"].items():
        at = place[name]
        assert np.sqrt(variance[at] + variance[zero] - 2 * fit.inverse[at, zero]) == pytest.approx(
            se, abs=document["tolerance"]
        )


def columns(
    rows: list[tuple[str, str, int]], reviewers: list[str] | None = None, confidence: list[int] | None = None
) -> VoteColumns:
    names = tuple(sorted({name for row in rows for name in row[:2]}))
    left, right = (np.array([names.index(row[side]) for row in rows], dtype=np.int64) for side in (0, 1))
    outcome = np.array([row[2] for row in rows], dtype=np.int64)
    sure = None if confidence is None else np.array(confidence, dtype=np.float64)
    who = None if reviewers is None else tuple(reviewers)
    return VoteColumns("made", names, left, right, outcome, np.ones(len(rows)), who, sure)


def test_players_with_too_few_votes_or_never_beaten_have_a_reason() -> None:
    found = fit_votes(columns([("a", "b", 1), ("b", "c", 1), ("c", "b", 1)]))
    assert found.separable
    assert {score.reason for score in found.scores} == {"no finite score: none of the others ever beat or tied a"}
    draw = random.Random(1)
    rows = [("a", "b", draw.choice([1, -1])) for _ in range(60)] + [("c", "a", 1), ("a", "c", 1)]
    found = fit_votes(columns(rows, [f"r{at % 6}" for at in range(62)]))
    few = next(score for score in found.scores if score.model == "c")
    assert few.beta is not None
    assert (few.se, few.low, few.tier, few.reason) == (None, None, None, "no interval: 2 votes, at least 10 are needed")
    assert {score.model for score in found.scores if score.low is not None} == {"a", "b"}


@pytest.mark.parametrize(("prompts", "note"), [(None, "no prompt ids"), (4, "4 prompts, at least 5"), (5, "")])
def test_intervals_of_few_or_unknown_prompts_are_stated_to_hold_for_these_only(prompts: int | None, note: str) -> None:
    draw = random.Random(1)
    rows = [("a", "b", draw.choice([1, -1])) for _ in range(120)]
    votes = columns(rows, [f"r{at % 6}" for at in range(120)])
    if prompts is not None:
        votes = replace(votes, prompt_ids=tuple(f"p{at % prompts}" for at in range(120)))
    found = fit_votes(votes)
    assert all(score.low is not None for score in found.scores)
    assert found.prompts == prompts
    assert note in (found.note or "") if note else found.note is None


def test_busy_reviewers_that_leave_too_few_are_the_reason() -> None:
    draw = random.Random(1)
    rows = [("a", "b", draw.choice([1, -1])) for _ in range(120)]
    found = fit_votes(columns(rows, [f"r{max(0, at - 100)}" for at in range(120)]))
    assert {score.low for score in found.scores} == {None}
    assert all("worth 1.4 reviewers" in score.reason for score in found.scores)
    assert found.note is None


def test_tiers_open_where_the_first_of_a_tier_is_better() -> None:
    draw = random.Random(2)
    ladder = {"a": 0.0, "b": 0.1, "c": 2.5, "d": 2.6}
    rows, who = [], []
    for at in range(1200):
        one, other = draw.sample(sorted(ladder), 2)
        rows.append((one, other, 1 if draw.random() < 1 / (1 + np.exp(ladder[other] - ladder[one])) else -1))
        who.append(f"r{at % 30}")
    assert by_model(fit_votes(columns(rows, who)), "tier") == {"a": 2, "b": 2, "c": 1, "d": 1}


def test_confidence_weighs_votes_and_must_be_there() -> None:
    rows = [("a", "b", 1), ("a", "b", -1)]
    found = fit_votes(columns(rows, confidence=[4, 1]), VoteSettings(weight="confidence"))
    assert by_model(found, "share") == pytest.approx({"a": 0.8, "b": 0.2})
    with pytest.raises(ConfigError, match="needs 1 to 5 in every vote"):
        fit_votes(columns(rows), VoteSettings(weight="confidence"))


def test_reviewers_whose_ties_are_dropped_gave_no_vote_that_counts(tmp_path: Path) -> None:
    """It said how many reviewers the file has, also those of whom no vote was used."""
    rows = [f"a,b,{'A' if at % 3 else 'B'},r{at % 6}\n" for at in range(36)]
    lines = {"all": [*rows, "a,b,tie,only ties\n"], "without": rows}
    found = {}
    for name, some in lines.items():
        (tmp_path / name).write_text(f"left,right,choice,reviewer_id\n{''.join(some)}", encoding="utf-8")
        found[name] = fit_votes(read_votes(tmp_path / name), VoteSettings(ties="drop"))
    assert found["all"].reviewers == found["without"].reviewers == 6
    assert found["all"].scores == found["without"].scores


def test_no_votes_are_an_empty_table() -> None:
    found = fitted({"votes": []}).document()
    assert (found["votes"], found["components"], found["scores"], found["separable"]) == (0, [], [], False)


def test_published_intervals_hold_the_truth_where_reviewers_have_tastes() -> None:
    held = coverage(VoteWorld(players=5, votes=400, tastes=1.2), sets=20)
    assert 0.89 < held["published"] < 0.995
    assert held["by vote"] < held["published"] - 0.05


def test_published_intervals_hold_the_truth_where_prompts_differ() -> None:
    """Votes on one prompt were taken for as many: .74 of the intervals held the truth, and equal players stood in two tiers in .3 of fits."""
    world = VoteWorld(players=6, votes=900, strengths=0, tastes=0, prompts=12, prompt_effects=0.8)
    results = coverage(world, sets=25)
    assert results["published"] > 0.9
    assert results["with interval"] == 1
    assert results["tiers split"] <= 0.1


def test_equal_players_stand_in_one_tier_where_a_few_reviewers_give_most_votes() -> None:
    """They stood in two tiers in .33 of fits."""
    results = coverage(VoteWorld(strengths=0, zipf=1.5), sets=20)
    assert results["tiers split"] <= 0.1
    assert results["with interval"] < 0.5


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


def test_without_votes_there_are_no_rows_and_players_of_other_components_are_counted() -> None:
    assert len(preference_scores([])) == 0
    apart = pd.concat([scores({"a": 1, "b": -1, "c": 0}), scores({"d": 5, "e": -5}, 1)])
    found = compare_with_metrics(apart, metric({"a": 2, "b": 1, "c": 0, "d": 9, "e": 8}))
    assert set(found["player"]) == {"a", "b", "c"}
    assert "2 in other components are left out" in found["reason"].iloc[0]


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


def test_judges_are_a_metric_beside_people() -> None:
    both = pd.concat([scores({"a": 1, "b": -1}), scores({"a": -2, "b": 2}, reviewer_kind="judge", judge="j")])
    found = compare_with_metrics(both[both["reviewer_kind"] == "person"], convert_judge_scores(both))
    assert found["metric"].unique().tolist() == ["preference of j"]
    assert found["tau"].iloc[0] == pytest.approx(-1)

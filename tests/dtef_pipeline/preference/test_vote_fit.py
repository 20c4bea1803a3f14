"""Scores of votes are those of the shared cases, of published fits and of another program, and their intervals hold."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.preference_coverage import VoteWorld, coverage
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.preference.vote_files import VoteColumns, read_votes
from dtef_pipeline.preference.vote_fit import PreferenceFit, VoteSettings, fit_votes
from dtef_pipeline.statistics.bradley_terry import fit_strengths
from dtef_pipeline.statistics.clustered_errors import estimate_errors
from tests.conftest import SHARED
from tests.made.shared_cases import case_parameters
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


def test_who_was_never_beaten_is_named() -> None:
    found = fit_votes(columns([("a", "b", 1), ("b", "c", 1), ("c", "b", 1)]))
    assert found.separable
    assert {score.reason for score in found.scores} == {"no finite score: none of the others ever beat or tied a"}


def test_a_player_of_few_votes_has_a_score_without_an_interval() -> None:
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

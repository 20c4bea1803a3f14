"""`dtef preference fit` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dtef_pipeline.cli.preference_fit_group import fit
from dtef_pipeline.statistics.bradley_terry import TIES
from tests.dtef_pipeline.cli.commands import dtef, ok
from tests.made.stored_votes import store_votes

DOCUMENTED = {"votes", "reviewers", "separable", "components", "nu", "scores"}
OF_SCORE = {"model", "component", "beta", "share", "se", "low", "high"}


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """Two players, six reviewers; the second is preferred a third of the time."""
    rows = "".join(f"a,b,{'B' if (at + at // 6) % 3 == 0 else 'A'},r{at % 6},{1 + at % 5}\n" for at in range(60))
    path = tmp_path / "votes.csv"
    path.write_text(f"left,right,choice,reviewer_id,confidence\n{rows}", encoding="utf-8")
    return path


def test_json_has_the_documented_keys(votes: Path) -> None:
    found = json.loads(ok("preference", "fit", votes, "--json"))
    assert set(found) >= DOCUMENTED
    assert (found["votes"], found["reviewers"], found["separable"], found["components"]) == (60, 6, False, [["a", "b"]])
    assert [score["model"] for score in found["scores"]] == ["a", "b"]
    first = found["scores"][0]
    assert set(first) >= OF_SCORE
    assert first["share"] == pytest.approx(2 / 3)
    assert first["low"] < first["beta"] < first["high"]


def test_the_table_says_who_voted_and_what_columns_mean(votes: Path) -> None:
    shown = ok("preference", "fit", votes, "--weight", "confidence", "--prior", "l2=0.1")
    for words in ("60 votes, 6 reviewers", "prior l2=0.1", "weighted by confidence", "95 % interval of beta", "tier"):
        assert words in shown


def test_why_there_is_no_score_stands_beneath_the_table(tmp_path: Path) -> None:
    (tmp_path / "votes.json").write_text('{"votes": [["a\\u001b[31m", "b", "A"]]}', encoding="utf-8")
    shown = ok("preference", "fit", tmp_path / "votes.json")
    assert "none of the others ever beat or tied a" in shown
    assert "\x1b" not in shown


def test_an_empty_file_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("left,right,choice\n", encoding="utf-8")
    assert "holds no votes" in ok("preference", "fit", tmp_path / "votes.csv")
    assert json.loads(ok("preference", "fit", tmp_path / "votes.csv", "--json"))["scores"] == []


def test_few_reviewers_with_most_votes_are_told(tmp_path: Path) -> None:
    rows = "".join(f"a,b,{'A' if at % 2 else 'B'},r{max(0, at - 90)}\n" for at in range(100))
    (tmp_path / "votes.csv").write_text(f"left,right,choice,reviewer_id\n{rows}", encoding="utf-8")
    assert "few reviewers gave most of the votes" in ok("preference", "fit", tmp_path / "votes.csv")
    assert "few reviewers" not in ok("preference", "fit", tmp_path / "votes.csv", "--degrees", "effective")


@pytest.mark.parametrize("prior", ["l2=-1", "l2=x", "l1=1", "l2=nan", "l2=inf", "1"])
def test_a_prior_that_is_none_is_refused(prior: str, votes: Path) -> None:
    result = dtef("preference", "fit", votes, "--prior", prior)
    assert result.exit_code == 2
    assert "allowed: l2=X" in result.output


def test_control_by_length_needs_responses(votes: Path) -> None:
    result = dtef("preference", "fit", votes, "--control", "length")
    assert result.exit_code == 2
    assert "needs --responses FILE" in result.output


def test_a_faulty_file_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("left,right,choice\na,b,maybe\n", encoding="utf-8")
    result = dtef("preference", "fit", tmp_path / "votes.csv")
    assert result.exit_code == 2
    assert "votes.csv:2: choice is not usable; got 'maybe'; allowed: A, B, tie" in result.output


def test_the_ways_with_ties_are_those_of_the_fit() -> None:
    (ties,) = (option for option in fit.params if option.name == "ties")
    assert tuple(ties.type.choices) == TIES  # type: ignore[attr-defined]


@pytest.fixture
def stored(state: Path) -> Path:
    """60 votes of six people, and 60 of one judge who says the opposite."""
    store_votes(60)
    store_votes(60, reviewer_kind="judge")
    return state


def test_without_a_file_the_votes_of_the_store_are_fitted_and_kinds_of_reviewers_never_mixed(stored: Path) -> None:
    found = json.loads(ok("preference", "fit", "--json"))
    assert (found["votes"], found["reviewers"]) == (60, 6)
    best = found["scores"][0]["model"]
    of_judge = json.loads(ok("preference", "fit", "--json", "--reviewer-kind", "judge"))
    assert (of_judge["votes"], of_judge["reviewers"], of_judge["scores"][-1]["model"]) == (60, 1, best)
    assert "at least 5 are needed" in of_judge["scores"][0]["reason"]


def test_stored_votes_are_chosen_by_family_and_item_and_controlled_by_their_texts(stored: Path) -> None:
    some = json.loads(ok("preference", "fit", "--json", "--family", "qa", "--item", "made/all/[0-9]", "--control", "length"))
    assert 0 < some["votes"] < 60
    assert "length" in some
    for other in ("rubric", "elsewhere"):
        assert "holds no votes" in ok("preference", "fit", "--family", other)
    assert "games, elsewhere" in dtef("preference", "fit", "--family", "x").output
    for given in (("--family", "qa"), ("--item", "x"), ("--reviewer-kind", "judge"), ("--without-leak-risk",)):
        assert "give no FILE" in dtef("preference", "fit", __file__, *given).output


def test_pairs_with_a_name_in_a_text_can_be_left_out(state: Path) -> None:
    store_votes(10)
    assert json.loads(ok("preference", "fit", "--json"))["votes"] == 10
    # Every made text says whose it is.
    assert json.loads(ok("preference", "fit", "--json", "--without-leak-risk"))["votes"] == 0

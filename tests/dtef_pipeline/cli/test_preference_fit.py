"""`dtef preference board --now` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from dtef_pipeline.preference.vote_fit import VoteSettings
from dtef_pipeline.statistics.bradley_terry import TIES
from tests.dtef_pipeline.cli.commands import dtef, name_panel, ok, refused
from tests.made.stored_votes import add_judged, store_votes

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
    found = json.loads(ok("preference", "board", "--now", votes, "--json"))
    assert set(found) >= DOCUMENTED
    assert (found["votes"], found["reviewers"], found["separable"], found["components"]) == (60, 6, False, [["a", "b"]])
    assert [score["model"] for score in found["scores"]] == ["a", "b"]
    first = found["scores"][0]
    assert set(first) >= OF_SCORE
    assert first["share"] == pytest.approx(2 / 3)
    assert first["low"] < first["beta"] < first["high"]


def test_the_table_says_who_voted_and_where_columns_are_explained(votes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name_panel(votes.parent, monkeypatch, preference={"weight": "confidence", "prior_l2": 0.1})
    shown = ok("preference", "board", "--now", votes)
    for words in (
        "60 votes, 6 reviewers",
        "prior l2=0.1",
        "weighted by confidence",
        "tier",
        "Columns: dtef explain preference",
    ):
        assert words in shown


def test_why_there_is_no_score_stands_below_the_table(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("left,right,choice\na\x1b[31m,b,A\n", encoding="utf-8")
    shown = ok("preference", "board", "--now", tmp_path / "votes.csv")
    assert "none of the others ever beat or tied a" in shown
    assert "\x1b" not in shown


def test_an_empty_file_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("left,right,choice\n", encoding="utf-8")
    assert "holds no votes" in ok("preference", "board", "--now", tmp_path / "votes.csv")
    assert json.loads(ok("preference", "board", "--now", tmp_path / "votes.csv", "--json"))["scores"] == []


def test_votes_without_prompts_and_busy_reviewers_are_stated_to_limit_intervals(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    for reviewer, message in ((lambda at: at % 7, "hold for the prompts"), (lambda at: max(0, at - 90), "worth 1.2 reviewers")):
        rows = "".join(f"a,b,{'A' if at % 3 else 'B'},r{reviewer(at)}\n" for at in range(100))
        path.write_text(f"left,right,choice,reviewer_id\n{rows}", encoding="utf-8")
        assert message in " ".join(ok("preference", "board", "--now", path).split())


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"prior_l2": -1}, "preference.prior_l2: got -1; allowed: 0 or more"),
        ({"prior_l2": float("nan")}, "preference.prior_l2: got nan"),
        ({"ties": "third"}, "preference.ties: got 'third'; allowed: half, davidson, drop"),
        ({"tise": "half"}, "preference.tise: unknown key; known: ties"),
    ],
)
def test_a_key_that_is_none_is_refused_with_what_is_allowed(
    how: dict[str, Any], message: str, votes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_panel(votes.parent, monkeypatch, preference=how)
    assert f"panel.yaml:2: {message}" in refused("preference", "board", "--now", votes)


def test_control_by_length_needs_responses(votes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name_panel(votes.parent, monkeypatch, preference={"control": "length"})
    assert "needs --responses FILE" in refused("preference", "board", "--now", votes)


def test_a_faulty_file_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("left,right,choice\na,b,maybe\n", encoding="utf-8")
    result = dtef("preference", "board", "--now", tmp_path / "votes.csv")
    assert result.exit_code == 2
    assert "votes.csv:2: choice is not usable; got 'maybe'; allowed: A, B, tie" in result.output


def test_the_ways_with_ties_are_those_of_the_fit() -> None:
    assert get_args(VoteSettings.model_fields["ties"].annotation) == TIES


@pytest.fixture
def stored(state: Path) -> Path:
    """60 votes of six people, and 60 of one judge who says the opposite."""
    store_votes(60)
    store_votes(60, reviewer_kind="judge")
    return state


def test_without_a_file_the_votes_of_the_store_are_fitted_and_kinds_of_reviewers_never_mixed(stored: Path) -> None:
    found = json.loads(ok("preference", "board", "--now", "--json"))
    assert (found["votes"], found["reviewers"]) == (60, 6)
    best = found["scores"][0]["model"]
    of_judge = json.loads(ok("preference", "board", "--now", "--json", "--judge", "*"))
    assert (of_judge["votes"], of_judge["reviewers"], of_judge["scores"][-1]["model"]) == (60, 1, best)
    assert "at least 5 are needed" in of_judge["scores"][0]["reason"]


def test_stored_votes_are_chosen_by_family_and_item_and_controlled_by_their_texts(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_panel(stored, monkeypatch, preference={"control": "length"})
    some = json.loads(ok("preference", "board", "--now", "--json", "--family", "qa", "--item", "made/all/[0-9]"))
    assert 0 < some["votes"] < 60
    assert "length" in some
    for other in ("rubric", "elsewhere"):
        assert f"holds no votes of people on responses of {other}" in refused("preference", "board", "--now", "--family", other)
    assert "none of 60 votes is on such an item" in refused("preference", "board", "--now", "--item", "x")
    assert "games, elsewhere" in dtef("preference", "board", "--now", "--family", "x").output
    for given in (("--family", "qa"), ("--item", "x"), ("--judge", "x"), ("--reviewer", "x")):
        assert "give no FILE" in dtef("preference", "board", "--now", __file__, *given).output


def test_pairs_with_a_name_in_a_text_can_be_left_out(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store_votes(10)
    assert json.loads(ok("preference", "board", "--now", "--json"))["votes"] == 10
    # Every made text says whose it is.
    name_panel(state, monkeypatch, preference={"without_leak_risk": True})
    assert "nothing to fit" in refused("preference", "board", "--now", "--json")


def test_weights_without_confidences_say_whose_votes_have_none(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message spoke of a column of a file, and the board of people's votes was lost with that of judges."""
    add_judged("openai/gpt-4o", ("[temperature=0]",), 20)
    name_panel(stored, monkeypatch, preference={"weight": "confidence"})
    assert json.loads(ok("preference", "board", "--now", "--json"))["weight"] == "confidence"
    said = refused("preference", "board", "--now", "--judge", "gpt-4o")
    assert "weight: confidence, in the panel file: judges give no confidence" in said


def test_judges_are_fitted_one_by_one_or_together_as_models(stored: Path) -> None:
    """All judges were one fit that nobody asked for, and a model at two temperatures was two reviewers."""
    add_judged("openai/gpt-4o", ("[temperature=0]", "[temperature=1]"), 20)
    one = json.loads(ok("preference", "board", "--now", "--json", "--judge", "pairs(openai/gpt-4o[temperature=1])#01234567"))
    assert (one["votes"], one["reviewers"], one["judges"]) == (20, 1, ["pairs(openai/gpt-4o[temperature=1])#01234567"])
    together = json.loads(ok("preference", "board", "--now", "--json", "--judge", "*"))
    assert (together["votes"], together["reviewers"]) == (100, 2)
    assert json.loads(ok("preference", "board", "--now", "--json", "--judge", "gpt-4o"))["reviewers"] == 1
    assert "--judge x: got none that voted" in refused("preference", "board", "--now", "--judge", "x")
    assert json.loads(ok("preference", "board", "--now", "--json", "--reviewer", "r[0-2]"))["reviewers"] == 3


def test_self_judged_votes_are_counted_and_can_be_left_out(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store_votes(20, ("openai/gpt-4o-mini[temperature=0]", "anthropic/claude-haiku-4-5", "mistral/mistral-small"))
    add_judged("openai/gpt-4o", ("[temperature=0]",), 20)
    found = json.loads(ok("preference", "board", "--now", "--json", "--judge", "gpt-4o"))
    own = found["self_judged"]
    assert 0 < own < 20
    assert f"{own} votes self-judged" in ok("preference", "board", "--now", "--judge", "gpt-4o")
    name_panel(state, monkeypatch, preference={"no_own_judge": True})
    left = json.loads(ok("preference", "board", "--now", "--json", "--judge", "gpt-4o"))
    assert (left["votes"], left["self_judged"], left["self_judged_left_out"]) == (20 - own, 0, own)
    assert "openai/gpt-4o-mini[temperature=0]" not in {one["model"] for one in left["scores"]}

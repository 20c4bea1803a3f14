"""`dtef preference board FILE` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from dtef_pipeline.preference.vote_fit import VoteSettings
from dtef_pipeline.statistics.bradley_terry import TIES
from tests.dtef_pipeline.cli.commands import dtef, name_panel, ok, refused

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
    found = json.loads(ok("preference", "board", votes, "--json"))
    assert set(found) >= DOCUMENTED
    assert (found["votes"], found["reviewers"], found["separable"], found["components"]) == (60, 6, False, [["a", "b"]])
    assert [score["model"] for score in found["scores"]] == ["a", "b"]
    first = found["scores"][0]
    assert set(first) >= OF_SCORE
    assert first["share"] == pytest.approx(2 / 3)
    assert first["low"] < first["beta"] < first["high"]


def test_the_table_says_who_voted_and_where_columns_are_explained(votes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name_panel(votes.parent, monkeypatch, preference={"weight": "confidence", "prior_l2": 0.1})
    shown = ok("preference", "board", votes)
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
    shown = ok("preference", "board", tmp_path / "votes.csv")
    assert "none of the others ever beat or tied a" in shown
    assert "\x1b" not in shown


def test_an_empty_file_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("left,right,choice\n", encoding="utf-8")
    assert "holds no votes" in ok("preference", "board", tmp_path / "votes.csv")
    assert json.loads(ok("preference", "board", tmp_path / "votes.csv", "--json"))["scores"] == []


def test_a_key_that_is_none_is_refused_with_what_is_allowed(votes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name_panel(votes.parent, monkeypatch, preference={"ties": "third"})
    assert "panel.yaml:2: preference.ties: got 'third'; allowed: half, davidson, drop" in refused("preference", "board", votes)


def test_options_of_the_stored_board_are_refused_with_a_file(votes: Path) -> None:
    assert "--judge does not work with FILE" in refused("preference", "board", votes, "--judge", "x")


def test_control_by_length_needs_responses(votes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name_panel(votes.parent, monkeypatch, preference={"control": "length"})
    assert "leave it out for a file" in refused("preference", "board", votes)


def test_a_faulty_file_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("left,right,choice\na,b,maybe\n", encoding="utf-8")
    result = dtef("preference", "board", tmp_path / "votes.csv")
    assert result.exit_code == 2
    assert "votes.csv:2: choice is not usable; got 'maybe'; allowed: A, B, tie" in result.output


def test_the_ways_with_ties_are_those_of_the_fit() -> None:
    assert get_args(VoteSettings.model_fields["ties"].annotation) == TIES

"""`dtef preference board FILE` and `dtef preference vote --judge` as a user calls them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dtef_pipeline.preference.pairing import make_new_pairs
from resources.settings import Settings
from resources.votes.vote_store import VoteStore
from tests.dtef_pipeline.cli.commands import dtef, name_panel, ok, refused, serve_as, write_panel
from tests.fake_llm_server import Call, FakeLLM
from tests.made.votes import written

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


ALWAYS_FIRST = "<reflection>The first.</reflection><classification>CLASS_A</classification>"


@pytest.fixture
def paired(state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    responses = written(items=6)
    with VoteStore(Settings.read_environment().responses_url) as store:
        store.add_pairs(responses, make_new_pairs(responses), user="test")
    return state


def judged(paired: Path, monkeypatch: pytest.MonkeyPatch, reply: Callable[[Call], str], *options: str) -> tuple[str, int]:
    with FakeLLM(reply=reply) as server:
        serve_as(server, paired, monkeypatch)
        said = dtef("preference", "vote", "--judge", "mine", *options)
        for call in server.calls:
            assert "alpha" not in json.dumps(call.body), "a judge reads no names"
            assert call.body["temperature"] == 0
        return said.output, server.answered


def test_a_judge_that_always_takes_the_first_text_gives_ties_alone(paired: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, asked = judged(paired, monkeypatch, lambda call: ALWAYS_FIRST)
    assert asked == 12
    for words in ("6 votes on 6 pairs, 6 ties", "as judge: 12 calls"):
        assert words in said
    votes = json.loads(ok("preference", "votes", "--json"))
    assert {(one["kind"], one["choice"], one["confidence"]) for one in votes} == {("judge", "tie", None)}
    again, asked = judged(paired, monkeypatch, lambda call: ALWAYS_FIRST)
    assert asked == 0
    assert "no pair left to judge" in again


def test_a_text_without_a_verdict_is_no_vote_and_a_rerun_buys_nothing(paired: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, asked = judged(paired, monkeypatch, lambda call: "Both are fine.", "--pairs", "2")
    assert asked == 8, "each order once, and once more with a correction"
    assert "no vote on 2 pairs, because there was no verdict: unreadable 2" in said
    assert judged(paired, monkeypatch, lambda call: ALWAYS_FIRST, "--pairs", "2")[1] == 0
    assert ok("preference", "votes").strip() == "There are no votes."


def test_a_budget_ends_judging_and_a_baseline_is_refused(paired: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, asked = judged(paired, monkeypatch, lambda call: ALWAYS_FIRST, "--max-calls", "2")
    assert asked == 2
    assert "because there was no verdict: budget" in said
    assert "without a server" in refused("preference", "vote", "--judge", "baseline/uniform")


def test_a_judge_reports_pairs_of_its_own_maker_or_skips_them(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model judged its own responses without a word."""
    responses = written(("alpha", "beta", "openai/fake[temperature=1]"), items=3)
    with VoteStore(Settings.read_environment().responses_url) as store:
        store.add_pairs(responses, make_new_pairs(responses, per_item=3), user="test")
    name_panel(state, monkeypatch, preference={"no_own_judge": True})
    said, asked = judged(state, monkeypatch, lambda call: ALWAYS_FIRST)
    write_panel(preference={})
    assert asked == 6
    assert "fake: 6 pairs left out: a response is of its own maker" in said
    said, asked = judged(state, monkeypatch, lambda call: ALWAYS_FIRST)
    assert asked == 12
    assert "6 pairs of 6 with a response of its own maker: these votes are self-judged" in " ".join(said.split())
    listed = json.loads(ok("preference", "votes", "--json"))
    assert sorted(one["self_judged"] for one in listed) == [False] * 3 + [True] * 6


def test_a_person_is_refused_under_a_judges_id(paired: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged(paired, monkeypatch, lambda call: ALWAYS_FIRST, "--pairs", "1")
    (vote,) = json.loads(ok("preference", "votes", "--json"))
    own = ("--reviewer", vote["reviewer"])
    for command in (
        ("preference", "vote", "--out", paired / "page", *own),
        ("preference", "votes", "--consent", vote["reviewer"]),
    ):
        assert "belongs to a judge" in refused(*command)

"""`dtef preference vote --judge MODEL`: a model votes on pairs in both orders, buys nothing twice, and never counts as a person."""

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
from tests.made.stored_votes import written

ALWAYS_FIRST = "<reflection>The first.</reflection><classification>CLASS_A</classification>"


@pytest.fixture
def paired(state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up")
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
    for words in ("6 votes on 6 pairs, 6 ties", "flip rate 1.000", "position: 1.000 of 12 decisions", "as judge: 12 calls"):
        assert words in said
    votes = json.loads(ok("preference", "votes", "--json"))
    assert {(one["kind"], one["choice"], one["confidence"]) for one in votes} == {("judge", "tie", None)}
    again, asked = judged(paired, monkeypatch, lambda call: ALWAYS_FIRST)
    assert asked == 0
    assert "no pair left to judge" in again


def test_a_judge_that_prefers_the_longer_text_survives_the_swap(paired: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def longer(call: Call) -> str:
        first, second = (call.user.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0] for tag in ("TEXT_A", "TEXT_B"))
        return f"<classification>CLASS_{'A' if len(first) > len(second) else 'B'}</classification>"

    said, asked = judged(paired, monkeypatch, longer, "--pairs", "4")
    assert asked == 8
    for words in ("4 votes on 4 pairs, 0 ties", "flip rate 0.000", "position: 0.500"):
        assert words in said


def test_a_text_without_a_verdict_is_no_vote_and_a_rerun_buys_nothing(paired: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, asked = judged(paired, monkeypatch, lambda call: "Both are fine.", "--pairs", "2")
    assert asked == 8, "each order once, and once more with a correction"
    assert "no vote on 2 pairs, because there was no verdict: unreadable 2" in said
    assert judged(paired, monkeypatch, lambda call: ALWAYS_FIRST, "--pairs", "2")[1] == 0
    assert ok("preference", "votes").strip() == "There are no votes."


def test_a_budget_ends_judging_and_a_model_that_writes_nothing_is_refused(
    paired: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, asked = judged(paired, monkeypatch, lambda call: ALWAYS_FIRST, "--max-calls", "2")
    assert asked == 2
    assert "because there was no verdict: budget" in said
    assert "without a server" in refused("preference", "vote", "--judge", "baseline/uniform")


def test_a_judge_says_what_it_judges_of_its_own_maker_and_can_leave_it_out(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model judged its own responses without a word."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up")
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

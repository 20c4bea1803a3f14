"""The arbiter asked through the gateway: a judge that breaks its form or fails leaves no made-up score, and a rerun buys nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dtef_pipeline.asking.episodes import EpisodeResult, play
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.qa.judging.arbiter import Arbiter
from dtef_pipeline.qa.judging.arbitration import Arbitration, compute_arbiter_score, iterate_arbitrations, make_verdict_row
from dtef_pipeline.qa.model import ItemScore
from resources.gateway import Gateway
from resources.gateway.queues import BreakerRules
from resources.gateway.retries import Backoff
from resources.responses.store import ResponseStore
from tests.fake_llm_server import Call, FakeLLM, Fault

ANSWERS = 20
BROKEN = ("0.5", '{"score": "high"}', '{"score": 0.5, "reason": "cut', "", "I would say half.", '{"score": 5}')


def number(call: Call) -> int:
    found = re.search(r"\[BEGIN ANSWER \w+\]\nAnswer (\d+)\n", call.user)
    assert found
    return int(found[1])


def judge_that_breaks(call: Call) -> str:
    """Every fifth answer gets broken replies, half of these are mended when they are asked for once more; all others .75."""
    at = number(call)
    if at % 5 == 0 and (call.attempt == 1 or at % 10 == 0):
        return BROKEN[at // 5 % len(BROKEN)]
    return '{"score": 0.75, "reason": "mostly"}'


def refuses(call: Call) -> Fault | None:
    """One answer in twenty never gets a reply."""
    return Fault("status", status=500, message="no luck") if number(call) % 20 == 7 else None


def judged(store: ResponseStore, server: FakeLLM) -> list[ItemScore]:
    spec = ModelSpec(name="judge", model="openai/judge", max_tokens=300, api_base=server.base_url, retries=1)
    quick = Backoff(first=0.001, longest=0.01)
    gateway = Gateway(store, environ={}, backoff=quick, breaker=BreakerRules(cool_down=0.01, longest=0.05))
    episodes = [one for at in range(ANSWERS) for one in iterate_arbitrations("What?", "12", f"Answer {at}", Arbiter(spec))]
    played = play(episodes, lambda requests: gateway.answer(requests).failures, store.responses)
    return [scored(episodes[at : at + 2], played[at : at + 2]) for at in range(0, len(episodes), 2)]


def scored(episodes: list[Arbitration], played: list[EpisodeResult]) -> ItemScore:
    verdicts = [make_verdict_row(one, came, "") for one, came in zip(episodes, played, strict=True)]
    return compute_arbiter_score(
        {one["evaluator"]: one["score"] for one in verdicts}, {one["evaluator"]: one["reason"] for one in verdicts}
    )


def test_a_faulty_judge_leaves_no_made_up_score_and_a_rerun_buys_nothing(tmp_path: Path) -> None:
    with FakeLLM(reply=judge_that_breaks, fault=refuses) as server, ResponseStore(tmp_path / "responses.sqlite") as store:
        scores = judged(store, server)
        lost = {at for at in range(ANSWERS) if at % 10 == 0 or at % 20 == 7}
        assert [one.value for one in scores if one.value is not None] == pytest.approx([0.75] * (ANSWERS - len(lost)))
        assert {at for at, one in enumerate(scores) if one.value is None} == lost
        assert {one.status for at, one in enumerate(scores) if at in lost} == {"judge_failed"}
        assert all(scores[at].score is None and scores[at].reason for at in lost)
        assert scores[7].reason == "semantic: error; factuality: error"
        answered = server.answered
        assert judged(store, server) == scores
        assert server.answered == answered

"""Judges asked through the gateway: a server that plays a judge in every form of reply, two waves, and a rerun that buys nothing."""

from __future__ import annotations

from pathlib import Path

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Request, Response
from dtef_pipeline.judging.judgement import Judgement, build_first_request, build_next_request, resolve_judgement
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.judging.prompts import Case
from resources.gateway import Gateway
from resources.responses.store import ResponseStore
from tests.dtef_pipeline.judging.cases import CASE, GOOD, blocks_of
from tests.fake_llm_server import Call, FakeLLM

FORMS = {
    "clean": (GOOD, GOOD),
    "loose": ("<Classification> **majorly_met**. </CLASSIFICATION>", GOOD),
    "bare": ("Verdict: CLASS_MAJORLY_MET.", GOOD),
    "prose": ("It is mostly there.", GOOD),
    "unclosed": ("<classification>CLASS_UNMET", GOOD),
    "two names": ("CLASS_UNMET or CLASS_EXACTLY_MET", GOOD),
    "empty": (" ", GOOD),
    "refusal": ("I'm sorry, but I can't judge this.", "I'm sorry, but I can't judge this."),
    "stubborn": ("Mostly.", "As I said, mostly."),
}
"""What is replied to the first request and to the correction, by the criterion."""


def judge_of_every_form(call: Call) -> str:
    messages = call.body["messages"]
    (criterion,) = blocks_of("CRITERION", messages[1]["content"])
    return FORMS[criterion][len(messages) > 2]


def stored_responses(store: ResponseStore, requests: list[Request]) -> dict[str, Response]:
    return {row["request_key"]: Response(**row) for row in store.responses(one.key for one in requests).to_pylist()}


def judged(gateway: Gateway, store: ResponseStore, judge: JudgeConfig) -> dict[str, Judgement]:
    """The judgement of each criterion, in two waves."""
    first = {form: build_first_request(Case(CASE.text, form, CASE.turns), judge, 0, "base") for form in FORMS}
    assert not gateway.answer(first.values()).failures
    said = {form: list(stored_responses(store, [one]).values()) for form, one in first.items()}
    again = {form: request for form, one in first.items() if (request := build_next_request(one, said[form]))}
    assert not gateway.answer(again.values()).failures
    second = {form: list(stored_responses(store, [one]).values()) for form, one in again.items()}
    return {form: resolve_judgement([*said[form], *second.get(form, [])]) for form in FORMS}


def test_every_form_of_reply_is_judged_and_a_rerun_makes_no_calls(tmp_path: Path) -> None:
    with FakeLLM(reply=judge_of_every_form) as server, ResponseStore(tmp_path / "responses.sqlite") as store:
        model = ModelSpec(name="mini", model="openai/mini", max_tokens=2048, api_base=server.base_url)
        judge = JudgeConfig("prompt-aware", model)
        found = judged(Gateway(store), store, judge)
        calls = len(server.calls)
        assert judged(Gateway(store), store, judge) == found
        assert len(server.calls) == calls == len(FORMS) + 6
        sent = [call.body for call in server.calls]
    assert {form: (one.score, one.reason, one.attempts) for form, one in found.items()} == {
        **dict.fromkeys(("clean", "loose", "bare"), (0.75, None, 1)),
        **dict.fromkeys(("prose", "unclosed", "two names", "empty"), (0.75, None, 2)),
        "refusal": (None, "declined", 2),
        "stubborn": (None, "unreadable", 2),
    }
    assert {(body["temperature"], body["max_tokens"]) for body in sent} == {(0, 2048)}
    assert {tuple(message["role"] for message in body["messages"]) for body in sent} == {
        ("system", "user"),
        ("system", "user", "assistant", "user"),
    }

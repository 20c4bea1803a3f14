"""What a run would ask: counted as it is asked, stored answers by their very judgements, and nothing twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Message, Request
from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.judging.call_ledger import CallLedger, StoredResponses, UsualLengths
from dtef_pipeline.qa.arbiter import Arbiter, in_sample
from dtef_pipeline.qa.arbitration import arbitrations
from dtef_pipeline.qa.call_plan import AskedPart, plan_part

MINI = ModelSpec(name="mini", model="openai/mini", max_tokens=100)
BIG = ModelSpec(name="big", model="openai/big", max_tokens=200)
ARBITER = Arbiter(ModelSpec(name="judge", model="acme/judge", max_tokens=1024))


def part(items: int = 3, scorers: Sequence[str] = ("judge", "numeric"), **changed: object) -> AskedPart:
    names = [f"i{at}" for at in range(items)]
    asked = [Request.of_messages((Message("user", f"What is {at} + {at}?"),), MINI, 0, "base") for at in range(items)]
    prompts = pa.table(
        {
            "item_id": names,
            "prompt_id": [one.prompt_id for one in asked],
            "messages": [[{"role": "user", "text": one.messages[0].text}] for one in asked],
            "answer_tokens": pa.array([None] * items, pa.int32()),
        }
    )
    texts = [f"What is {at} + {at}?" for at in range(items)]
    table = pa.table(
        {
            "item_id": names,
            "scorers": [list(scorers)] * items,
            "text": texts,
            "solution": [""] * items,
            "quotes": [[]] * items,
            "reference": ["#### 2"] * items,
        }
    )
    return AskedPart(prompts, table, **{"models": (MINI, BIG), "arbiter": ARBITER, **changed})  # type: ignore[arg-type]


def stored(kept: Mapping[str, str]) -> StoredResponses:
    return StoredResponses(lambda keys: {key for key in keys if key in kept}, lambda keys: {key: kept[key] for key in keys})


def rows(ledger: CallLedger) -> dict[tuple[str, str], tuple[int, int, int, int, int]]:
    return {key: (row.planned, row.requests, row.replayed, row.calls, row.calls_most) for key, row in ledger.rows.items()}


def test_nothing_stored_is_prompts_by_models_by_draws_and_two_judgements_of_each() -> None:
    ledger = CallLedger()
    assert plan_part(part(draws=2), ledger) == 12
    assert rows(ledger) == {
        ("candidate", "mini"): (6, 6, 0, 6, 6),
        ("candidate", "big"): (6, 6, 0, 6, 6),
        ("judge", "judge"): (24, 24, 0, 24, 48),
    }
    row = ledger.rows["candidate", "mini"]
    assert row.prompt_tokens == 2 * sum(estimate_tokens(f"What is {at} + {at}?") for at in range(3))
    assert (row.response_tokens, row.response_tokens_most) == (600, 600)


def test_planning_the_same_part_twice_asks_nothing_twice() -> None:
    ledger = CallLedger()
    plan_part(part(), ledger)
    once = {key: row.calls for key, row in ledger.rows.items()}
    plan_part(part(), ledger)
    assert {key: row.calls for key, row in ledger.rows.items()} == once


def test_stored_answers_are_judged_by_the_requests_that_the_run_sends() -> None:
    asked = part(models=(MINI,))
    kept = {}
    for prompt, question in zip(asked.prompts["prompt_id"].to_pylist(), asked.items["text"].to_pylist(), strict=True):
        request = Request.of_messages((Message("user", question),), MINI, 0, "base")
        assert request.prompt_id == prompt
        kept[request.key] = "The answer is 2."
    first = next(arbitrations(asked.items["text"][0].as_py(), "#### 2", "The answer is 2.", ARBITER)).next([])
    assert first is not None
    kept[first.key] = '{"score": 1}'
    ledger = CallLedger(stored(kept))
    plan_part(asked, ledger)
    assert rows(ledger) == {("candidate", "mini"): (3, 3, 3, 0, 0), ("judge", "judge"): (6, 6, 1, 5, 10)}
    tokens = [
        sum(estimate_tokens(message.text) for message in request.messages)
        for question in asked.items["text"].to_pylist()
        for one in arbitrations(question, "#### 2", "The answer is 2.", ARBITER)
        if (request := one.next([])) is not None and request.key not in kept
    ]
    row = ledger.rows["judge", "judge"]
    assert row.prompt_tokens == pytest.approx(sum(tokens))
    assert row.prompt_tokens_most == pytest.approx(2 * sum(tokens))
    assert row.response_tokens_most == 5 * 1024 + 5 * 2048


def test_a_stored_reply_that_cannot_be_read_is_one_call_more_until_the_judge_was_asked_again() -> None:
    """Regression: it was counted as replayed, and a run sent more than `calls_most`."""
    asked = part(items=1, models=(MINI,))
    kept = {Request.of_messages((Message("user", "What is 0 + 0?"),), MINI, 0, "base").key: "0"}
    semantic, factuality = arbitrations("What is 0 + 0?", "#### 2", "0", ARBITER)
    for one, reply in ((semantic, '{"score": 8}'), (factuality, '{"score": 1}')):
        first = one.next([])
        assert first is not None
        kept[first.key] = reply
    ledger = CallLedger(stored(kept))
    plan_part(asked, ledger)
    assert rows(ledger)["judge", "judge"] == (2, 2, 1, 1, 1)
    assert ledger.rows["judge", "judge"].response_tokens_most == 2 * 1024
    for again in semantic.again('{"score": 8}'):
        ledger = CallLedger(stored({**kept, again.key: "still no score"}))
        plan_part(asked, ledger)
        assert rows(ledger)["judge", "judge"] == (2, 2, 2, 0, 0)


def test_the_same_answer_of_two_models_is_judged_once_and_a_blank_one_never() -> None:
    asked = part(items=1)
    kept = {Request.of_messages((Message("user", "What is 0 + 0?"),), model, 0, "base").key: "0" for model in (MINI, BIG)}
    ledger = CallLedger(stored(kept))
    plan_part(asked, ledger)
    assert rows(ledger)["judge", "judge"] == (4, 2, 0, 2, 4)
    blank = CallLedger(stored(dict.fromkeys(kept, " ")))
    plan_part(asked, blank)
    assert ("judge", "judge") not in blank.rows


def test_only_the_sample_is_judged_and_items_that_a_rule_scores_are_not() -> None:
    rate = 0.5
    ledger = CallLedger()
    plan_part(part(items=200, models=(MINI,), arbiter=Arbiter(ARBITER.model, sample_rate=rate)), ledger)
    chosen = in_sample([f"i{at}" for at in range(200)], [MINI.variant] * 200, rate).sum()
    assert ledger.rows["judge", "judge"].calls == 2 * chosen
    for unjudged in (part(scorers=("numeric",)), part(arbiter=None)):
        ruled = CallLedger()
        plan_part(unjudged, ruled)
        assert ("judge", "judge") not in ruled.rows


def test_lengths_are_those_of_earlier_responses_where_they_are_known() -> None:
    usual = UsualLengths({MINI.variant: 7.0}, {ARBITER.model.variant: 30.0})
    ledger = CallLedger(usual=usual)
    plan_part(part(items=1, models=(MINI,)), ledger)
    assert ledger.rows["candidate", "mini"].response_tokens == 7
    assert ledger.rows["judge", "judge"].response_tokens == 60


def test_room_of_the_prompt_goes_before_a_smaller_limit_of_the_model() -> None:
    """An estimate counted 256 tokens of a reply whose request allowed 768."""
    asked = part(items=1, models=(MINI,))
    place = asked.prompts.schema.get_field_index("answer_tokens")
    roomy = replace(asked, prompts=asked.prompts.set_column(place, "answer_tokens", pa.array([768], pa.int32())))
    narrow, wide = CallLedger(), CallLedger()
    plan_part(asked, narrow)
    plan_part(roomy, wide)
    told = [
        (one.response_tokens, one.response_tokens_most)
        for one in (ledger.rows["candidate", "mini"] for ledger in (narrow, wide))
    ]
    assert told == [(100, 100), (400, 768)]
    around = [ledger.rows["judge", "judge"].prompt_tokens for ledger in (narrow, wide)]
    assert around[1] - around[0] == pytest.approx(2 * 300), "the judge reads what is awaited"

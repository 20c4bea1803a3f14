"""An analyst behind a real server: asked once, once more for what its reply lacks, and never with a name."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from dtef_pipeline.asking.request import Request, Response
from dtef_pipeline.rubric.analyst_reply import DIMENSIONS, INSIGHT_KINDS
from dtef_pipeline.rubric.analyst_report import ReportedPrompt, ReportedResponse, SummaryMaterial
from dtef_pipeline.rubric.anonymise import Participant
from dtef_pipeline.rubric.summary import first_request, next_request, prepared, summary_of
from resources.responses.store import ResponseStore
from tests.fake_llm_server import Call, FakeLLM, Fault, at_first
from tests.resources.gateway.gateway_setup import gateway, model

TWO = (Participant("openai/gpt-4o", 0.0), Participant("anthropic/claude-sonnet-4", 0.0))
PROMPT = ReportedPrompt(
    "p",
    "Who are you?",
    (ReportedResponse(TWO[0], "I am ChatGPT.", 0.5), ReportedResponse(TWO[1], "Claude, by Anthropic.", 1.0)),
)
CASE = prepared(SummaryMaterial("b", "base", "hash", (PROMPT,)))


def analyst(call: Call) -> str:
    """Forgets topics and all grades but those for clarity, and writes what it is asked for then."""
    models = re.findall(r'^maker="MK_\d+" model="MD_\d+"$', call.body["messages"][1]["content"], re.MULTILINE)
    again = len(call.body["messages"]) > 2
    kinds = [kind for kind in INSIGHT_KINDS if (kind == "topic") is again]
    dimensions = [dimension for dimension in DIMENSIONS if (dimension != "clarity") is again]
    grades = (f'<grade {who} dimension="{one}">REASONING: so. SCORE: 6/10</grade>' for who in models for one in dimensions)
    return "".join(f"<{kind}>{models and f'<ref {models[0]}/>'}</{kind}>" for kind in kinds) + "\n".join(grades)


def answer(store: ResponseStore, server: FakeLLM, request: Request) -> Response:
    assert gateway(store).answer([request]).failures == {}
    (row,) = store.responses([request.key]).to_pylist()
    return Response(**{**row, "answered_at": row["answered_at"] or datetime.now(UTC)})


def test_what_is_missing_is_asked_for_once_more_and_a_rerun_asks_nobody(store: ResponseStore) -> None:
    with FakeLLM(reply=analyst, fault=at_first(Fault("status", status=503))) as server:
        first = first_request(CASE, model(server))
        for _ in range(2):
            one = answer(store, server, first)
            further = next_request(CASE, first, [one.text])
            assert further is not None
            other = answer(store, server, further)
            assert next_request(CASE, first, [one.text, other.text]) is None
    assert server.answered == 2
    summary = summary_of(CASE, [one, other])
    assert (summary.status, len(summary.reply.grades)) == ("ok", 26)
    sent = " ".join(message["content"] for call in server.calls for message in call.body["messages"]).lower()
    assert not re.search("gpt|claude|openai|anthropic", sent)
    assert all(call.body["max_tokens"] >= 2_000 for call in server.calls)


def test_it_counts_for_the_analyst(store: ResponseStore) -> None:
    with FakeLLM(reply=analyst) as server:
        asking = gateway(store)
        asking.answer([first_request(CASE, model(server))])
    assert set(asking.used) == {"analyst"}

"""Every task from prompt to score, asked of a server that answers each prompt in the form it asks for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.boards.costs import costs
from dtef_pipeline.survey.stages import SURVEY_CALL_TABLES
from tests.assets.conftest import Pipeline
from tests.fake_llm_server import Call, FakeLLM

SHARES = {"Yes": 50, "No": 30, "Maybe": 20}
CONDITIONS = [
    f"{task}/{form}{flags}"
    for task in ("distribution", "shift", "synthetic-individuals=10", "batch=3")
    for form, flags in (("attribute-label", ""), ("narrative", "+cot+reversed"), ("attribute-label", "+structured+rotated-1"))
]
CONDITIONS += [f"{task}/narrative+population+cot+rotated-1" for task in ("distribution", "synthetic-individuals=10", "batch=3")]
DECOY = "At first glance [98, 1, 1] comes to mind."


def honest(call: Call) -> str:
    """The same shares for every question, by label, in the order listed, in the form that the prompt asks for."""
    target = re.split(r"Questions? to (?:predict|answer)", call.user)[-1]
    listed = re.findall(r"^([a-z])\. (Yes|No|Maybe)$", target, re.MULTILINE)
    questions = [listed[start : start + 3] for start in range(0, len(listed), 3)]
    schema = (call.body.get("response_format") or {}).get("json_schema", {}).get("schema")
    value, key = _value(call.user, questions)
    if schema:
        inside = value if key == "DISTRIBUTIONS" else {key.lower(): value}
        assert set(schema["required"]) == set(inside) | ({"reasoning"} & set(schema["required"]))
        return json.dumps({**({"reasoning": DECOY} if "reasoning" in schema["required"] else {}), **inside})
    return f"{DECOY}\n{key}: {json.dumps(value)}" if f"{key}:" in call.user else json.dumps(value)


def _value(user: str, questions: list[list[tuple[str, str]]]) -> tuple[Any, str]:
    if len(questions) > 1 or '"Q1"' in user:
        return {f"Q{i}": [SHARES[label] for _, label in listed] for i, listed in enumerate(questions, start=1)}, "DISTRIBUTIONS"
    if "letter" in user.rpartition("\n\n")[2]:
        return [letter for letter, label in questions[0] for _ in range(SHARES[label] // 10)], "ANSWERS"
    return [SHARES[label] for _, label in questions[0]], "DISTRIBUTION"


@pytest.fixture
def models(state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = state / "models.yaml"
    monkeypatch.setenv("DTEF_MODELS", str(path))
    return path


def test_every_task_and_form_is_scored_as_intended_and_asked_once(pipeline: Pipeline, models: Path) -> None:
    with FakeLLM(reply=honest) as server:
        models.write_text(f"models: {{fake: {{model: openai/fake, api_base: '{server.base_url}'}}}}")
        keys = [key for key in pipeline.keys if key.endswith("kenya")]
        how = {"conditions": CONDITIONS, "context_levels": ["0", "1"]}
        assert pipeline.run(keys=keys, blueprints=how, predictions={"models": ["fake"], **how}).failures == ()
        first = server.answered
        assert pipeline.run(["predictions"], keys=keys, predictions={"models": ["fake"], **how}).failures == ()
        # Without context narrative and labels are one prompt; the batch of the three questions is one as well.
        assert server.answered == first == len(server.calls)
        assert len({json.dumps(call.body["messages"]) for call in server.calls}) == first
    rows = [row for row in pipeline.house.read("scores").to_pylist() if row["model"] == "fake"]
    unread = {(row["condition"], row["status"], row["reason"]) for row in rows if row["status"] != "ok"}
    assert not unread
    assert {row["condition"] for row in rows} == set(CONDITIONS)
    assert {tuple(round(share, 9) for share in row["predicted"]) for row in rows} == {(0.5, 0.3, 0.2)}
    assert len(rows) == len(CONDITIONS) * 2 * 3 * len(keys)


def test_what_is_asked_about_everyone_is_paid_once_and_scored_in_every_segment(pipeline: Pipeline, models: Path) -> None:
    how = {"conditions": ["distribution/attribute-label+population"], "context_levels": ["0"]}
    keys = [key for key in pipeline.keys if key.startswith("T1")]
    with FakeLLM(reply=honest) as server:
        model = f"{{model: openai/fake, api_base: '{server.base_url}', input_price: 1, output_price: 2}}"
        models.write_text(f"models: {{fake: {model}}}")
        outcome = pipeline.run(keys=keys, blueprints=how, predictions={"models": ["fake"], **how})
        assert outcome.failures == ()
        assert all(pipeline.checks(outcome).values())
        assert server.answered == len(server.calls) == 3
    rows = [row for row in pipeline.house.read("scores").to_pylist() if row["model"] == "fake"]
    assert len(rows) == 3 * len(keys)
    # One answer, held against each segment's own.
    assert len({row["score"] for row in rows if row["question_id"] == "q0"}) == len(keys)
    with pipeline.house.connect(only=["predictions"]) as connection:
        paid = costs(connection, "survey", SURVEY_CALL_TABLES, lambda keys: pa.table({})).to_pylist()
    assert [(row["second_level"], row["answered"]) for row in paid] == [("country:chile", 3)]
    assert paid[0]["cost_usd"] > 0

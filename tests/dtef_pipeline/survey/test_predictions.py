"""Prediction rows: which prompts are asked, what answers become, and what stays of earlier runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure
from dtef_pipeline.asking.request_list import RequestList
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.predictions import CALLS, build_baseline_rows, select_prompts
from dtef_pipeline.survey.question_draw import Sample
from dtef_pipeline.survey.tables import PREDICTIONS
from resources.responses.store import RESPONSES
from tests.made.scores import survey_rows

LLM = ModelSpec(name="gpt", model="openai/gpt", temperature=0)
WARM = ModelSpec(name="warm", model="openai/gpt", temperature=0.7)
UNIFORM = ModelSpec(name="baseline/uniform", model="baseline/uniform")
AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)


def questions() -> list[dict[str, Any]]:
    return [{"question_text": f"Question number {q}?"} for q in range(4)]


SURVEY = survey_rows(*questions())
PROMPTS = build_blueprints(SURVEY, BlueprintOptions(("0", "2", "all")))


def stored(*keys: str, **given: Any) -> pa.Table:
    plain = {"text": "[50, 30, 20]", "finish_reason": "stop", "served_model": "gpt-9", "latency_s": 0.5, "attempts": 2}
    return pa.Table.from_pylist([{"request_key": key, **plain, "answered_at": AT, **given} for key in keys], schema=RESPONSES)


def answered(model: ModelSpec, prompts: pa.Table = PROMPTS, snapshot: str = "base", draws: int = 1, **given: Any) -> pa.Table:
    keys = CALLS.plan_calls(prompts, model, draws, snapshot).requests.keys
    return CALLS.build_answered_rows(prompts, model, draws, snapshot, stored(*dict.fromkeys(keys), **given), {})


class TestSelectPrompts:
    def test_levels_and_first_questions_narrow(self) -> None:
        chosen = select_prompts(PROMPTS, SURVEY, context_levels=["all", "0"], sample=Sample(2))
        assert chosen.select(["question_id", "context_level"]).to_pylist() == [
            {"question_id": q, "context_level": level} for q in ("q0", "q1") for level in ("0", "all")
        ]

    def test_conditions_narrow_and_one_never_made_is_named(self) -> None:
        reversed_ = build_blueprints(SURVEY, BlueprintOptions(), BlueprintOptions(show_n=True))
        assert len(select_prompts(reversed_, SURVEY, conditions=["distribution/attribute-label"])) == 4
        with pytest.raises(
            ConfigError, match="no blueprints of condition shift/narrative; made so far: distribution/attribute-label"
        ):
            select_prompts(reversed_, SURVEY, conditions=["shift/narrative"])


def as_batch(prompts: pa.Table, **reading: Any) -> pa.Table:
    """The first three questions at context level 0 as one prompt."""
    rows = [row for row in prompts.to_pylist() if row["context_level"] == "0"][:3]
    shared = {"prompt_id": "one-prompt", "answer_tokens": 288, "response_schema": "{}"}
    return pa.Table.from_pylist(
        [{**row, **shared, "reading": {"task": "distribution", "place": place, **reading}} for place, row in enumerate(rows)],
        schema=prompts.schema,
    )


class TestSharedPrompts:
    def test_questions_of_one_prompt_are_asked_once_a_draw(self) -> None:
        requests = RequestList([CALLS.plan_calls(as_batch(PROMPTS), LLM, 2, "base").requests])
        assert [(request.prompt_id, request.draw) for request in requests] == [("one-prompt", 0), ("one-prompt", 1)]
        assert {(request.answer_tokens, request.response_schema, request.choices) for request in requests} == {(288, "{}", ())}

    def test_every_question_has_a_row_and_the_usage_stands_once(self) -> None:
        rows = answered(LLM, as_batch(PROMPTS), draws=2, prompt_tokens=90, completion_tokens=30, cost_usd=0.5).to_pylist()
        assert [row["question_id"] for row in rows] == ["q0", "q0", "q1", "q1", "q2", "q2"]
        assert [row["cost_usd"] for row in rows] == [0.5, 0.5, 0, 0, 0, 0]
        assert [row["prompt_tokens"] for row in rows] == [90, 90, 0, 0, 0, 0]
        assert {row["response"] for row in rows} == {"[50, 30, 20]"}
        assert [row["reading"]["place"] for row in rows] == [0, 0, 1, 1, 2, 2]

    def test_baselines_answer_in_the_order_of_the_survey_whatever_the_prompt(self) -> None:
        rows = build_baseline_rows(as_batch(PROMPTS), SURVEY, UNIFORM, 1, "base", {})
        assert rows["reading"].null_count == len(rows) == 3


class TestAnsweredRows:
    def test_responses_are_matched_by_key_not_by_place(self) -> None:
        keys = CALLS.plan_calls(PROMPTS, LLM, 1, "base").requests.keys
        texts = {key: f"[{place}, 1, 1]" for place, key in enumerate(keys)}
        responses = pa.concat_tables([stored("stranger"), *(stored(key, text=texts[key]) for key in reversed(keys))])
        rows = CALLS.build_answered_rows(PROMPTS, LLM, 1, "base", responses, {})
        assert rows["response"].to_pylist() == list(texts.values())

    def test_no_answer_is_an_error_row_with_its_reason_and_the_others_stand(self) -> None:
        keys = CALLS.plan_calls(PROMPTS, LLM, 1, "base").requests.keys
        failures = {keys[1]: Failure(keys[1], "HTTP 400: too long", 1)}
        rows = CALLS.build_answered_rows(PROMPTS, LLM, 1, "base", stored(*keys[3:]), failures).to_pylist()
        assert [row["call_status"] for row in rows] == ["error"] * 3 + ["answered"] * 9
        assert (rows[1]["error"], rows[1]["attempts"], rows[1]["response"]) == ("HTTP 400: too long", 1, None)
        assert rows[0]["error"] == "was not sent: the run ended first"


class TestMerge:
    def test_models_of_earlier_runs_stay_and_answers_replace_errors(self) -> None:
        failed = CALLS.build_answered_rows(PROMPTS, LLM, 1, "base", stored(), {})
        merged = CALLS.merge_rows(CALLS.merge_rows(PREDICTIONS.empty_table(), failed, PROMPTS), answered(WARM), PROMPTS)
        assert merged["model"].to_pylist() == ["gpt"] * 12 + ["warm"] * 12
        again = CALLS.merge_rows(merged, answered(LLM), PROMPTS)
        assert set(again["call_status"].to_pylist()) == {"answered"}
        assert len(again) == 24

    def test_rows_whose_prompt_no_longer_stands_go(self) -> None:
        changed = build_blueprints(
            survey_rows({"question_text": "Something else?"}, *questions()[1:]), BlueprintOptions(("0",))
        )
        merged = CALLS.merge_rows(answered(LLM), answered(WARM, changed), changed)
        kept = [row["question_id"] for row in merged.to_pylist() if row["model"] == "gpt"]
        assert kept == ["q1", "q2", "q3"]

    def test_one_text_at_two_context_levels_keeps_a_row_at_each(self) -> None:
        """A segment with nothing to show as context has the same text at every level; the rows of one level used to be lost."""
        survey = survey_rows({}, {"circular": True})
        prompts = build_blueprints(survey, BlueprintOptions(("0", "5")))
        assert len(set(prompts["prompt_id"].to_pylist())) == 3
        new = answered(LLM, prompts)
        merged = CALLS.merge_rows(PREDICTIONS.empty_table(), new, prompts)
        assert merged["context_level"].to_pylist() == ["0", "5", "0", "5"]
        assert CALLS.merge_rows(merged, new, prompts).equals(merged)
        zero = select_prompts(prompts, survey, context_levels=["0"])
        assert CALLS.merge_rows(merged, answered(LLM, zero), prompts).equals(merged)

"""Prediction rows: which prompts are asked, what answers become, and what stays of earlier runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import request_key
from dtef_pipeline.survey.baselines.baselines import OF_NEIGHBOURS
from dtef_pipeline.survey.baselines.neighbours import RoundAnswers
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.predictions import CALLS, baseline_rows, select_prompts
from dtef_pipeline.survey.question_draw import Sample
from dtef_pipeline.survey.tables import PREDICTIONS
from tests.made.scores import survey_rows

LLM = ModelSpec(name="gpt", model="openai/gpt", temperature=0)
WARM = ModelSpec(name="warm", model="openai/gpt", temperature=0.7)
UNSET = ModelSpec(name="unset", model="openai/gpt", temperature=None)
UNIFORM = ModelSpec(name="baseline/uniform", model="baseline/uniform")
OTHERS = ModelSpec(name="baseline/leave-one-out-marginal", model="baseline/leave-one-out-marginal")
NEAREST, BAYES = (ModelSpec(name=name, model=name) for name in OF_NEIGHBOURS)
STORED = pa.schema(
    [
        ("request_key", pa.string()),
        ("text", pa.string()),
        ("finish_reason", pa.string()),
        ("served_model", pa.string()),
        ("fingerprint", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
        ("cost_usd", pa.float64()),
        ("reported_cost_usd", pa.float64()),
        ("cached_tokens", pa.int32()),
        ("reasoning_tokens", pa.int32()),
        ("unknown_cost_attempts", pa.int32()),
        ("unknown_cost_usd_most", pa.float64()),
        ("latency_s", pa.float64()),
        ("attempts", pa.int32()),
        ("answered_at", pa.timestamp("us", tz="UTC")),
    ]
)
AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)


def questions(count: int = 4) -> list[dict[str, Any]]:
    return [{"question_text": f"Question number {q}?"} for q in range(count)]


SURVEY = survey_rows(*questions())
PROMPTS = build_blueprints(SURVEY, BlueprintOptions(("0", "2", "all")))


def stored(*keys: str, **given: Any) -> pa.Table:
    plain = {"text": "[50, 30, 20]", "finish_reason": "stop", "served_model": "gpt-9", "latency_s": 0.5, "attempts": 2}
    return pa.Table.from_pylist([{"request_key": key, **plain, "answered_at": AT, **given} for key in keys], schema=STORED)


def answered(model: ModelSpec, prompts: pa.Table = PROMPTS, snapshot: str = "base", draws: int = 1, **given: Any) -> pa.Table:
    keys = [request.key for request in CALLS.requests(prompts, model, draws, snapshot)]
    return CALLS.answered(prompts, model, draws, snapshot, stored(*dict.fromkeys(keys), **given), {})


class TestSelectPrompts:
    def test_everything_unless_narrowed(self) -> None:
        assert select_prompts(PROMPTS, SURVEY).equals(PROMPTS)

    def test_levels_and_first_questions_narrow(self) -> None:
        chosen = select_prompts(PROMPTS, SURVEY, context_levels=["all", "0"], sample=Sample(2))
        assert chosen.select(["question_id", "context_level"]).to_pylist() == [
            {"question_id": q, "context_level": level} for q in ("q0", "q1") for level in ("0", "all")
        ]

    def test_more_questions_than_there_are_is_all_of_them(self) -> None:
        assert len(select_prompts(PROMPTS, SURVEY, sample=Sample(99))) == 12

    def test_the_draw_counts_questions_of_the_round_even_where_a_segment_lacks_some(self) -> None:
        survey = SURVEY.take([3, 1])
        prompts = build_blueprints(survey, BlueprintOptions())
        assert select_prompts(prompts, survey, sample=Sample(2))["question_id"].to_pylist() == ["q1"]

    def test_a_level_never_made_is_an_error_that_lists_those_made(self) -> None:
        with pytest.raises(ConfigError, match="no blueprints of context level 5, 7; made so far: 0, 2, all"):
            select_prompts(PROMPTS, SURVEY, context_levels=["7", "0", "5"])

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
        requests = CALLS.requests(as_batch(PROMPTS), LLM, 2, "base")
        assert [(request.prompt_id, request.draw) for request in requests] == [("one-prompt", 0), ("one-prompt", 1)]
        assert {(request.answer_tokens, request.response_schema, request.choices) for request in requests} == {(288, "{}", ())}

    def test_every_question_has_a_row_and_the_usage_stands_once(self) -> None:
        rows = answered(LLM, as_batch(PROMPTS), draws=2, prompt_tokens=90, completion_tokens=30, cost_usd=0.5).to_pylist()
        assert [row["question_id"] for row in rows] == ["q0", "q0", "q1", "q1", "q2", "q2"]
        assert [row["cost_usd"] for row in rows] == [0.5, 0.5, 0, 0, 0, 0]
        assert [row["prompt_tokens"] for row in rows] == [90, 90, 0, 0, 0, 0]
        assert {row["response"] for row in rows} == {"[50, 30, 20]"}
        assert [row["reading"]["place"] for row in rows] == [0, 0, 1, 1, 2, 2]

    def test_an_unknown_cost_stays_unknown_at_its_first_row_alone(self) -> None:
        assert [row["cost_usd"] for row in answered(LLM, as_batch(PROMPTS)).to_pylist()] == [None, 0, 0]

    def test_choices_are_listed_in_the_order_of_the_prompt(self) -> None:
        reading = {"task": "distribution", "order": [2, 0, 1]}
        prompts = pa.Table.from_pylist([{**PROMPTS.to_pylist()[0], "reading": reading}], schema=PROMPTS.schema)
        options = prompts["options"][0].as_py()
        assert CALLS.requests(prompts, LLM, 1, "base")[0].choices == (options[2], options[0], options[1])

    def test_baselines_answer_in_the_order_of_the_survey_whatever_the_prompt(self) -> None:
        rows = baseline_rows(as_batch(PROMPTS), SURVEY, UNIFORM, 1, "base", {})
        assert rows["reading"].null_count == len(rows) == 3

    def test_a_request_stopped_by_a_budget_says_so(self) -> None:
        prompts = as_batch(PROMPTS)
        key = CALLS.requests(prompts, LLM, 1, "base")[0].key
        failures = {key: Failure(key, "not asked: max_calls of 5 was reached", 0, "budget")}
        rows = CALLS.answered(prompts, LLM, 1, "base", stored(), failures).to_pylist()
        assert {(row["call_status"], row["error"]) for row in rows} == {("budget", "not asked: max_calls of 5 was reached")}

    def test_merging_keeps_every_question_of_a_prompt(self) -> None:
        prompts = as_batch(PROMPTS)
        merged = CALLS.merged(answered(LLM, prompts), answered(WARM, prompts), prompts)
        assert [(row["model"], row["question_id"]) for row in merged.to_pylist()] == [
            (model, question) for model in ("gpt", "warm") for question in ("q0", "q1", "q2")
        ]


class TestKeys:
    def test_requests_and_rows_are_in_one_order_with_one_key(self) -> None:
        requests = CALLS.requests(PROMPTS, LLM, 3, "2026-01-01")
        rows = CALLS.keys(PROMPTS, LLM, 3, "2026-01-01")
        assert [request.key for request in requests] == rows["request_key"].to_pylist()
        assert rows["draw"].to_pylist() == [0, 1, 2] * 12
        first = rows.to_pylist()[1]
        assert first["request_key"] == request_key(first["prompt_id"], LLM.variant, 1, "2026-01-01")

    def test_a_request_carries_the_prompt_and_the_options(self) -> None:
        request = CALLS.requests(PROMPTS, LLM, 1, "base")[0]
        first = PROMPTS.to_pylist()[0]
        assert (request.system, request.user, list(request.choices)) == (first["system"], first["user"], first["options"])

    @pytest.mark.parametrize(("model", "temperature"), [(LLM, 0.0), (WARM, 0.7), (UNSET, None), (UNIFORM, None)])
    def test_temperature_zero_is_zero_and_unset_is_null(self, model: ModelSpec, temperature: float | None) -> None:
        assert set(CALLS.keys(PROMPTS, model, 1, "base")["temperature"].to_pylist()) == {temperature}


class TestBaselineRows:
    def test_a_baseline_answers_for_nothing_and_at_no_time(self) -> None:
        rows = baseline_rows(PROMPTS, SURVEY, UNIFORM, 2, "base", {})
        assert rows.schema == PREDICTIONS
        assert len(rows) == 24
        assert set(rows["call_status"].to_pylist()) == {"answered"}
        assert set(rows["cost_usd"].to_pylist()) == {0.0}
        assert rows["answered_at"].null_count == rows["error"].null_count == len(rows)

    def test_nothing_to_say_is_missing_with_its_reason(self) -> None:
        survey = survey_rows({"others": None, "others_n": 0}, {})
        rows = baseline_rows(build_blueprints(survey, BlueprintOptions()), survey, OTHERS, 1, "base", {}).to_pylist()
        assert [(r["question_id"], r["call_status"], r["response"] is None) for r in rows] == [
            ("q0", "missing", True),
            ("q1", "answered", False),
        ]
        assert rows[0]["error"] == "no other segment of this attribute answered the question"


class TestNeighbourRows:
    """Answers of other segments: three countries beside Kenya."""

    COUNTRIES = ("kenya", "chile", "india", "japan", "norway")
    SHARES = ((0.5, 0.3, 0.2), (0.4, 0.4, 0.2), (0.1, 0.1, 0.8), (0.6, 0.2, 0.2), (0.2, 0.5, 0.3))
    ROUND = survey_rows(
        *(
            {
                "segment": f"country:{country}",
                "question_id": f"q{q}",
                "observed": np.roll(shares, q % 2).tolist(),
                "n": 20 + place,
            }
            for place, (country, shares) in enumerate(zip(COUNTRIES, SHARES, strict=True))
            for q in range(4)
        )
    )

    def rows(self, model: ModelSpec, prompts: pa.Table = PROMPTS, draws: int = 1) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = baseline_rows(
            prompts, SURVEY, model, draws, "base", {}, RoundAnswers.of(self.ROUND)
        ).to_pylist()
        return made

    def test_the_nearest_say_nothing_without_context_and_the_shrunken_say_the_marginal(self) -> None:
        for row in self.rows(NEAREST):
            why = "the prompt has no context questions, and without them it is not known which segments answer alike"
            expected = ("missing", why) if row["context_level"] == "0" else ("answered", None)
            assert (row["call_status"], row["error"]) == expected
            assert (row["response"] is None) == (row["context_level"] == "0")
        bare = [row["response"] for row in self.rows(BAYES) if row["context_level"] == "0"]
        assert [json.loads(text) for text in bare] == [pytest.approx([30, 30, 40])] * 4

    def test_alone_in_its_attribute_the_reason_is_another(self) -> None:
        rows = baseline_rows(PROMPTS, SURVEY, NEAREST, 1, "base", {}).to_pylist()
        reasons = {row["context_level"]: row["error"] for row in rows}
        assert reasons["0"] != reasons["2"] == reasons["all"]
        assert reasons["2"] == "no other segment of this attribute answered the question and a context question of the prompt"

    @pytest.mark.parametrize(
        "condition", ["shift/narrative+cot", "batch=2", "synthetic-individuals=7+reversed", "distribution+population"]
    )
    def test_the_same_context_gives_the_same_answer_however_it_is_asked(self, condition: str) -> None:
        prompts = build_blueprints(SURVEY, BlueprintOptions.of_condition(condition, ("1",)))
        context = {row["question_id"]: tuple(row["context_question_ids"]) for row in prompts.to_pylist()}
        plain = build_blueprints(SURVEY, BlueprintOptions(("1",)))
        same = {
            row["question_id"] for row in plain.to_pylist() if tuple(row["context_question_ids"]) == context[row["question_id"]]
        }
        assert same
        for model in (NEAREST, BAYES):
            found, meant = ({row["question_id"]: row["response"] for row in self.rows(model, p)} for p in (prompts, plain))
            assert {q: found[q] for q in same} == {q: meant[q] for q in same}
            assert {row["reading"] for row in self.rows(model, prompts)} == {None}

    def test_draws_repeat_the_answer_and_a_second_time_it_is_the_same_to_the_last_digit(self) -> None:
        for model in (NEAREST, BAYES):
            once, twice = self.rows(model), self.rows(model, draws=2)
            assert [row["response"] for row in twice] == [row["response"] for row in once for _ in range(2)]
            assert [row["draw"] for row in twice] == [0, 1] * len(once)
            assert self.rows(model) == once


class TestAnsweredRows:
    def test_an_answer_keeps_everything_the_store_has(self) -> None:
        row = answered(LLM, PROMPTS.slice(0, 1), cost_usd=0.001, prompt_tokens=90, completion_tokens=8).to_pylist()[0]
        assert row["call_status"] == "answered"
        assert (row["response"], row["served_model"], row["finish_reason"]) == ("[50, 30, 20]", "gpt-9", "stop")
        assert (row["cost_usd"], row["prompt_tokens"], row["completion_tokens"]) == (0.001, 90, 8)
        assert (row["latency_s"], row["attempts"], row["answered_at"], row["error"]) == (0.5, 2, AT, None)

    def test_an_unknown_cost_is_null(self) -> None:
        assert answered(LLM)["cost_usd"].null_count == len(PROMPTS)

    def test_responses_are_matched_by_key_not_by_place(self) -> None:
        keys = [request.key for request in CALLS.requests(PROMPTS, LLM, 1, "base")]
        texts = {key: f"[{place}, 1, 1]" for place, key in enumerate(keys)}
        responses = pa.concat_tables([stored("stranger"), *(stored(key, text=texts[key]) for key in reversed(keys))])
        rows = CALLS.answered(PROMPTS, LLM, 1, "base", responses, {})
        assert rows["response"].to_pylist() == list(texts.values())

    def test_no_answer_is_an_error_row_with_its_reason_and_the_others_stand(self) -> None:
        keys = [request.key for request in CALLS.requests(PROMPTS, LLM, 1, "base")]
        failures = {keys[1]: Failure(keys[1], "HTTP 400: too long", 1)}
        rows = CALLS.answered(PROMPTS, LLM, 1, "base", stored(*keys[3:]), failures).to_pylist()
        assert [row["call_status"] for row in rows] == ["error"] * 3 + ["answered"] * 9
        assert (rows[1]["error"], rows[1]["attempts"], rows[1]["response"]) == ("HTTP 400: too long", 1, None)
        assert rows[0]["error"] == "was not asked: the run ended before its turn"

    def test_an_empty_answer_is_an_answer(self) -> None:
        rows = answered(LLM, text="")
        assert set(rows["call_status"].to_pylist()) == {"answered"}
        assert set(rows["response"].to_pylist()) == {""}

    def test_nothing_stored_and_nothing_asked_are_no_trouble(self) -> None:
        assert set(CALLS.answered(PROMPTS, LLM, 1, "base", stored(), {})["call_status"].to_pylist()) == {"error"}
        assert CALLS.answered(PROMPTS.slice(0, 0), LLM, 1, "base", stored(), {}).schema == PREDICTIONS


class TestMerge:
    def test_models_of_earlier_runs_stay_and_answers_replace_errors(self) -> None:
        failed = CALLS.answered(PROMPTS, LLM, 1, "base", stored(), {})
        merged = CALLS.merged(CALLS.merged(PREDICTIONS.empty_table(), failed, PROMPTS), answered(WARM), PROMPTS)
        assert merged["model"].to_pylist() == ["gpt"] * 12 + ["warm"] * 12
        again = CALLS.merged(merged, answered(LLM), PROMPTS)
        assert set(again["call_status"].to_pylist()) == {"answered"}
        assert len(again) == 24

    def test_rows_whose_prompt_no_longer_stands_go(self) -> None:
        changed = build_blueprints(
            survey_rows({"question_text": "Something else?"}, *questions()[1:]), BlueprintOptions(("0",))
        )
        merged = CALLS.merged(answered(LLM), answered(WARM, changed), changed)
        kept = [row["question_id"] for row in merged.to_pylist() if row["model"] == "gpt"]
        assert kept == ["q1", "q2", "q3"]

    def test_a_level_that_is_no_longer_made_goes_with_its_rows(self) -> None:
        fewer = build_blueprints(SURVEY, BlueprintOptions(("0",)))
        merged = CALLS.merged(answered(LLM), PREDICTIONS.empty_table(), fewer)
        assert set(merged["context_level"].to_pylist()) == {"0"}
        assert len(merged) == 4

    def test_every_row_gets_the_blueprint_hash_of_now(self) -> None:
        fewer = build_blueprints(SURVEY, BlueprintOptions(("0",)))
        merged = CALLS.merged(answered(LLM, fewer), answered(WARM), PROMPTS)
        assert set(merged["blueprint_hash"].to_pylist()) == {PROMPTS["blueprint_hash"][0].as_py()}
        assert len(merged) == 16

    def test_order_does_not_depend_on_which_run_came_first(self) -> None:
        one = CALLS.merged(answered(LLM, draws=2), answered(WARM), PROMPTS)
        other = CALLS.merged(answered(WARM), answered(LLM, draws=2), PROMPTS)
        assert one.equals(other)
        assert one["draw"].to_pylist() == [0] * 12 + [1] * 12 + [0] * 12

    def test_fewer_draws_do_not_drop_the_earlier_ones(self) -> None:
        merged = CALLS.merged(answered(LLM, draws=3), answered(LLM), PROMPTS)
        assert len(merged) == 36
        assert len(set(merged["request_key"].to_pylist())) == 36

    def test_an_empty_run_on_nothing_is_empty(self) -> None:
        empty = PREDICTIONS.empty_table()
        assert CALLS.merged(empty, empty, PROMPTS).equals(empty)

    def test_one_text_at_two_context_levels_keeps_a_row_at_each(self) -> None:
        """A segment with nothing to show as context has the same text at every level; the rows of one level used to be lost."""
        survey = survey_rows({}, {"circular": True})
        prompts = build_blueprints(survey, BlueprintOptions(("0", "5")))
        assert len(set(prompts["prompt_id"].to_pylist())) == 3
        new = answered(LLM, prompts)
        merged = CALLS.merged(PREDICTIONS.empty_table(), new, prompts)
        assert merged["context_level"].to_pylist() == ["0", "5", "0", "5"]
        assert CALLS.merged(merged, new, prompts).equals(merged)
        zero = select_prompts(prompts, survey, context_levels=["0"])
        assert CALLS.merged(merged, answered(LLM, zero), prompts).equals(merged)

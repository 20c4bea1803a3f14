"""What holds for every way to ask: any task, format, order and system prompt, on any survey."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.errors import DtefError
from dtef_pipeline.survey.blueprint.options import PROFILES, REASONINGS, TASKS, BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints, list_left_out, split_question_batches
from dtef_pipeline.survey.blueprint.wording import build_response_schema, format_option_letter
from tests.dtef_pipeline.survey.blueprint.test_options import OWN, choices
from tests.made.scores import survey_rows

PLAIN = survey_rows(*({} for _ in range(8)))
FORMS = [
    BlueprintOptions(task=task, reasoning=reasoning, structured=structured, profile=profile)
    for task, reasoning, structured, profile in product(TASKS, REASONINGS, (False, True), PROFILES)
    if (task, profile) != ("shift", "population")
]


def asked(table: Any = PLAIN, condition: str = "distribution", levels: tuple[str, ...] = ("0",)) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = build_blueprints(table, BlueprintOptions.parse_condition(condition, levels, OWN)).to_pylist()
    return rows


@st.composite
def surveys(draw: st.DrawFn) -> Any:
    """Up to seven questions of two to four options; some circular, some duplicates of an earlier one, some long."""
    rows: list[dict[str, Any]] = []
    for place in range(draw(st.integers(1, 7))):
        first = next((row for row in rows if draw(st.booleans()) and not row["duplicate_of"]), None)
        count = len(first["options"]) if first else draw(st.integers(2, 4))
        people = draw(st.lists(st.integers(0, 30), min_size=count, max_size=count).filter(any))
        length = draw(st.sampled_from([1, 1, 1, 300, 3000]))
        rows.append(
            {
                "question_text": first["question_text"] if first else f"Question {place}? " + "word " * length,
                "options": first["options"] if first else [f"choice {place} {letter}" for letter in "wxyz"[:count]],
                "duplicate_of": f"q{rows.index(first)}" if first else None,
                "circular": draw(st.sampled_from([False, False, True])),
                "dont_know": [False] * count,
                "observed": [number / sum(people) for number in people],
                "population": draw(st.just([1 / count] * count) | st.none()),
                "leave_one_out_marginal": None,
                "shuffled": None,
            }
        )
    return survey_rows(*rows)


def built(survey: Any, options: BlueprintOptions) -> list[dict[str, Any]]:
    """The rows; none where nothing can be asked."""
    try:
        rows: list[dict[str, Any]] = build_blueprints(survey, options).to_pylist()
    except DtefError:
        return []
    return rows


LEVELS = st.sampled_from([("0",), ("2",), ("1", "all")])


@given(surveys(), choices(), LEVELS)
def test_context_never_gives_a_target_of_the_prompt_away(
    survey: Any, options: BlueprintOptions, levels: tuple[str, ...]
) -> None:
    questions = {row["question_id"]: row for row in survey.to_pylist()}
    of_prompt = defaultdict(set)
    rows = built(survey, BlueprintOptions.parse_condition(options.condition, levels, OWN))
    for row in rows:
        of_prompt[row["prompt_id"]].add(row["question_id"])
    for row in rows:
        kinds = {questions[asked]["duplicate_of"] or asked for asked in of_prompt[row["prompt_id"]]}
        shown = [questions[shown] for shown in row["context_question_ids"]]
        level = row["context_level"]
        assert len(shown) == row["context_included"] <= (len(questions) if level == "all" else int(level))
        assert not any(question["circular"] for question in shown)
        assert kinds.isdisjoint(question["duplicate_of"] or question["question_id"] for question in shown)
        assert all(row["user"].count(f"Question: {question['question_text']}") >= 1 for question in shown)


@given(surveys(), choices(), LEVELS)
def test_prompts_fit_the_budget_and_are_counted_in_full(
    survey: Any, options: BlueprintOptions, levels: tuple[str, ...]
) -> None:
    for row in built(survey, BlueprintOptions.parse_condition(options.condition, levels, OWN)):
        assert row["tokens"] <= options.token_budget - options.reserve
        assert row["tokens"] >= estimate_tokens(row["system"] + "\n" + row["user"])
        assert row["answer_tokens"] == options.answer_tokens


@given(surveys(), choices())
def test_what_is_asked_and_what_is_left_out_are_all_questions(survey: Any, options: BlueprintOptions) -> None:
    rows = built(survey, options)
    if rows:
        found = [row["question_id"] for row in rows]
        missing = list_left_out(survey, build_blueprints(survey, options), [options]).get(options.condition, [])
        assert sorted(found + missing) == sorted(survey["question_id"].to_pylist())
        unknown = {row["question_id"] for row in survey.to_pylist() if row["population"] is None}
        assert options.task != "shift" or unknown <= set(missing)


@given(surveys(), choices())
def test_the_reading_says_the_order_in_which_the_prompt_lists_the_options(survey: Any, options: BlueprintOptions) -> None:
    for row in built(survey, options):
        reading = row["reading"] or {}
        count = len(row["options"])
        order = reading.get("order") or list(range(count))
        assert sorted(order) == list(range(count))
        assert reading.get("order") != list(range(count))
        listed = "\n".join(f"{format_option_letter(place)}. {row['options'][option]}" for place, option in enumerate(order))
        name = "" if reading.get("place") is None else f"Q{reading['place'] + 1}. "
        assert f"{name}Question" in row["user"]
        assert listed in row["user"]
        assert bool(reading.get("marked")) == (options.reasoning == "cot")
        assert (reading.get("task") == "individuals") == (options.task == "synthetic-individuals")


@given(surveys(), choices())
def test_questions_of_a_batch_share_one_prompt_and_know_their_place(survey: Any, options: BlueprintOptions) -> None:
    by_prompt = defaultdict(list)
    for row in built(survey, options):
        by_prompt[row["prompt_id"]].append(row)
    for rows in by_prompt.values():
        assert len({(row["system"], row["user"], row["response_schema"]) for row in rows}) == 1
        if options.task == "batch":
            assert [row["reading"]["place"] for row in rows] == list(range(len(rows)))
            assert {row["reading"]["size"] for row in rows} == {len(rows)}
            assert len(rows) <= max(options.batch_size, 3)
        else:
            assert len(rows) == 1


@pytest.mark.parametrize("options", FORMS, ids=lambda options: options.condition)
def test_a_change_in_the_survey_is_another_prompt_where_it_is_seen(options: BlueprintOptions) -> None:
    def ids(**first: Any) -> list[str]:
        return [str(p) for p in build_blueprints(survey_rows(first, {}, {}, {}), options)["prompt_id"].to_pylist()]

    plain = ids()
    changes: list[dict[str, Any]] = [
        {"question_text": "Question number 0 ?"},
        {"options": ["agree", "Neutral", "Disagree"]},
        {"question_id": "q00"},
    ]
    if options.task == "shift":
        changes.append({"population": [0.401, 0.399, 0.2]})
    together = 2 if options.task == "batch" else 1
    for change in changes:
        assert [one == other for one, other in zip(plain, ids(**change), strict=True)] == [False] * together + [True] * (
            4 - together
        )


def objects(schema: Any) -> list[dict[str, Any]]:
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return ([schema] if isinstance(schema, dict) else []) + [found for part in inner for found in objects(part)]


@pytest.mark.parametrize("options", [form for form in FORMS if form.structured], ids=lambda options: options.condition)
def test_schemas_are_such_as_every_provider_takes(options: BlueprintOptions) -> None:
    schema = json.loads(build_response_schema(options, [3, 4]) or "")
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"])
    allowed = {"type", "properties", "required", "additionalProperties", "items", "enum", *schema["properties"]}
    assert {key for part in objects(schema) for key in part} <= allowed


def test_a_batch_too_long_for_the_budget_is_split() -> None:
    long = {"question_text": "word " * 1900}
    rows = asked(survey_rows(long, {}, long, {}, {"question_text": "word " * 5000}), "batch=4", ("all",))
    assert [(row["question_id"], row["reading"]["place"], row["reading"]["size"]) for row in rows] == [
        ("q0", 0, 2),
        ("q1", 1, 2),
        ("q2", 0, 2),
        ("q3", 1, 2),
    ]


SIZES = st.integers(2, 5)


@given(st.lists(st.sampled_from("abcdefghijklmnop"), max_size=40), SIZES)
def test_every_question_is_in_one_batch_and_no_batch_repeats_itself(kinds: list[str], size: int) -> None:
    made = split_question_batches(kinds, size)
    assert sorted(place for batch in made for place in batch) == list(range(len(kinds)))
    for batch in made:
        assert batch == sorted(batch)
        assert len({kinds[place] for place in batch}) == len(batch) <= max(size, 3)


@given(st.integers(2, 200), SIZES, st.data())
def test_none_is_alone_while_duplicates_are_few(questions: int, size: int, data: st.DataObject) -> None:
    kinds = [str(place) for place in range(questions)]
    if questions >= 4:
        one, other = data.draw(st.lists(st.integers(0, questions - 1), min_size=2, max_size=2, unique=True))
        kinds[one] = kinds[other]
    assert min(len(batch) for batch in split_question_batches(kinds, size)) > 1


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=20), SIZES)
def test_there_are_at_least_as_many_batches_as_duplicates(kinds: list[str], size: int) -> None:
    assert len(split_question_batches(kinds, size)) >= max(Counter(kinds).values())

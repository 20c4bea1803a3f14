"""Answers of all tasks: options in another order, single people, several questions at once, reasoning before a marked line."""

from __future__ import annotations

import json
import string
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fuzz_parser import READINGS
from dtef_pipeline.survey.blueprint.options import TASKS, BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.reading.parsing import AS_IN_THE_SURVEY, Reading, parse_response, parse_responses
from dtef_pipeline.survey.tables import READING, SURVEY_RESPONSES

THREE = ("Agree", "Disagree", "Unsure")
GOOD3 = (0.5, 0.3, 0.2)
NEVER = ("Yes", "No, never")
LAST_FIRST = Reading("distribution", order=(2, 0, 1))
COT = Reading("distribution", marked=True)
FOUR_PEOPLE = Reading("individuals", individuals=4)
FOUR_PEOPLE_COT = Reading("individuals", individuals=4, marked=True)
SECOND = Reading("distribution", place=1, size=3)
SECOND_COT = Reading("distribution", place=1, size=3, marked=True)
SURVEY = pa.Table.from_pylist(
    [
        {
            "round": "GD4",
            "segment": "country:kenya",
            "attribute": "country",
            "value": "Kenya",
            "question_id": f"q{order}",
            "question_order": order,
            "question_text": f"Do you agree with statement {order}?",
            "options": list(THREE),
            "scale": "ordinal",
            "observed": [0.2, 0.3, 0.5],
            "n": 57,
            "circular": False,
            "population": [0.25, 0.35, 0.4],
        }
        for order in range(2)
    ],
    schema=SURVEY_RESPONSES,
)


@pytest.mark.parametrize(
    "text",
    [
        "[20, 50, 30]",
        "20%, 50%, 30%",
        "a: 20%\nb: 50%\nc: 30%",
        "Agree: 50%\nDisagree: 30%\nUnsure: 20%",
        '{"b": 50, "c": 30, "a": 20}',
        "a. Unsure: 20%\nb. Agree: 50%\nc. Disagree: 30%",
    ],
)
def test_options_listed_in_another_order_are_put_back_into_that_of_the_survey(text: str) -> None:
    assert parse_response(text, 3, THREE, LAST_FIRST).distribution == pytest.approx(GOOD3)


def test_an_order_of_other_options_than_the_survey_has_is_missing_and_not_wrong() -> None:
    parsed = parse_response("[50, 50]", 3, THREE, Reading(order=(1, 0)))
    assert parsed.status == "missing"
    assert "[1, 0]" in parsed.reason


@pytest.mark.parametrize(
    "text",
    [
        "At first [40, 40, 20], but they are young.\nDISTRIBUTION: [50, 30, 20]",
        "I see 40% and 60%.\n\n**DISTRIBUTION:** [50, 30, 20]\n\nThis is far from [40, 40, 20].",
        "So they lean to agree. DISTRIBUTION: 50%, 30%, 20%",
        "Hence:\nDISTRIBUTION:\n```json\n[50,\n30,\n20]\n```",
        "Final distribution:\nAgree: 50%\nDisagree: 30%\nUnsure: 20%",
        '{"reasoning": "From [40, 40, 20].\\nDISTRIBUTION: [1, 1, 2]", "distribution": [50, 30, 20]}',
        '```json\n{"reasoning": "From [40, 40, 20].", "distribution": [50, 30, 20]}\n```',
        "[50, 30, 20]",
    ],
)
def test_after_a_reasoning_only_the_marked_answer_counts(text: str) -> None:
    assert parse_response(text, 3, THREE, COT).distribution == pytest.approx(GOOD3)


@pytest.mark.parametrize(
    "text",
    [
        "The population says [40, 40, 20]. This group is younger, so",
        "The population's distribution: [40, 40, 20]. This group",
        '{"reasoning": "The population says [40, 40, 20], so',
        'A draft: {"distribution": [40, 40, 20]}. But this group',
        "Agree: 50%\nDisagree: 30%\nUnsure: 20%\nNow for the younger",
    ],
)
def test_a_reasoning_cut_off_before_its_answer_is_not_guessed_from(text: str) -> None:
    parsed = parse_response(text, 3, THREE, COT)
    assert (parsed.status, parsed.reason) == ("unparseable", "no distribution after the reasoning")


@pytest.mark.parametrize(
    "text",
    [
        '["a", "c", "b", "a"]',
        "a, c, b, a",
        "A C B A",
        "a\nc\nb\na",
        "1. a\n2. c\n3. b\n4. a",
        "Person 1: a\nPerson 2: (c)\nPerson 3: b.\nPerson 4: A",
        "- a\n- c\n- b\n- a",
        '["a. Agree", "c. Unsure", "Disagree", "a"]',
        "Agree, Unsure, Disagree, Agree",
        "Here are the answers of the four people:\n1. a\n2. c\n3. b\n4. a\n\nThey differ mostly by age and place.",
        '```json\n["a", "c", "b", "a"]\n```',
        '["a", "c", "b", "a"], as other surveys found [1, 2].',
        '[\n  "a", "c",\n  "b", "a",\n]',
        "Sure!\n1. a\n2. c\n3. b\n4. a\nMuch as in the earlier surveys [1].",
        "Person 1 (25, urban): a\nPerson 2 (60, rural): c\nPerson 3 (30): b\nPerson 4: a",
        '{"answers": ["a", "c", "b", "a"]}',
        '{"reasoning": "not [a, a, a, a]", "answers": ["a", "c", "b", "a"]}',
        '[{"person": 1, "answer": "a"}, {"person": 2, "answer": "c"}, {"person": 3, "answer": "b"}, {"person": 4, "answer": "a"}]',
        '{"Person 1": "a", "Person 2": "c", "Person 3": "b", "Person 4": "a"}',
        'First ["a", "a", "a", "a"]. Then again:\nANSWERS: ["a", "c", "b", "a"]',
    ],
)
def test_the_answers_of_individuals_are_counted(text: str) -> None:
    parsed = parse_response(text, 3, THREE, FOUR_PEOPLE)
    assert (parsed.status, parsed.distribution, parsed.reason) == ("ok", pytest.approx((0.5, 0.25, 0.25)), "4 individuals")


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ('["a", "b", "d", "a"]', "unparseable", "'d'"),
        ("1. a\n2. c\n3. z\n4. a", "unparseable", "'3. z'"),
        ("1. a\n2. c\n3. b\n4. z", "unparseable", "'4. z'"),
        ('["a. Disagree", "b", "c", "a"]', "unparseable", "'a. disagree'"),
        ('["a", "c", "b"', "unparseable", "not an option"),
        ('["a", "", "c", "b"]', "unparseable", "''"),
        ('["a", null, "c", "b"]', "unparseable", "'null'"),
        ('Men: ["a", "c"]\nWomen: ["b", "a"]', "unparseable", "2 lists, the last of 2 people"),
        ("[45, 30, 15, 10]", "unparseable", "percentages"),
        ("Agree: 50%\nDisagree: 30%\nUnsure: 20%", "unparseable", "percentages"),
        ('{"a": 2, "b": 1, "c": 1}', "unparseable", "percentages"),
        ('["a"]', "wrong_length", "1 of 4 individuals"),
        (json.dumps(["a"] * 9), "wrong_length", "9 of 4 individuals"),
        ("I'm sorry, I cannot do that.", "refused", "refusal"),
        ("", "unparseable", "empty"),
        ("They would mostly answer in many ways.", "unparseable", "no answers of individuals"),
    ],
)
def test_an_individual_is_never_guessed_nor_left_out(text: str, status: str, reason: str) -> None:
    parsed = parse_response(text, 3, THREE, FOUR_PEOPLE)
    assert (parsed.status, parsed.distribution) == (status, None)
    assert reason in parsed.reason


def test_half_to_twice_as_many_individuals_are_counted_and_their_number_is_in_the_reason() -> None:
    parsed = parse_response('["a", "b", "a"]', 3, THREE, FOUR_PEOPLE)
    assert (parsed.distribution, parsed.reason) == (pytest.approx((2 / 3, 1 / 3, 0)), "3 of 4 individuals")
    assert parse_response('["a", "b"]', 3, THREE, FOUR_PEOPLE).status == "ok"
    assert parse_response(json.dumps(["a"] * 8), 3, THREE, FOUR_PEOPLE).status == "ok"


def test_individuals_after_a_reasoning_are_those_of_the_marked_line() -> None:
    marked = 'Some say ["a", "a", "a", "a"].\nANSWERS: ["a", "c", "b", "a"]'
    assert parse_response(marked, 3, THREE, FOUR_PEOPLE_COT).distribution == pytest.approx((0.5, 0.25, 0.25))
    assert parse_response('["a", "c", "b", "a"]', 3, THREE, FOUR_PEOPLE_COT).status == "ok"
    cut = parse_response('Some say ["a", "a", "a", "a"].', 3, THREE, FOUR_PEOPLE_COT)
    assert (cut.status, cut.reason) == ("unparseable", "no answers after the reasoning")


def test_letters_of_individuals_are_those_of_the_listed_order() -> None:
    reading = FOUR_PEOPLE._replace(order=(2, 0, 1))
    assert parse_response('["a", "c", "b", "a"]', 3, THREE, reading).distribution == pytest.approx((0.25, 0.25, 0.5))


def test_labels_with_commas_and_numbers_are_options_of_individuals() -> None:
    assert parse_response('["No, never", "Yes", "a", "b"]', 2, NEVER, FOUR_PEOPLE).distribution == pytest.approx((0.5, 0.5))
    assert parse_response("No, never, Yes, a, b", 2, NEVER, FOUR_PEOPLE).distribution == pytest.approx((0.5, 0.5))
    assert parse_response("1. 2\n2. 1\n3. 0\n4. 1", 3, ("0", "1", "2"), FOUR_PEOPLE).distribution == pytest.approx(
        (0.25, 0.5, 0.25)
    )


def test_a_letter_that_is_also_the_label_of_another_option_is_no_answer() -> None:
    assert parse_response('["b", "a", "a", "a"]', 2, ("B", "A"), FOUR_PEOPLE).status == "unparseable"


def test_options_beyond_z_have_two_letters() -> None:
    options = [f"Country {name}" for name in string.ascii_uppercase + "ÄÖÜ"]
    parsed = parse_response('["aa", "z", "aa", "ab"]', 29, options, FOUR_PEOPLE)
    assert parsed.distribution is not None
    assert parsed.distribution[25:] == pytest.approx((0.25, 0.5, 0.25, 0.0))


@pytest.mark.parametrize(
    "text",
    [
        '{"Q1": [10, 10, 80], "Q2": [50, 30, 20], "Q3": [1, 1, 2]}',
        '{"Q3": [1, 1, 2], "Q2": [50, 30, 20], "Q1": [10, 10, 80]}',
        '{"Question 1": [10, 10, 80], "question_2": [50, 30, 20]}',
        '{"1": [10, 10, 80], "2": [50, 30, 20], "3": [1, 1, 2]}',
        'Sure, from [1, 2, 3]:\n```json\n{"Q1": [10, 10, 80],\n "Q2": [50, 30, 20]}\n```\nMost agree [7, 8, 9].',
        '{"Q1": {"distribution": [10, 10, 80]}, "Q2": {"reasoning": "not [1, 2, 3]", "distribution": [50, 30, 20]}}',
        '{"Q1": {"Agree": 1, "Disagree": 1, "Unsure": 1}, "Q2": {"Unsure": 20, "Agree": 50, "Disagree": 30}}',
        '{"distributions": {"Q1": [10, 10, 80], "Q2": "50%, 30%, 20%"}}',
        '[{"question": "Q1", "distribution": [10, 10, 80]}, {"question": "Q2", "distribution": [50, 30, 20]}]',
        "Q1: [10, 10, 80]\nQ2: [50, 30, 20]\nQ3: [1, 1, 2]",
        "**Q1:** 10%, 10%, 80%\n**Q2:** 50%, 30%, 20%",
        "### Question 1\n[10, 10, 80]\n\n### Question 2\nAgree: 50%\nDisagree: 30%\nUnsure: 20%\n\nOverall [1, 2, 3]",
        "1. [10, 10, 80]\n2. [50, 30, 20]\n3. [1, 1, 2]",
        "[[10, 10, 80], [50, 30, 20], [1, 1, 2]]",
        '{"Q1": [10, 10, 80], "Q2": [50, 30, 20], "Q3": [1,',
        'First {"Q2": [1, 1, 1]}.\nFinal answer: {"Q1": [10, 10, 80], "Q2": [50, 30, 20]}',
        'Q1: [10, 10, 80]\nQ2: [50, 30, 20]\n\nIn short: {"Q2": "50, 30, 20"}',
    ],
)
def test_each_question_of_a_batch_reads_its_own_part(text: str) -> None:
    parsed = parse_response(text, 3, THREE, SECOND)
    assert parsed.distribution == pytest.approx(GOOD3), parsed.reason


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ('{"Q1": [50, 30, 20], "Q3": [50, 30, 20]}', "missing", "no answer to question 2 of 3"),
        ('{"Q1": [50, 30, 20], "Q2": null}', "missing", "no answer to question 2 of 3"),
        ("Q1: [50, 30, 20]\nQ3: [1, 1, 2]\n\n[50, 30, 20]", "missing", "no answer to question 2 of 3"),
        ('{"Q1": [50, 30, 20], "Q2": [50, 50]}', "wrong_length", "2 values for 3"),
        ('{"Q1": [50, 30, 20], "Q2": "hard to say"}', "unparseable", "no distribution"),
        ('{"Q2": [50, 30, 20], "Q2": [1, 1, 1]}', "unparseable", "two answers to question 2"),
        ("Q2: [50, 30, 20]\nQ2: [20, 30, 50]", "unparseable", "two answers to question 2"),
        ('{"Q0": [1, 1, 1], "Q1": [50, 30, 20], "Q2": [1, 1, 2]}', "unparseable", "not numbered from 1"),
        ("[50, 30, 20]", "unparseable", "no answers by question"),
        ("[10, 10, 80]\n[50, 30, 20]\n[1, 1, 2]", "unparseable", "no answers by question"),
        ("[[10, 10, 80], [50, 30, 20]]", "unparseable", "no answers by question"),
        ("I'm sorry, I cannot answer.", "refused", "refusal"),
        ("<think>[1, 2, 3]", "unparseable", "outside the thinking"),
    ],
)
def test_a_question_never_borrows_the_answer_of_another(text: str, status: str, reason: str) -> None:
    parsed = parse_response(text, 3, THREE, SECOND)
    assert (parsed.status, parsed.distribution) == (status, None)
    assert reason in parsed.reason


def test_a_batch_after_a_reasoning_is_read_after_its_mark_alone() -> None:
    draft = 'A draft: {"Q1": [1, 1, 1], "Q2": [1, 1, 1]}.'
    marked = draft + '\nDISTRIBUTIONS: {"Q1": [10, 10, 80], "Q2": [50, 30, 20]}'
    structured = '{"reasoning": "Q2: [1, 1, 1]", "Q1": [10, 10, 80], "Q2": [50, 30, 20]}'
    assert parse_response(marked, 3, THREE, SECOND_COT).distribution == pytest.approx(GOOD3)
    assert parse_response(structured, 3, THREE, SECOND_COT).distribution == pytest.approx(GOOD3)
    assert parse_response(draft, 3, THREE, SECOND_COT).reason == "no answers by question after the reasoning"


@given(
    parts=st.lists(st.lists(st.integers(1, 99), min_size=3, max_size=3), min_size=2, max_size=5),
    answered=st.sets(st.integers(0, 4), min_size=1),
    random=st.randoms(use_true_random=False),
    style=st.sampled_from(["{}", "Here:\n```json\n{}\n```\nQuestions of [1, 2, 3].", "DISTRIBUTIONS: {}", "lines"]),
)
def test_whatever_is_answered_in_whatever_order_each_question_gets_its_own(
    parts: list[list[int]], answered: set[int], random: Any, style: str
) -> None:
    said = [place for place in range(len(parts)) if place in answered]
    random.shuffle(said)
    answers = {f"Q{place + 1}": parts[place] for place in said}
    lines = "\n".join(f"{name}: {values}" for name, values in answers.items())
    text = lines if style == "lines" else style.replace("{}", json.dumps(answers))
    for place, values in enumerate(parts):
        parsed = parse_response(text, 3, THREE, Reading("distribution", place=place, size=len(parts)))
        expected = pytest.approx(tuple(value / sum(values) for value in values)) if place in said else None
        if said:
            assert (parsed.status, parsed.distribution) == ("ok" if place in said else "missing", expected)
        else:
            assert parsed.status == "unparseable"


def asked_for(task: str, size: int) -> tuple[str, Any]:
    """The mark and the value of the answer that a prompt asks for."""
    if task == "synthetic-individuals":
        return "ANSWERS", ["a", "b", "c", "c"]
    if task == "batch":
        return "DISTRIBUTIONS", {f"Q{place + 1}": [20, 30, 50] for place in range(size)}
    return "DISTRIBUTION", [20, 30, 50]


@pytest.mark.parametrize("order", ["given", "reversed", "rotated-1"])
@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("reasoning", ["standard", "cot"])
@pytest.mark.parametrize("task", TASKS)
def test_the_answer_that_a_prompt_asks_for_is_read(task: str, reasoning: str, structured: bool, order: str) -> None:
    options = BlueprintOptions(task=task, reasoning=reasoning, structured=structured, option_order=order, individuals=4)
    prompts = build_blueprints(SURVEY, options)
    mark, answer = asked_for(task, len(prompts))
    thinking = "All say [1, 1, 1], Q1: [1, 2, 1]."
    if structured:
        key = {} if task == "batch" else {mark.lower(): answer}
        text = json.dumps(({"reasoning": thinking} if reasoning == "cot" else {}) | (key or answer))
    else:
        text = f"{thinking}\n{mark}: {json.dumps(answer)}" if reasoning == "cot" else json.dumps(answer)
    found = parse_responses([text] * len(prompts), prompts["options"].combine_chunks(), prompts["reading"])
    listed = [0.25, 0.25, 0.5] if task == "synthetic-individuals" else [0.2, 0.3, 0.5]
    expected = {"given": listed, "reversed": listed[::-1], "rotated-1": listed[-1:] + listed[:-1]}[order]
    assert found.status.to_pylist() == ["ok"] * 2
    assert found.distribution.to_pylist() == [pytest.approx(expected)] * 2


TEXTS = st.sampled_from(
    [
        None, "", "[50, 30, 20]", "[1,2,7]", "[0.2, 0.3, 0.5]", "[50, 50]", "[0, 0, 0]", "[1, 2, 3, 4]", "sorry", "DISTRIBUTION: [50, 30, 20]",
        '["a", "b", "c", "a"]', "Agree: 50%\nDisagree: 30%\nUnsure: 20%", '{"Q1": [50, 30, 20], "Q2": [1, 1, 2]}', "[[1, 2, 3], [50, 30, 20]]",
        "A word. [50, 30, 20]",
    ]
)  # fmt: skip
HOW = st.sampled_from(
    [*READINGS[:3], AS_IN_THE_SURVEY, FOUR_PEOPLE, FOUR_PEOPLE_COT, SECOND, SECOND_COT, LAST_FIRST, COT, Reading(order=(1, 0)),
     Reading(order=(0, 0, 1)), Reading("individuals", order=(1, 2, 0), individuals=4), Reading(order=(1, 2, 0), place=0, size=2, marked=True)]
)  # fmt: skip


@given(rows=st.lists(st.tuples(TEXTS, HOW, st.sampled_from([THREE, (*THREE, "Never")])), max_size=12))
def test_a_column_of_mixed_readings_is_read_as_its_rows_are(rows: list[tuple[str | None, Reading, tuple[str, ...]]]) -> None:
    texts, readings, options = [r[0] for r in rows], [r[1] for r in rows], [list(r[2]) for r in rows]
    column = pa.array([None if how == AS_IN_THE_SURVEY else how._asdict() for how in readings], READING)
    found = parse_responses(texts, pa.array(options, pa.list_(pa.string())), column)
    lists = [None if shares is None else tuple(shares) for shares in found.distribution.to_pylist()]
    by_row = [parse_response(text, len(o), o, how) for text, how, o in zip(texts, readings, options, strict=True)]
    assert list(zip(found.status.to_pylist(), lists, found.reason.to_pylist(), strict=True)) == [
        (one.status, one.distribution, one.reason) for one in by_row
    ]


def test_options_may_be_a_dictionary_and_unknown() -> None:
    lists = pa.array([list(THREE), None], pa.list_(pa.string()))
    shared = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), lists)
    found = parse_responses(["[1, 1, 2]", "[1, 1]", "Unsure: 50, Agree: 25, Disagree: 25"], shared)
    meant = pytest.approx([0.25, 0.25, 0.5])
    assert found.distribution.to_pylist() == [meant, None, meant]

"""Answers of all tasks: options in another order, single people, several questions at once, reasoning before a marked line."""

from __future__ import annotations

import json
import string
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.survey.reading.parsing import AS_IN_THE_SURVEY, Reading, parse_response, parse_responses
from dtef_pipeline.survey.tables import READING

CASES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

THREE = ("Agree", "Disagree", "Unsure")
GOOD3 = (0.5, 0.3, 0.2)
NEVER = ("Yes", "No, never")
LAST_FIRST = Reading("distribution", order=(2, 0, 1))
COT = Reading("distribution", marked=True)
FOUR_PEOPLE = Reading("individuals", individuals=4)
FOUR_PEOPLE_COT = Reading("individuals", individuals=4, marked=True)
SECOND = Reading("distribution", place=1, size=3)
SECOND_COT = Reading("distribution", place=1, size=3, marked=True)


@pytest.mark.parametrize("text", CASES["options_listed_in_another_order_are_put_back_into_that_of_the_survey"])
def test_options_listed_in_another_order_are_put_back_into_that_of_the_survey(text: str) -> None:
    assert parse_response(text, 3, THREE, LAST_FIRST).distribution == pytest.approx(GOOD3)


def test_an_order_of_other_options_than_the_survey_has_is_missing_and_not_wrong() -> None:
    parsed = parse_response("[50, 50]", 3, THREE, Reading(order=(1, 0)))
    assert parsed.status == "missing"
    assert "[1, 0]" in parsed.reason


@pytest.mark.parametrize("text", CASES["after_a_reasoning_only_the_marked_answer_counts"])
def test_after_a_reasoning_only_the_marked_answer_counts(text: str) -> None:
    assert parse_response(text, 3, THREE, COT).distribution == pytest.approx(GOOD3)


@pytest.mark.parametrize("text", CASES["a_reasoning_cut_off_before_its_answer_is_not_guessed_from"])
def test_a_reasoning_cut_off_before_its_answer_is_not_guessed_from(text: str) -> None:
    parsed = parse_response(text, 3, THREE, COT)
    assert (parsed.status, parsed.reason) == ("unparseable", "no distribution after the reasoning")


@pytest.mark.parametrize("text", CASES["the_answers_of_individuals_are_counted"])
def test_the_answers_of_individuals_are_counted(text: str) -> None:
    parsed = parse_response(text, 3, THREE, FOUR_PEOPLE)
    assert (parsed.status, parsed.distribution, parsed.reason) == ("ok", pytest.approx((0.5, 0.25, 0.25)), "4 individuals")


@pytest.mark.parametrize(("text", "status", "reason"), CASES["an_individual_is_never_guessed_nor_left_out"])
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


@pytest.mark.parametrize("text", CASES["each_question_of_a_batch_reads_its_own_part"])
def test_each_question_of_a_batch_reads_its_own_part(text: str) -> None:
    parsed = parse_response(text, 3, THREE, SECOND)
    assert parsed.distribution == pytest.approx(GOOD3), parsed.reason


@pytest.mark.parametrize(("text", "status", "reason"), CASES["a_question_never_borrows_the_answer_of_another"])
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


def test_a_column_of_mixed_readings_is_read_as_its_rows_are() -> None:
    rows = {
        "[50, 30, 20]": AS_IN_THE_SURVEY,
        "[20, 50, 30]": LAST_FIRST,
        '["a", "b", "c", "a"]': FOUR_PEOPLE,
        '{"Q1": [1, 1, 2], "Q2": [50, 30, 20]}': SECOND,
        "A word. DISTRIBUTION: [50, 30, 20]": COT,
        "[50, 50]": Reading(order=(0, 0, 1)),
        "sorry": AS_IN_THE_SURVEY,
    }
    column = pa.array([None if how == AS_IN_THE_SURVEY else how._asdict() for how in rows.values()], READING)
    found = parse_responses([*rows], pa.array([list(THREE)] * len(rows), pa.list_(pa.string())), column)
    lists = [None if shares is None else tuple(shares) for shares in found.distribution.to_pylist()]
    by_row = [parse_response(text, 3, THREE, how) for text, how in rows.items()]
    assert list(zip(found.status.to_pylist(), lists, found.reason.to_pylist(), strict=True)) == [
        (one.status, one.distribution, one.reason) for one in by_row
    ]
    assert found.status.to_pylist() == [*["ok"] * 5, "missing", "refused"]


def test_options_may_be_a_dictionary_and_unknown() -> None:
    lists = pa.array([list(THREE), None], pa.list_(pa.string()))
    shared = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), lists)
    found = parse_responses(["[1, 1, 2]", "[1, 1]", "Unsure: 50, Agree: 25, Disagree: 25"], shared)
    meant = pytest.approx([0.25, 0.25, 0.5])
    assert found.distribution.to_pylist() == [meant, None, meant]

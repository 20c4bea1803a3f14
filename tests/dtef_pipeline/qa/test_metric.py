"""What a metric may be, and what is refused."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.item_files.rows import has_invalid_text
from dtef_pipeline.qa.metric import fold_to_ascii, normalise, parse_metric
from dtef_pipeline.qa.model import ItemError
from tests.made.shared_cases import cases, cases_beside, shared

CASES = cases_beside(__file__)


def pairs(metric: str) -> list[list[Any]] | str:
    try:
        return [[value.text, value.weight] for value in parse_metric(metric)]
    except ItemError:
        return "error"


def test_the_published_vectors() -> None:
    found = cases("transcripts", "parse_metric")
    assert {case["id"]: pairs(case["in"]["metric"]) for case in found} == {case["id"]: case["out"] for case in found}


def test_metrics_of_the_shared_questions_are_read() -> None:
    questions = json.loads(shared("transcripts/questions.json").read_text(encoding="utf-8"))["qa_pairs"]
    asked = [pair["question"] for pair in questions]
    assert all(parse_metric(one["metric"]) for one in asked if one["type"] != "Yes/No with Rationale")


@pytest.mark.parametrize(("metric", "values"), CASES["forms"])
def test_forms(metric: str, values: list[list[Any]]) -> None:
    assert [[value.text, value.weight, [*value.aliases]] for value in parse_metric(metric)] == values


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        *CASES["what_is_refused_is_named"],
        ("[" * 100_000, "not JSON"),
        (f'{{"car": 1{"0" * 400}}}', "weight of 'car'"),
        (f'{{"car": 1{"0" * 5000}}}', "not JSON"),
    ],
)
def test_what_is_refused_is_named(metric: str, message: str) -> None:
    with pytest.raises(ItemError, match=message) as refused:
        parse_metric(metric)
    assert len(str(refused.value)) < 600


@given(st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)))
def test_an_object_is_read_as_it_was_written_or_refused(metric: dict[str, float]) -> None:
    names = [normalise(name) for name in metric]
    is_text = not any(map(has_invalid_text, metric))
    if is_text and all(names) and len(set(names)) == len(names):
        assert [[name.strip(), weight] for name, weight in metric.items()] == pairs(json.dumps(metric))
    else:
        assert pairs(json.dumps(metric)) == "error"


ANY_TEXT = st.text(st.characters(exclude_categories=()))
"""Lone surrogates and NUL too."""


def test_the_published_vectors_of_spellings() -> None:
    found = cases("transcripts", "normalise")
    assert {case["id"]: normalise(case["in"]["text"]) for case in found} == {case["id"]: case["out"] for case in found}


@pytest.mark.parametrize(("text", "compared"), CASES["spellings"])
def test_spellings(text: str | None, compared: str) -> None:
    assert normalise(text) == compared


@given(ANY_TEXT)
def test_a_normalised_text_is_normalised_already(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@given(ANY_TEXT)
def test_only_letters_digits_and_three_marks_are_left(text: str) -> None:
    assert re.fullmatch(r"(?:[a-z0-9%]|(?<=[0-9])\.(?=[0-9])|-(?=[0-9])|(?<=\S) (?=\S))*", normalise(text))


@given(ANY_TEXT, ANY_TEXT)
def test_no_two_words_are_joined(left: str, right: str) -> None:
    assert normalise(f"{left} {right}").split() == normalise(left).split() + normalise(right).split()


@pytest.mark.parametrize("run", ["\u0301\u0316", "1."])
def test_a_long_text_takes_no_more_than_its_length(run: str) -> None:
    """Combining marks out of order took the square of their number: minutes for half a megabyte."""
    started = time.perf_counter()
    fold_to_ascii(run * 40_000)
    normalise(run * 40_000)
    assert time.perf_counter() - started < 20

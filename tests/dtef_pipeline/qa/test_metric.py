"""What a metric may be, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.item_files.rows import has_invalid_text
from dtef_pipeline.qa.metric import MetricValue, normalise, parse_metric
from dtef_pipeline.qa.model import ItemError
from tests.made.shared_cases import cases, shared


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


@pytest.mark.parametrize(
    ("metric", "values"),
    [
        ("", ()),
        ("  ", ()),
        ("{}", ()),
        ("[]", ()),
        ("null", ()),
        ("Oak Park", (MetricValue("Oak Park"),)),
        ("5", (MetricValue("5"),)),
        ('"Oak, Park"', (MetricValue("Oak, Park"),)),
        ('["car", "bike"]', (MetricValue("car"), MetricValue("bike"))),
        ('{"car": 1, "bike": -0.5}', (MetricValue("car", 1), MetricValue("bike", -0.5))),
        ('[{"value": " car ", "aliases": ["auto"]}, "bike"]', (MetricValue("car", 1, ("auto",)), MetricValue("bike"))),
    ],
)
def test_forms(metric: str, values: tuple[MetricValue, ...]) -> None:
    assert parse_metric(metric) == values


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("{car: 1}", "not JSON"),
        ('{"car": 1', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"car": 1, "car": 1}', "'car' is given twice"),
        ('{"car": 1, "CAR!": 1}', "'car' and 'CAR!'"),
        ('["a", "a"]', "'a' and 'a'"),
        ('{"": 1}', "empty"),
        ('{"?!": 1}', "empty"),
        ('{"car\\ud800": 1}', "UTF-8; got 'car"),
        ('[{"value": "car", "aliases": ["auto\\ud800"]}]', "UTF-8; got 'auto"),
        ('[{"value": "car", "aliases": [""]}]', "empty"),
        ('{"car": true}', "weight of 'car'.*got True"),
        ('{"car": "1"}', "weight of 'car'.*got '1'"),
        ('{"car": null}', "weight of 'car'"),
        ('{"car": 1e999}', "1e999 is too large"),
        (f'{{"car": 1{"0" * 400}}}', "weight of 'car'"),
        (f'{{"car": 1{"0" * 5000}}}', "not JSON"),
        ('{"car": -Infinity}', "not JSON: -Infinity"),
        ('{"car": [1]}', "weight of 'car'"),
        ('[{"value": "car", "wait": 1}]', "value, weight, aliases"),
        ('[{"weight": 1}]', "value, weight, aliases"),
        ('[{"value": 5}]', "got '5'"),
        ('[{"value": "car", "aliases": "auto"}]', "'car' .*; got 'auto'"),
        ("[1]", "got '1'"),
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


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_read_or_refused(text: str) -> None:
    found = pairs(text)
    assert found == "error" or all(normalise(value) for value, _ in found)

"""Point functions: the values of the specification, their forms, and what they do with whatever they are given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.rubric.blueprint import patterns
from dtef_pipeline.rubric.blueprint.model import FUNCTION_KIND
from dtef_pipeline.rubric.blueprint.reading import read_blueprint
from dtef_pipeline.rubric.episodes import build_point_rows
from dtef_pipeline.rubric.functions import POINT_FUNCTIONS, FunctionScore, prepare_function
from dtef_pipeline.rubric.tables import RUBRIC_CRITERIA, RUBRIC_JUDGEMENTS, RUBRIC_RESPONSES
from tests.dtef_pipeline.rubric.example import FOLDER, example
from tests.dtef_pipeline.rubric.scored_rows import evaluate
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)
CALLS = CASES["calls"]
LONG_TEXTS = [
    *(["word_count_between", [50, 200], "word " * words, score] for words, score in ((40, 0.8), (250, 0.8), (100, 1))),
    ["is_json", None, "[" + "9" * 5000 + "]", 1],
]
SCORES = [
    *CASES["scores"],
    *LONG_TEXTS,
    *([name, argument, CALLS, score] for name, argument, score in CASES["scores_of_calls"]),
]


@pytest.mark.parametrize(("name", "argument", "text", "score"), SCORES)
def test_scores_by_hand(name: str, argument: Any, text: str, score: float) -> None:
    found = evaluate(name, argument, text)
    assert found.score == pytest.approx(score, abs=1e-9), found
    assert found.reason is None
    assert found.explanation


@pytest.mark.parametrize(
    ("name", "argument", "reason"), [*CASES["unscored"], ("contains_at_least_n_of", [10**400, ["a"]], "bad arguments")]
)
def test_what_cannot_be_scored_is_unscored_with_its_reason(
    name: str, argument: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "LONGEST_SEARCH", 0.1)
    found = evaluate(name, argument, "a" * 60 + "b")
    assert (found.score, found.reason) == (None, reason)
    assert found.explanation


def test_a_point_says_what_it_found() -> None:
    assert evaluate("contains_all_of", ["x", "y", "z"], "x y").explanation == "found 2 of 3: 'x', 'y'; not 'z'"
    assert evaluate("contains_any_of", ["x", "y"], "a").explanation == "found none of 2: 'x', 'y'"
    assert evaluate("imatches", "a+", "A").explanation == "found /a+/i"
    assert evaluate("tool_called", "d", CALLS).explanation == "called a, b, c"


def test_brackets_nested_too_deep_for_python_are_unscored_as_json() -> None:
    assert evaluate("is_json", None, "[" * 100_000).reason == "nested too deep"
    assert evaluate("tool_called", "a", "TOOL_CALL " + "[" * 100_000).score == 0


def test_functions_of_other_packages_score_where_ours_may_not() -> None:
    def half(text: str, argument: Any, context: Mapping[str, Any]) -> float:
        return len(text) / argument

    added = {"call": half, "half": half, "contains": half, "whole": lambda *_: FunctionScore(1.0, "whole")}
    assert evaluate("call", 10, "abcde", added_functions=added).score == pytest.approx(0.5)
    assert evaluate("half", 10, "abcde", added_functions=added).score == pytest.approx(0.5)
    assert evaluate("contains", "z", "abcde", added_functions=added).score == 0
    assert evaluate("whole", None, "", added_functions=added) == FunctionScore(1.0, "whole")
    assert evaluate("half", 0, "abcde", added_functions=added).reason == "function failed"
    assert evaluate("half", 1, "abcde", added_functions=added).reason == "function failed"


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 300) | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["name", "where", "a"]), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(POINT_FUNCTIONS)), JSON_LIKE, st.text() | st.just(CALLS))
def test_any_argument_gives_a_score_from_0_to_1_or_a_reason(name: str, argument: Any, text: str) -> None:
    found = evaluate(name, argument, text)
    assert (found.score is None) == (found.reason is not None)
    assert found.score is None or 0 <= found.score <= 1
    json.dumps(found.explanation)


@given(st.sampled_from(sorted(name for name in POINT_FUNCTIONS if f"not_{name}" in POINT_FUNCTIONS)), JSON_LIKE, st.text())
def test_a_negated_function_gives_the_rest_up_to_1(name: str, argument: Any, text: str) -> None:
    found, negated = evaluate(name, argument, text), evaluate(f"not_{name}", argument, text)
    if found.score is None or negated.score is None:
        assert found.reason == negated.reason
    else:
        assert found.score + negated.score == pytest.approx(1)


def test_function_points_of_the_scored_example_are_found_again() -> None:
    tables = example()
    keys = ["blueprint", "prompt", "model", "temperature", "system"]
    texts = tables["responses"].set_index(keys)["text"].to_dict()
    criteria = {}
    for blueprint in set(tables["responses"]["blueprint"]):
        path = FOLDER / "blueprints" / f"{blueprint.replace('__', '/')}.yml"
        read = read_blueprint(path, blueprint).blueprint
        assert read is not None
        criteria.update(
            {(blueprint, prompt.id, c.block, c.path, c.position): c for prompt in read.prompts for c in prompt.criteria}
        )
    compared = 0
    for row in tables["points"].itertuples():
        path_number = None if pd.isna(row.path) else int(row.path)
        criterion = criteria[row.blueprint, row.prompt, row.block, path_number, row.position]
        if criterion.kind != FUNCTION_KIND:
            continue
        ready = prepare_function(criterion.fn, criterion.args)
        text = texts[tuple(getattr(row, key) for key in keys)]
        if not isinstance(text, str):  # an empty response is not scored at all
            assert pd.isna(row.score)
            continue
        found = ready(text, None)
        assert found.score is not None, (criterion, found)
        assert (1 - found.score if row.block == "should_not" else found.score) == pytest.approx(row.score, abs=1e-9), criterion
        compared += 1
    assert compared == 127


def test_the_words_of_a_response_in_an_explanation_can_be_stored() -> None:
    """The name of a called tool is decoded from JSON: half a character in it made the table of all responses fail."""
    text = 'TOOL_CALL {"name": "\\ud800"}'
    key = {"prompt": "p", "model": "m", "model_variant": "m", "temperature": 0.0, "system_index": 0, "draw": 0}
    response = {**key, "status": "ok", "text": text, "transcript": [{"role": "assistant", "text": text}]}
    criterion = {
        "prompt": "p",
        "block": "should",
        "path": None,
        "position": 0,
        "kind": "function",
        "fn": "tool_called",
        "args": json.dumps("search"),
        "criterion_id": "c",
        "weight": 1.0,
        "source": "s",
    }
    rows = build_point_rows(
        pa.Table.from_pylist([response], schema=RUBRIC_RESPONSES),
        pa.Table.from_pylist([criterion], schema=RUBRIC_CRITERIA),
        RUBRIC_JUDGEMENTS.empty_table(),
        prepare_function,
    )
    assert rows["explanation"].to_pylist() == ["called \ufffd"]

"""The names of point functions, their other spellings, and the arguments they take."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dtef_pipeline.rubric.blueprint.function_names import (
    POINT_FUNCTIONS,
    check_argument,
    check_patterns,
    find_canonical_name,
)

SOUND: dict[str, list[Any]] = {
    "contains": ["", "a"],
    "starts_with": ["a"],
    "contains_any_of": [[], ["a", "b"]],
    "contains_at_least_n_of": [[2, ["a", "b"]], [0, []], [-1, ["a"]], [1.5, ["a"]]],
    "matches": ["^a$"],
    "matches_at_least_n_of": [[1, ["a"]]],
    "word_count_between": [[0, 0], [1, 2.5]],
    "is_json": [None, True],
    "tool_called": ["search"],
    "tool_call_count_between": [[0, 1], [1, 1, "search"], [1, 1, None]],
    "tool_call_order": [[], ["a", "b"]],
    "tool_args_match": [{"name": "a", "where": {}}, {"name": "a", "where": "args.x > 1", "normalizeWhitespace": True}],
    "js": ["r.length"],
    "call": [None, {"url": "http://a"}],
    "factcheck": ["dates", None],
}
WRONG: dict[str, list[Any]] = {
    "contains": [None, 5, True, ["a"], {}],
    "icontains_word": [5.5],
    "contains_any_of": ["a", [1], None, [["a"]]],
    "contains_at_least_n_of": [
        [1],
        [["a"], 1],
        ["1", ["a"]],
        [True, ["a"]],
        [1, "a"],
        [1, [2]],
        [1, ["a"], 3],
        [math.nan, ["a"]],
    ],
    "matches": [5],
    "word_count_between": [[2, 1], [-1, 1], ["1", 2], [1], [1, 2, 3], 5, [0, math.inf]],
    "is_json": [False, "true", 1, {}],
    "tool_called": ["", "  ", {"name": "a"}],
    "tool_call_count_between": [[1], [2, 1], [1, 2, 3], [1, 2, "a", "b"], "a"],
    "tool_call_order": ["a", [1]],
    "tool_args_match": [
        "a",
        {"name": "a"},
        {"where": {}},
        {"name": "", "where": {}},
        {"name": "a", "where": 5},
        {"name": "a", "where": {}, "normalizeWhitespace": "yes"},
        {"name": "a", "where": {}, "ignore_case": True},
    ],
    "js": ["", None, 5, ["r"]],
}


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("contain", "contains"),
        ("not_icontain_all_of", "not_icontains_all_of"),
        ("contain_word", "contains_word"),
        ("imatch_at_least_n_of", "imatches_at_least_n_of"),
        ("not_istart_with", "not_istarts_with"),
        ("end_with", "ends_with"),
        ("expr", "js"),
        ("external", "call"),
    ],
)
def test_other_spellings(spelled: str, name: str) -> None:
    assert find_canonical_name(spelled) == find_canonical_name(name) == name


UNKNOWN = (
    "|Contains|$contains|includes|icontains_|inot_contains|not_not_contains|not_js|ijs|not_contains_at_least_n_of|ref|containss"
)


@pytest.mark.parametrize("name", UNKNOWN.split("|"))
def test_other_names_are_unknown(name: str) -> None:
    assert find_canonical_name(name) is None


@pytest.mark.parametrize(("name", "args"), [(name, args) for name, all_args in SOUND.items() for args in all_args])
def test_sound_argument(name: str, args: object) -> None:
    assert check_argument(name, args) is None
    if f"not_{name}" in POINT_FUNCTIONS:
        assert check_argument(f"not_{name}", args) is None


@pytest.mark.parametrize(("name", "args"), [(name, args) for name, all_args in WRONG.items() for args in all_args])
def test_wrong_argument_says_what_it_takes(name: str, args: object) -> None:
    fault = check_argument(name, args)
    assert fault is not None
    assert fault.startswith(f"${name} takes {POINT_FUNCTIONS[name].argument}; got ")


def test_number_where_a_text_is_meant_is_reported_to_be_quoted() -> None:
    assert check_argument("contains", 5) == "$contains takes a text; got 5; put quotes around it"


def test_patterns_are_looked_at_with_the_case_of_their_function() -> None:
    seen: list[tuple[str, bool]] = []

    def fault(pattern: str, ignore_case: bool) -> str | None:
        seen.append((pattern, ignore_case))
        return "no" if pattern == "b" else None

    assert list(check_patterns("imatches_all_of", ["a", "b"], fault)) == ["the pattern 'b' of $imatches_all_of: no"]
    assert list(check_patterns("matches_at_least_n_of", [1, ["c"]], fault)) == []
    assert list(check_patterns("icontains", "d", fault)) == []
    assert seen == [("a", True), ("b", True), ("c", False)]

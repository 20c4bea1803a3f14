"""Every form of a criterion is read as it is meant, and functions written as texts are repaired."""

from __future__ import annotations

from typing import Any

import pytest

from dtef_pipeline.rubric.blueprint.findings import FindingLog
from dtef_pipeline.rubric.blueprint.model import Criterion
from dtef_pipeline.rubric.blueprint.prompt_items import PointReader
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)
DEFINITIONS: dict[str, Any] = CASES["definitions"]


def read(values: Any, block: str = "should", others: tuple[str, ...] = ()) -> tuple[list[Criterion], list[str]]:
    """The criteria, and the codes of what was found with their places."""
    log = FindingLog()
    reader = PointReader(log, DEFINITIONS, others)
    criteria = reader.read_block(values, block, "prompt 0", 1)
    assert reader.n_omitted == sum(found.level == "error" for found in log.findings)
    return criteria, [f"{found.code} {found.place.removeprefix('prompt 0 ')}" for found in log.findings]


def only(value: Any) -> Criterion:
    """The one criterion of a block without findings."""
    (criterion,), found = read([value])
    assert found == []
    return criterion


def found_in(value: Any) -> str:
    """The one code of a criterion that has an error."""
    criteria, (found,) = read([value])
    assert criteria == []
    return found.partition(" ")[0]


@pytest.mark.parametrize(("value", "expected"), CASES["texts"])
def test_text_forms(value: object, expected: list[object]) -> None:
    criterion = only(value)
    assert [criterion.text, criterion.weight, criterion.citation] == expected
    assert (criterion.kind, criterion.fn, criterion.block, criterion.path, criterion.position) == (
        "text",
        None,
        "should",
        None,
        0,
    )


@pytest.mark.parametrize(("value", "expected"), CASES["functions"])
def test_function_forms(value: object, expected: list[object]) -> None:
    criterion = only(value)
    assert [criterion.fn, criterion.args, criterion.weight] == expected
    assert (criterion.kind, criterion.text, criterion.fault, criterion.is_repaired) == ("function", None, None, False)


@pytest.mark.parametrize(("text", "fn", "args"), CASES["repaired"])
def test_function_in_a_text_is_repaired(text: str, fn: str, args: object) -> None:
    (criterion,), found = read([text])
    assert found == ["dollar-string should[0]"]
    assert (criterion.fn, criterion.args, criterion.source, criterion.is_repaired, criterion.fault) == (
        fn,
        args,
        text,
        True,
        None,
    )


@pytest.mark.parametrize("text", CASES["unknown"])
def test_other_text_with_a_dollar_is_an_unknown_function(text: str) -> None:
    (criterion,), found = read([text])
    assert found == ["unknown-function should[0]"]
    assert (criterion.kind, criterion.text, criterion.fn) == ("function", None, text[1:].strip())
    assert criterion.fault


def test_repaired_argument_that_is_no_yaml_is_a_bad_argument() -> None:
    (criterion,), found = read(["$contains_any_of: [a, b"])
    assert found == ["dollar-string should[0]", "bad-arguments should[0]"]
    assert criterion.fault


@pytest.mark.parametrize(("value", "code"), CASES["errors"])
def test_criterion_with_an_error_is_left_out(value: object, code: str) -> None:
    assert found_in(value) == code


def test_paths_are_numbered_within_their_block_and_nothing_in_them_is_lost() -> None:
    values = ["a", ["b", {"$contains": "c"}], None, [], [None, "d", None, "e"], "f"]
    criteria, found = read(values, "should_not")
    assert found == []
    assert [(one.block, one.path, one.position) for one in criteria] == [
        ("should_not", None, 0),
        ("should_not", 0, 0),
        ("should_not", 0, 1),
        ("should_not", 1, 1),
        ("should_not", 1, 3),
        ("should_not", None, 5),
    ]


@pytest.mark.parametrize(("value", "expected"), CASES["references"])
def test_reference_is_what_its_definition_says_with_its_own_weight_and_citation(
    value: dict[str, Any], expected: list[object]
) -> None:
    criterion = only(value)
    assert [criterion.fn, criterion.args, criterion.text, criterion.weight, criterion.citation] == expected
    assert criterion.ref in DEFINITIONS


def test_functions_of_others_are_known_and_their_arguments_are_theirs() -> None:
    (first, second), found = read([{"$readable": 5}, {"$factcheck": "a"}], others=("readable", "factcheck"))
    assert found == []
    assert (first.fn, first.args, second.fn) == ("readable", 5, "factcheck")


def test_pattern_that_is_none_is_found_wherever_it_stands() -> None:
    values = [{"$matches": "("}, {"$imatches_all_of": ["a", "("]}, {"$matches_at_least_n_of": [1, ["("]]}, {"$contains": "("}]
    criteria, found = read(values)
    assert found == [f"bad-regex should[{place}]" for place in range(3)]
    assert [bool(one.fault) for one in criteria] == [True, True, True, False]

"""The names of point functions, their other spellings, and the arguments they take."""

from __future__ import annotations

import pytest

from dtef_pipeline.rubric.functions import POINT_FUNCTIONS, check_argument, check_patterns, find_canonical_name
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)


@pytest.mark.parametrize(("spelled", "name"), CASES["spellings"].items())
def test_other_spellings(spelled: str, name: str) -> None:
    assert find_canonical_name(spelled) == find_canonical_name(name) == name


@pytest.mark.parametrize("name", CASES["unknown"])
def test_other_names_are_unknown(name: str) -> None:
    assert find_canonical_name(name) is None


@pytest.mark.parametrize(("name", "args"), [(name, args) for name, all_args in CASES["sound"].items() for args in all_args])
def test_sound_argument(name: str, args: object) -> None:
    assert check_argument(name, args) is None
    if f"not_{name}" in POINT_FUNCTIONS:
        assert check_argument(f"not_{name}", args) is None


@pytest.mark.parametrize(("name", "args"), [(name, args) for name, all_args in CASES["wrong"].items() for args in all_args])
def test_wrong_argument_says_what_it_takes(name: str, args: object) -> None:
    fault = check_argument(name, args)
    assert fault is not None
    assert fault.startswith(f"${name} takes {POINT_FUNCTIONS[name].argument}; got ")


def test_number_where_a_text_is_meant_is_reported_to_be_quoted() -> None:
    assert check_argument("contains", 5) == "$contains takes a text; got 5; put quotes around it"


def test_patterns_are_checked_wherever_they_stand() -> None:
    (fault,) = check_patterns("imatches_all_of", ["a", "("])
    assert fault.startswith("the pattern '(' of $imatches_all_of: ")
    assert list(check_patterns("matches_at_least_n_of", [1, ["c"]])) == []
    assert list(check_patterns("icontains", "(")) == []

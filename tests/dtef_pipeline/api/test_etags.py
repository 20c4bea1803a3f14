"""Entity tags compare weakly, in lists, with commas inside; a malformed header matches nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.api.etags import compute_weak_etag, matches
from tests.made.shared_cases import cases

TAG = 'W/"abc"'
FORMS = {
    None: False,
    'W/"abc"': True,
    '"abc"': True,
    'W/"x", W/"abc"': True,
    '"x","y"': False,
    "*": True,
    "garbage": False,
    'W/"abc" W/"x"': False,
    '"a,b", "abc"': True,
    'w/"abc"': False,
    '"abc': False,
    "": False,
    # The end of a header was looked for with `$`, which also matches before a final line break: the reader then never came further.
    "\n": False,
    '"abc"\n': False,
    " * ": True,
    '"",W/"abc"': True,
    '"x",, ,"abc",': True,
    ",,": False,
    "abc": False,
    '"a,abc"': False,
    '*, "abc"x': False,
}


@pytest.mark.parametrize("header", FORMS)
def test_every_form_of_the_header(header: str | None) -> None:
    assert matches(header, TAG) is FORMS[header]


def test_the_published_cases() -> None:
    for case in cases("votes", "if_none_match"):
        assert (304 if matches(case["in"]["if_none_match"], case["in"]["etag"]) else 200) == case["out"], case["id"]


@given(st.text(max_size=60))
def test_no_header_is_too_strange(header: str) -> None:
    assert matches(header, TAG) in (True, False)


def test_the_tag_is_of_what_is_stated_and_not_of_its_order() -> None:
    assert compute_weak_etag({"a": 1, "b": 2}) == compute_weak_etag({"b": 2, "a": 1}) != compute_weak_etag({"a": 1})

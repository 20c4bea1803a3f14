"""One spelling of texts that are compared."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.metric import fold_to_ascii, normalise
from tests.made.shared_cases import cases

ANY_TEXT = st.text(st.characters(exclude_categories=()))
"""Lone surrogates and NUL too."""


def test_the_published_vectors() -> None:
    found = cases("transcripts", "normalise")
    assert {case["id"]: normalise(case["in"]["text"]) for case in found} == {case["id"]: case["out"] for case in found}


@pytest.mark.parametrize(
    ("text", "compared"),
    [
        (None, ""),
        ("  ", ""),
        ("Straße, Ærø & Þingvellir", "strasse aero thingvellir"),
        ("cafe\u0301 CAFÉ", "cafe cafe"),
        ("O’Brien's, o´clock", "obriens oclock"),
        ("3.5. a.b 1.", "3.5 a b 1"),
        ("-5 - 5 a-b sts-75 --7", "-5 5 a b sts-75 -7"),
        ("50% (of) all", "50% of all"),
        ("１２．５ ％", "12.5 %"),
        ("tab\tline\nend\u00a0\u2003x\x00y", "tab line end x y"),
        ("5 – 10…", "5 10"),
    ],
)
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
    fold_to_ascii(run * 100_000)
    normalise(run * 100_000)
    assert time.perf_counter() - started < 20

"""Estimated tokens: the rule, by hand and against its plain definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.tokens import estimate_tokens


def naive(text: str) -> int:
    """Character by character: a token goes on while the run does, up to six letters or three digits."""
    tokens, kind, length = 0, "", 0
    for character in text:
        if character.isascii() and character.isalpha():
            now, most = "letter", 6
        elif character.isdecimal():
            # Digits of other scripts are tokens of their own, unless they go on a run of digits that ours began.
            now, most = "digit", 3
        elif character == "\n":
            now, most = "line end", 10**9
        elif character.isspace() and character.isascii():
            now, most = "", 0
        else:
            now, most = "other", 1
        length = length + 1 if now == kind and length < most else 1
        tokens += now != "" and length == 1
        kind = now
    return tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("   ", 0),
        ("agree", 1),
        ("strong", 1),
        ("strongly", 2),
        ("disagreement", 2),
        ("2026", 2),
        ("123456", 2),
        ("a1b", 3),
        ("\n\n\n", 1),
        ("\n \n", 2),
        ("[40.2, 30]", 7),
        ("don't", 3),
        ("naïve", 3),
        ("漢字", 2),
        ("x\u00a0y", 3),
        ("\x1c\x0b\t", 0),
    ],
)
def test_by_hand(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(st.sampled_from("aZbc019 \n\t\r\x0b\x1f.,%_é漢\u0663\u00a0\u2028K"), max_size=60))
def test_it_is_the_plain_definition(text: str) -> None:
    assert estimate_tokens(text) == naive(text)


@given(st.text(st.characters(max_codepoint=127), max_size=200), st.sampled_from("a0\n ."), st.integers(0, 40))
def test_long_runs_of_ascii(text: str, character: str, length: int) -> None:
    text = text + character * length + text
    assert estimate_tokens(text) == naive(text)

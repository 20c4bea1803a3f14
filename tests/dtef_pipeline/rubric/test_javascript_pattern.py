"""Patterns mean in Python what they mean in JavaScript."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.rubric.javascript_characters import capitals, code_units, word_count
from dtef_pipeline.rubric.javascript_pattern import SearchTooLong, compiled, pattern_fault
from dtef_pipeline.rubric.javascript_syntax import BadPattern
from tests.dtef_pipeline.rubric.javascript_cases import FAULTY, FOUND_OR_NOT

ESCAPED = (
    r"a a b c . \d \w \s \b \B ^ $ [ab] [^a] [^] [] [a-c] [\d-x] \1 \2 \0 \12 \x41 \u{2} \cA \c \k<n> \- \p{L} ] } { {1 - k K s"
)
PARTS = ESCAPED.split()
PARTS += ["\u017f", "\u212a", "\u0130", "\u00df", "\U0001f600", "\n", "\ufeff", "(", "(?", "*"]
OPENINGS = ("(", "(", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?<n>")
TIMES = ("*", "+", "?", "{2}", "{0,1}", "{1,2}", "*?", "??", "{2,}", "{2,1}")
LETTERS = "aaabbbcckKsS\u017f\u212a\u0130\u0131i\u00df\n \ufeff\x85\U0001f60001{}]-\\"
IN_NODE = """const rows = JSON.parse(require('fs').readFileSync(0));
const found = ([pattern, flags, texts]) => {
  try { const machine = new RegExp(pattern, flags); return texts.map(text => machine.test(text)); } catch (error) { return null; }
};
console.log(JSON.stringify(rows.map(found)));"""


def in_node(rows: list[tuple[str, bool, list[str]]]) -> list[list[bool] | None]:
    """What node finds; None: it refuses the pattern. Skips the test where there is no node."""
    if (node := shutil.which("node")) is None:
        pytest.skip("node is not installed")
    sent = json.dumps([(pattern, "i" if ignore_case else "", texts) for pattern, ignore_case, texts in rows])
    done = subprocess.run([node, "-e", IN_NODE], input=sent, capture_output=True, text=True, check=True)
    answers: list[list[bool] | None] = json.loads(done.stdout)
    return answers


def here(pattern: str, ignore_case: bool, texts: list[str]) -> list[bool] | None:
    if pattern_fault(pattern, ignore_case) is not None:
        return None
    return [compiled(pattern, ignore_case).found_in(text) for text in texts]


def drawn_pattern(random_: random.Random, depth: int = 0) -> str:
    found = ""
    for _ in range(random_.randint(1, 4)):
        nested = depth < 3 and random_.random() < 0.3
        part = f"{random_.choice(OPENINGS)}{drawn_pattern(random_, depth + 1)})" if nested else random_.choice(PARTS)
        found += part + (random_.choice(TIMES) if random_.random() < 0.3 else "") + ("|" if random_.random() < 0.1 else "")
    return found


@pytest.mark.parametrize(("pattern", "ignore_case", "text", "found"), FOUND_OR_NOT)
def test_hard_cases_are_found_as_node_finds_them(pattern: str, ignore_case: bool, text: str, found: bool) -> None:
    assert here(pattern, ignore_case, [text]) == [found]


def test_the_table_of_hard_cases_is_what_node_says() -> None:
    rows = [(pattern, ignore_case, [text]) for pattern, ignore_case, text, _ in FOUND_OR_NOT]
    assert in_node(rows) == [[found] for *_, found in FOUND_OR_NOT]


@pytest.mark.parametrize("pattern", FAULTY)
def test_what_javascript_refuses_has_a_fault(pattern: str) -> None:
    assert pattern_fault(pattern)
    with pytest.raises(BadPattern):
        compiled(pattern)


def test_node_refuses_the_same_patterns() -> None:
    assert in_node([(pattern, False, [""]) for pattern in FAULTY]) == [None] * len(FAULTY)


def test_patterns_drawn_at_random_are_found_as_node_finds_them() -> None:
    draw = random.Random(13)
    texts = ["", *("".join(draw.choice(LETTERS) for _ in range(draw.randint(1, 8))) for _ in range(30))]
    rows = [(drawn_pattern(draw), draw.random() < 0.5, draw.sample(texts, 8)) for _ in range(1500)]
    differing = [(row, ours, node) for row, node in zip(rows, in_node(rows), strict=True) if (ours := here(*row)) != node]
    assert differing == []


def test_a_search_that_takes_too_long_is_given_up_after_a_second() -> None:
    started = time.monotonic()
    with pytest.raises(SearchTooLong):
        compiled("(a|a)*$").found_in("a" * 60 + "b")
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("pattern", ["b{2147483647}", "((a{1000}){1000}){1000}", "(" * 500 + ")" * 500])
def test_a_pattern_that_would_fill_the_memory_is_refused(pattern: str) -> None:
    assert pattern_fault(pattern)


@given(st.text(), st.booleans(), st.text())
def test_any_text_is_a_pattern_or_has_a_fault(pattern: str, ignore_case: bool, text: str) -> None:
    assert here(pattern, ignore_case, [text]) in (None, [True], [False])


@given(st.text())
def test_capitals_stand_for_themselves(text: str) -> None:
    once = capitals(code_units(text))
    assert capitals(once) == once
    assert len(once) == len(text.encode("utf-16-le", "surrogatepass")) // 2


@pytest.mark.parametrize(
    ("text", "words"), [("", 0), (" a  b\n", 2), ("a\x1cb", 1), ("a\ufeffb", 2), ("\x85", 1), ("a\u00a0b", 2)]
)
def test_words_are_counted_as_javascript_sees_white_space(text: str, words: int) -> None:
    assert word_count(text) == words

"""What models really write, and what must be made of it."""

from __future__ import annotations

import re
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.survey.reading.parsing import parse_response
from tests.made.model_texts import AGES, COUNTS, FOUR, NOT_OK, OK, THREE


def fractions(values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(v / sum(values) for v in values)


@pytest.mark.parametrize(("text", "options", "values"), OK)
def test_a_realistic_answer_is_read_as_intended(text: str, options: tuple[str, ...], values: tuple[float, ...]) -> None:
    parsed = parse_response(text, len(options), options)
    assert parsed.status == "ok", parsed.reason
    assert parsed.distribution == pytest.approx(fractions(values), abs=1e-12)


@pytest.mark.parametrize(("text", "options", "status", "reason"), NOT_OK)
def test_what_is_no_distribution_says_why(text: str | None, options: tuple[str, ...], status: str, reason: str) -> None:
    parsed = parse_response(text, len(options), options)
    assert (parsed.status, parsed.distribution) == (status, None)
    assert reason in parsed.reason


def test_tail_of_a_very_long_response_is_read() -> None:
    assert parse_response("word " * 100_000 + "[50, 30, 20]", 3, THREE).distribution == pytest.approx((0.5, 0.3, 0.2))
    assert parse_response("<think>" + "word " * 100_000 + "</think>[50, 30, 20]", 3, THREE).status == "ok"
    assert parse_response("<think>" + "[50, 30, 20] " * 10_000, 3, THREE).status == "unparseable"


def test_total_far_from_a_whole_is_reported_and_normalised() -> None:
    parsed = parse_response("[40, 30, 10]", 3, THREE)
    assert parsed.reason == "array; raw total 80"
    assert parsed.distribution == pytest.approx((0.5, 0.375, 0.125))
    assert parse_response("[50, 30, 19]", 3, THREE).reason == "array"


def test_labels_are_taken_in_written_order_when_options_are_not_known() -> None:
    assert parse_response("Yes: 60%\nNo: 40%\nTotal: 100%", 2).distribution == pytest.approx((0.6, 0.4))
    assert parse_response('{"yes": 60, "no": 40}', 2).distribution == pytest.approx((0.6, 0.4))


def test_labels_of_the_same_words_decide_nothing() -> None:
    assert parse_response("-1: 30\n+1: 70", 2, ("-1", "+1")).status != "ok"
    assert parse_response("[30, 70]", 2, ("-1", "+1")).distribution == pytest.approx((0.3, 0.7))


def test_two_readings_of_the_same_words_are_not_guessed_between() -> None:
    parsed = parse_response("Yes: 60% No: 40% Yes", 2, ("Yes", "No"))
    assert parsed.status == "unparseable"
    assert "two readings" in parsed.reason


def test_a_question_with_one_option_is_never_ok() -> None:
    assert parse_response("[100]", 1, ("Yes",)).status == "unparseable"


def test_options_of_another_number_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match=r"n_options is 3, .*2 options"):
        parse_response("[1, 2, 3]", 3, ("Yes", "No"))


WORDS = ("Strongly agree", "Agree", "Neither", "Disagree", "Strongly disagree")
WORDS += ("18-25", "More than 7", "Don't know", "No, never")
PROSE = st.sampled_from(
    ["", "Here is my prediction:\n", "Based on the context, this group leans liberal [1].\n\n", "Sure!\n", "<think>[1, 2, 3]</think>"]
)  # fmt: skip
TAIL = st.sampled_from(["", "\n", "\n\nThis reflects the context above.", "\nSources: [1], [2]", "\n\nHope this helps!"])


@st.composite
def distributions(draw: st.DrawFn) -> tuple[list[str], list[float]]:
    options = draw(st.lists(st.sampled_from(WORDS), min_size=2, max_size=9, unique=True))
    tenths = draw(st.lists(st.integers(0, 1000), min_size=len(options), max_size=len(options)).filter(any))
    return options, [round(t * 100 / sum(tenths), 1) for t in tenths]


def rendered(style: str, options: list[str], values: list[float], order: list[int]) -> str:
    pairs = [(options[i], values[i]) for i in order]
    letters = [("abcdefghi"[i], values[i]) for i in order]
    return {
        "array": str(values),
        "fractions": str([round(v / 100, 5) for v in values]),
        "commas": ", ".join(map(str, values)),
        "percent": ", ".join(f"{v}%" for v in values),
        "column": "\n".join(f"- {v}%" for v in values),
        "labels": "\n".join(f"- **{o}**: {v}%" for o, v in pairs),
        "object": "{" + ", ".join(f'"{o}": {v}' for o, v in pairs) + "}",
        "table": "| Option | % |\n|---|---|\n" + "\n".join(f"| {o} | {v} |" for o, v in pairs),
        "values first": "\n".join(f"{v}% {o}" for o, v in pairs),
        "letters": "\n".join(f"{a}) {v}%" for a, v in letters),
        "letters and labels": "\n".join(f"{'abcdefghi'[i]}. {options[i]}: {values[i]}%" for i in order),
    }[style]


STYLES = (
    "array", "fractions", "commas", "percent", "column", "labels", "object", "table", "values first", "letters",
    "letters and labels",
)  # fmt: skip


@given(case=distributions(), prose=PROSE, tail=TAIL, random=st.randoms(use_true_random=False))
@pytest.mark.parametrize("style", STYLES)
def test_any_distribution_in_any_format_amid_prose_is_recovered(
    style: str, case: tuple[list[str], list[float]], prose: str, tail: str, random: object
) -> None:
    options, values = case
    order = list(range(len(options)))
    random.shuffle(order)  # type: ignore[attr-defined]
    text = prose + rendered(style, options, values, order) + tail
    parsed = parse_response(text, len(options), options)
    assert parsed.status == "ok", (text, parsed.reason)
    assert parsed.distribution == pytest.approx(fractions(tuple(values)), abs=1e-4)


FRAGMENTS = st.lists(
    st.sampled_from(
        ["[", "]", "{", "}", "(", ")", ",", ";", ":", "|", "/", "-", "–", "%", " ", "\n", '"', "*", "~", "1", "45", "1,200",
         "0.5", ".", "e", "nan", "inf", "null", "<think>", "</think>", "Agree", "Disagree: 40%", "a.", "b) ", "1. ", "Answer:",
         "between ", "\x00", "\ud800", "٤", "½", "²", "％", "−", "İ", "ﷺ", "\u0301", "to ", "9" * 400, "=", "→", "1e999"]
    ),
    max_size=60,
).map("".join)  # fmt: skip


@given(text=st.one_of(FRAGMENTS, st.text(max_size=200)), options=st.sampled_from([THREE, FOUR, AGES, COUNTS, ("", "")]))
def test_no_text_breaks_the_parser(text: str, options: tuple[str, ...]) -> None:
    parsed = parse_response(text, len(options), options)
    assert parsed.status in ("ok", "unparseable", "wrong_length", "refused")
    assert parsed.reason
    assert (parsed.distribution is not None) == (parsed.status == "ok")
    if parsed.distribution is not None:
        assert len(parsed.distribution) == len(options)
        assert min(parsed.distribution) >= 0
        assert sum(parsed.distribution) == pytest.approx(1, abs=1e-9)
    assert parse_response(text, len(options)).status in ("ok", "unparseable", "wrong_length", "refused")


@pytest.mark.parametrize("text", ["[" * 100_000, "{" * 100_000, "1" * 100_000, "a: 1 b: 2 " * 20_000, "<think>" * 50_000])
def test_endless_repetition_is_survived(text: str) -> None:
    assert parse_response(text, 3, THREE).status in ("unparseable", "wrong_length")


ALMOST = ["0", "00", "007", "1.", ".", ".5", "1..2", "1.2.3", "12345678", "123456789", "1.234567", "1.2345678", "1,2", "1/2"]
ALMOST += ["1:", "-1", "+1", " 1", "1 ", "1e1", "a", "١", "1\x00", "nan", "", "999999.", "0.000000"]
PIECES = st.one_of(
    st.sampled_from(ALMOST),
    st.text("0123456789.", max_size=9),
    st.text("0123456789.,-+e []/:\x00\xff", max_size=9),
    st.builds("{:.{}f}".format, st.floats(0, 1e6), st.integers(0, 6)),
)


def arrays(k: int) -> st.SearchStrategy[str]:
    numbers = st.one_of(st.builds("{:.1f}".format, st.floats(0, 100)), st.integers(0, 100).map(str), PIECES)
    joined = st.tuples(st.lists(numbers, min_size=k - 1, max_size=k + 1), st.sampled_from([", ", ",", " , ", ",\n  "]))
    around = st.sampled_from(
        ["[{}]", "[{}]", "[{}]", " [ {} ]\n", "[{}", "{}]", "[[{}]]", "My answer: [{}].", "```json\n[{}]\n```", "[]{}"]
    )
    return st.builds(lambda form, listed: form.replace("{}", listed[1].join(listed[0])), around, joined)


ARRAYS = st.integers(2, 12).flatmap(lambda k: st.tuples(st.just(k), arrays(k)))


@given(case=ARRAYS)
def test_an_array_alone_is_read_as_the_rules_for_any_text_read_it(case: tuple[int, str]) -> None:
    k, text = case
    read = parse_response(text, k)
    with patch("dtef_pipeline.survey.reading.distribution._CLEAN_ARRAY", re.compile("(?!)")):
        assert read == parse_response(text, k)

"""The number that a reply gives: the rules in order, published replies, hostile text."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.model import ItemError, ItemScore, ScorerSettings, WrittenResponse
from dtef_pipeline.qa.reading.numeric import Numeric, read_number
from dtef_pipeline.text.numbers import is_same_number, parse_exact_number
from tests.made.shared_cases import cases, cases_beside, json_rows, shared

CASES = cases_beside(__file__)
"""Replies by what is read of them, with their numbers; a number that is not whole is a fraction."""
PIECES = (
    "####", "#### ", "\\boxed{", "\\fbox{", "}", "\\frac{", "{", "The answer is ", "answer: ", "\nA: ", "final result ", "= ", "1,234", "5",
    " seven hundred ", "one ", "-", "$", "%", ".", "\n", "/", ":", "```python\n", "```", "<think>", "</think>", "\ud800", "\x00", "½", "((((",
    "9" * 40, "1e9", "^", "_000", " 345", "dozen", " to ", "\\sqrt", "!", "(", ")",
    " not ", " nicht ", ", sondern ", "不是", "ではなく", ". No, ", "答案是", "Antwort ist ", "Wait ", "so it is ",
    "€1.319", "between ", "Step ", "____", "\\", "٣", "İ",
)  # fmt: skip


def number_of(stated: int | str | None) -> Fraction | None:
    return None if stated is None else Fraction(stated)


def scored(response: str | None, reference: str, finish_reason: str | None = None) -> ItemScore:
    return Numeric().prepare_item(reference, (), ScorerSettings())(WrittenResponse(response, finish_reason))


@pytest.mark.parametrize(("how", "text"), [(how, text) for how, texts in CASES["by_rule"].items() for text in texts])
def test_each_rule_reads_its_number(how: str, text: str) -> None:
    read = read_number(text)
    assert (read.number, read.read_by) == (number_of(CASES["by_rule"][how][text]), how)


@pytest.mark.parametrize("text", CASES["unread"])
def test_a_reply_without_an_answer_is_unparseable_and_counts_nothing_but_0(text: str) -> None:
    score = scored(text, "5")
    assert (score.status, score.value, score.score, score.details) == ("unparseable", None, 0.0, {"number": None})


@pytest.mark.parametrize("text", [*CASES["ambiguous"], *CASES["no_arithmetic"]])
def test_a_number_that_is_one_of_several_or_not_clear_is_no_answer(text: str) -> None:
    assert read_number(text) == (None, None, ("ambiguous",))


@pytest.mark.parametrize("how", ["one_of_two_spellings", "arithmetic", "corrected", "other_languages"])
def test_a_number_is_read_in_every_spelling(how: str) -> None:
    """Of arithmetic the first number was taken, of other languages the last one, and 1.319 for a little more than one."""
    assert {text: read_number(text).number for text in CASES[how]} == {text: number_of(n) for text, n in CASES[how].items()}


@pytest.mark.parametrize("text", CASES["cut"])
def test_a_cut_reply_counts_only_where_the_text_goes_on_behind_its_number(text: str) -> None:
    read = read_number(text, was_cut=True)
    assert read.number == number_of(CASES["cut"][text])
    assert ("truncated" in read.flags) == (read.number is None)


def test_statements_that_differ_are_flagged() -> None:
    assert read_number("The answer is 5. Wait. The answer is 6.").flags == ("several",)
    assert read_number("The answer is 5. Yes, the answer is 5.0.").flags == ()


def test_the_expected_number_is_a_number_or_a_solution_that_ends_in_one() -> None:
    assert scored("72", "It is 48+24=72\n#### 72").value == 1.0
    assert scored("#### 70,000", "70000").value == 1.0
    assert scored("71", "72").value == 0.0
    assert scored("0.333333", "1/3").value == 1.0
    assert scored(None, "72").status == "unparseable"


def test_without_an_expected_number_the_reply_is_read_and_has_no_value() -> None:
    """With null the published examples are `ok`; with an empty text there is nothing to be scored."""
    for reference, status in (("null", "ok"), ("", "unscorable")):
        score = scored("The answer is 14.8.", reference)
        assert (score.status, score.value, score.score, score.details) == (status, None, None, {"number": 14.8})
        assert "there is no reference" in str(score.reason)


def test_a_reference_that_is_no_number_is_an_error() -> None:
    with pytest.raises(ItemError, match=r"reference: the expected number; got 'many'; allowed: a number, or a solution"):
        scored("5", "many")


def test_every_vector_is_met() -> None:
    found = [case for case in cases("benchmarks", "score") if case["in"]["scorer"] == "numeric"]
    assert found
    for case in found:
        given_in, out = case["in"], case["out"]
        score = scored(given_in["response"], json.dumps(given_in["reference"]).strip('"'), given_in.get("finish_reason"))
        assert score.status == out["status"], case["id"]
        assert score.details["number"] == (None if out["number"] is None else pytest.approx(out["number"], abs=1e-9)), case[
            "id"
        ]
        if "score" in out:
            assert score.score == pytest.approx(out["score"]), case["id"]


def test_the_vectors_of_equal_numbers_are_met() -> None:
    for case in cases("benchmarks", "number_equal"):
        a, b = parse_exact_number(case["in"]["a"]), parse_exact_number(case["in"]["b"])
        assert a is not None
        assert b is not None
        assert is_same_number(a, b) is case["out"], case["id"]


def expected_numbers() -> dict[int, Fraction]:
    rows = json_rows("benchmarks/gsm8k/test.jsonl")
    index = json.loads(shared("benchmarks/gsm8k/index.json").read_text(encoding="utf-8"))
    numbers = {place: parse_exact_number(row["answer"].rpartition("####")[2]) for place, row in zip(index, rows, strict=True)}
    return {place: number for place, number in numbers.items() if number is not None}


def test_published_replies_of_2021_get_their_published_verdicts() -> None:
    rows, expected = json_rows("benchmarks/gsm8k/outputs/openai-gpt3-2021.jsonl"), expected_numbers()
    assert len(rows) == 1600
    for row in rows:
        number = read_number(row["text"]).number
        is_right = number is not None and is_same_number(number, expected[row["index"]])
        assert is_right is row["published_correct"], row


def test_published_replies_with_programs_are_read_as_published_but_for_two() -> None:
    """98 ends in prose after its output (`5 cars ... in the first 15 minutes`), 146 is a program without output, whose reading is no number."""
    differing = set()
    for row in json_rows("benchmarks/gsm8k/outputs/tora-70b.jsonl"):
        over, _, under = row["published_prediction"].removeprefix("\\frac{").removesuffix("}").partition("}{")
        published, number = parse_exact_number(f"{over}/{under}" if under else over), read_number(row["text"]).number
        if number is None or published is None or not is_same_number(number, published):
            differing.add(row["index"])
    assert differing <= {98, 146}


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(), st.booleans())
def test_no_text_breaks_the_reader(text: str, was_cut: bool) -> None:
    read = read_number(text, was_cut=was_cut)
    assert (read.number is None) == (read.read_by is None)
    json.dumps(scored(text, "5").details)


@pytest.mark.parametrize("piece", ["(", "####", "\\boxed{", "one\n", "answer is 5. Wait, no, it is ", "不是5"])
def test_a_long_text_of_one_piece_is_read(piece: str) -> None:
    read_number(piece * (40_000 // len(piece)))


@given(
    st.integers(-(10**6), 10**9),
    st.sampled_from(["", "$", "£"]),
    st.sampled_from(["", ".", " dollars", "%", "**"]),
    st.booleans(),
)
def test_a_number_survives_currency_commas_units_and_thinking(number: int, before: str, behind: str, commas: bool) -> None:
    said = f"{before}{number:,}{behind}" if commas else f"{before}{number}{behind}"
    noise = "<think>or is it 7?</think>We have 3 + 4 = 7 first.\n\n"
    for form in ("#### {}", "\\boxed{{{}}}", "The answer is {}", "**Final answer:** {}", "A: {}", "So she has {}"):
        assert read_number(noise + form.format(said)).number == number, form

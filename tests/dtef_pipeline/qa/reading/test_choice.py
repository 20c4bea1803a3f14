"""The letter that a reply chooses: the rules in order, published replies, noise, hostile text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.model import ItemError, ItemScore
from tests.dtef_pipeline.qa.reading.letters import read_letter, score_choice
from tests.made.shared_cases import cases, cases_beside, json_rows

CITIES = ("London", "Berlin", "Paris", "Madrid")
ORGANS = ("The heart", "The lung", "The kidney", "The liver", "The skin", "Bone", "Ear", "Eye", "Nose", "Toe")
CASES = cases_beside(__file__)
"""Replies by what is read of them, with their letters."""
PIECES = (
    "The answer is ", "answer", "Answer: ", "A", "B", "(C)", " and ", " or ", "D.", "I ", "E", "\\boxed{", "}", "closest ", "so ", "option ",
    "Paris", "London", "\n", "<think>", "</think>", "not ", "**", "(", "\ud800", "\x00", "\\text{", "is the correct ", "J)", "choice", "a)",
    "it is ", "but ", "isn't ", "A. London\nB. Berlin\nC. Paris\nD. Madrid\n",
)  # fmt: skip


def scored(
    response: str | None, reference: str, options: tuple[str, ...] = CITIES, finish_reason: str | None = None
) -> ItemScore:
    return score_choice(response, reference, options, finish_reason)


@pytest.mark.parametrize(("how", "text"), [(how, text) for how, texts in CASES["read_as"].items() for text in texts])
def test_each_rule_reads_its_letter(how: str, text: str) -> None:
    read = read_letter(text, CITIES)
    assert (read.letter, read.read_by) == (CASES["read_as"][how][text], how)


@pytest.mark.parametrize("text", CASES["unread"])
def test_a_reply_that_chooses_nothing_is_unparseable_and_counts_0(text: str) -> None:
    score = scored(text, "C")
    assert (score.status, score.value, score.score, score.details) == ("unparseable", None, 0.0, {"letter": None})


@pytest.mark.parametrize("text", CASES["cut"])
def test_a_cut_reply_counts_only_where_the_text_goes_on_behind_its_statement(text: str) -> None:
    read = read_letter(text, CITIES, was_cut=True)
    assert read.letter == CASES["cut"][text]
    assert ("truncated" in read.flags) == (read.letter is None)


@pytest.mark.parametrize(("text", "options", "letter"), CASES["by_text"])
def test_the_text_of_exactly_one_option_is_its_letter(text: str, options: tuple[str, ...], letter: str | None) -> None:
    assert read_letter(text, options).letter == letter


@pytest.mark.parametrize(("text", "letter"), CASES["other_forms"].items())
def test_statements_of_other_forms_and_languages_are_read(text: str, letter: str | None) -> None:
    assert read_letter(text, ("one", "two", "three", "four")).letter == letter


def test_lone_letters_and_texts_count_only_in_short_replies() -> None:
    padding = "This was looked at from many sides, and with care. " * 5
    assert read_letter(f"It must be C. {padding}", CITIES).letter is None
    assert read_letter(f"It must be Paris. {padding}", CITIES).letter is None
    assert read_letter(f"{padding} So C", CITIES).letter == "C"


def test_i_is_a_letter_of_ten_options_and_a_word() -> None:
    for text in ("The answer is I", "(I)", "I", "The answer is I because of it", "I. Nose"):
        assert read_letter(text, ORGANS).letter == "I", text
    assert read_letter("I think it is H", ORGANS).letter == "H"
    assert read_letter("I. is true\nII. is false", ORGANS).letter is None
    assert read_letter("The answer is (E and I).", ORGANS).letter is None


def test_flags_say_what_was_odd() -> None:
    assert read_letter("The answer is (B).\n\nThe answer is (C).", CITIES).flags == ("several",)
    assert read_letter("A) 4", ("3", "4")) == ("A", "line", ("text_mismatch",))
    assert read_letter("The answer is (A) Berlin.", CITIES).flags == ("text_mismatch",)
    assert read_letter("The answer is (A). Berlin is wrong.", CITIES).flags == ()
    assert read_letter("The answer is A. However, the answer is not A.", CITIES) == ("A", "statement", ("denied",))
    assert read_letter("The answer is A. The answer is not B. The answer is A.", CITIES).flags == ()
    assert read_letter("The answer is (B). The answer is (E).", CITIES) == (None, None, ("outside",))
    for both in ("The answer is (A) and (B).", "The answer is not only A but also B"):
        assert read_letter(both, CITIES) == (None, None, ("multi",))
    assert read_letter("Not London", CITIES).flags == ()


def test_without_options_letters_go_to_d_or_to_the_expected_one() -> None:
    assert scored("The answer is G", "A", ()).details == {"letter": None}
    assert scored("The answer is G", "G", ()).value == 1.0
    assert scored("The answer is B", "B", ()).value == 1.0


def test_without_an_expected_letter_the_reply_is_read_and_cannot_be_scored() -> None:
    for reference in ("", "null"):
        assert scored("C", reference) == ItemScore("unscorable", None, "alone", (), {"letter": "C"}, "there is no reference")
        assert scored("", reference).score is None


def test_an_expected_letter_beyond_the_options_is_an_error() -> None:
    with pytest.raises(ItemError, match=r"the expected letter; got 'E'; allowed: A, B, C, D"):
        scored("C", "E")


def vectors() -> list[dict[str, Any]]:
    return [case for case in cases("benchmarks", "score") if case["in"]["scorer"] == "exact_choice"]


def test_every_vector_is_met() -> None:
    assert vectors()
    for case in vectors():
        given_in, out = case["in"], case["out"]
        score = scored(given_in["response"], given_in["reference"], tuple(given_in["options"]), given_in.get("finish_reason"))
        assert (score.details["letter"], score.status) == (out["letter"], out["status"]), case["id"]
        assert score.score == pytest.approx(out["score"]), case["id"]


def test_without_their_options_the_vectors_that_name_a_letter_are_met() -> None:
    for case in vectors():
        given_in, letter = case["in"], case["out"]["letter"]
        if given_in["options"] != list(CITIES):
            continue
        expected = None if given_in["response"] == "Paris" else letter
        assert read_letter(given_in["response"], was_cut=given_in.get("finish_reason") == "length").letter == expected, case[
            "id"
        ]


def test_published_replies_are_read_as_people_read_them() -> None:
    rows = json_rows("benchmarks/mmlu-pro/outputs.jsonl")
    assert len(rows) == 114
    wrong = [row["question_id"] for row in rows if read_letter(row["text"], row["options"]).letter != row["letter"]]
    assert wrong == []


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(), st.integers(0, 10), st.booleans())
def test_a_letter_is_one_of_the_options_or_none(text: str, count: int, was_cut: bool) -> None:
    read = read_letter(text, ORGANS[:count], was_cut=was_cut)
    assert read.letter is None or read.letter in "ABCDEFGHIJ"[: count or 4]
    assert (read.letter is None) == (read.read_by is None)
    json.dumps(scored(text, "", ORGANS[:count]).details)


@given(
    st.sampled_from("ABCD"),
    st.sampled_from(["{}", "({})", "**{}**", "({}).", "`{}`", "[{}]", "$\\text{{{}}}$", "\u201c{}\u201d"]),
    st.sampled_from(["", "\n\n", ".\n\nThis follows from what was said.", "\n\nI hope this helps!"]),
    st.sampled_from(["", "<think>(A)? The answer is B.</think>", "We look at each option. London is large. 3 + 4 = 7.\n\n"]),
)
def test_a_statement_survives_brackets_emphasis_and_text_around_it(letter: str, form: str, behind: str, before: str) -> None:
    for cue in ("The answer is ", "Answer: ", "**Final answer:** ", "The correct answer is option "):
        text = before + cue + form.format(letter) + behind
        assert read_letter(text, CITIES).letter == letter, text


@pytest.mark.parametrize("piece", CASES["a_long_text_of_one_piece_is_read"])
def test_a_long_text_of_one_piece_is_read(piece: str) -> None:
    read_letter(piece * (40_000 // len(piece)), CITIES)

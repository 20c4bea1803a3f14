"""A model that goes on behind its reply is read by its reply: the answers to questions of its own were taken for it."""

from __future__ import annotations

import pytest

from dtef_pipeline.qa.model import ScorerSettings, WrittenResponse
from dtef_pipeline.qa.reading.numeric import read_number
from dtef_pipeline.qa.reading.reply_end import cut_at_end, cut_before_next_turn
from dtef_pipeline.qa.scorers import find_scorer
from tests.dtef_pipeline.qa.reading.letters import read_letter
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)
GOES_ON = CASES["only_the_reply_itself_is_read"]


@pytest.mark.parametrize("more", CASES["only_the_reply_itself_is_read"])
@pytest.mark.parametrize("was_cut", [False, True])
def test_only_the_reply_itself_is_read(more: str, was_cut: bool) -> None:
    for reply in ("#### 18", "18", "The answer is 18."):
        assert read_number(reply + more, was_cut=was_cut).number == 18
    for reply in ("C", "The answer is C.", "(C) the sea"):
        assert read_letter(reply + more, was_cut=was_cut).letter == "C"


@pytest.mark.parametrize("text", CASES["a_question_that_is_repeated_is_no_end"])
def test_a_question_that_is_repeated_is_no_end(text: str) -> None:
    assert read_number(text).number == 18
    assert read_letter(text).letter == "B"


def test_a_reply_without_an_answer_has_none_behind_its_end() -> None:
    assert read_number("####<|endoftext|>Question: ... #### 3").number is None
    assert read_number("3 or 5\n\nQuestion: ...\n#### 3").flags == ("ambiguous", "run_on")


def test_the_reading_says_that_the_model_went_on() -> None:
    assert read_letter(f"C{GOES_ON[0]}").flags == ("run_on",)


def test_answers_about_interviews_end_there_too() -> None:
    scorer = find_scorer("list_many")
    assert scorer is not None
    score = scorer.prepare_item('{"car": 1, "bicycle": 1}', (), ScorerSettings())
    for more in ("<|im_end|>\nbicycle", "\nQuestion: What else?\nAnswer: bicycle"):
        assert score(WrittenResponse(f"car{more}")).value == 0.5


@pytest.mark.parametrize(
    "piece",
    ["<|im_end|>", "\nQuestion:", "\nQuestion 2:", "\nTask  ", " ", "</s> ", "\n[INST]x", "<|im_start|>assistant", "<", "\n**"],
)
def test_long_texts_of_one_piece_are_ended(piece: str) -> None:
    for text in (piece * 20_000, "\nQuestion" + piece * 20_000):
        assert len(cut_at_end(text).text) <= len(text)
        cut_before_next_turn(text)

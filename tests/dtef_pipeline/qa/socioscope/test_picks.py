"""PickOne and PickMany: letters, texts of options, almost the text of one."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.model import ItemError, ScorerSettings
from dtef_pipeline.qa.socioscope.picks import PickMany, PickOne
from tests.dtef_pipeline.qa.socioscope.scored import score
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)
COLOURS = ("Red", "Blue", "Green")
AGREEMENT = ("Strongly agree", "Agree", "Disagree", "Strongly disagree")
WORDS = st.text("abcdefg", min_size=2, max_size=5)
OPTIONS = st.lists(st.lists(WORDS, min_size=1, max_size=2).map(" ".join), min_size=2, max_size=6, unique=True)


class TestPickOne:
    @pytest.mark.parametrize(("answer", "how"), CASES["the_second_option"])
    def test_the_second_option(self, answer: str, how: str | None) -> None:
        found = score(PickOne(), answer, {"Blue": 1}, COLOURS)
        assert (found.read_by, found.value) == (how, None if how is None else 1)

    @pytest.mark.parametrize(
        ("answer", "flag"),
        [
            *((answer, "unparsed") for answer in CASES["no_option_cannot_be_read"]),
            *((answer, "multi") for answer in ("Red or Blue", "a, b", "A and B", "a/b", "(a) (c)", "Blue, not Green")),
        ],
    )
    def test_no_option_and_two_options_cannot_be_read(self, answer: str | None, flag: str) -> None:
        found = score(PickOne(), answer, {"Blue": 1}, COLOURS)
        assert (found.status, found.score, found.flags) == ("unparseable", 0, (flag,))

    @pytest.mark.parametrize(("answer", "option"), CASES["the_longest_text_wins_and_no_part_of_one"])
    def test_the_longest_text_wins_and_no_part_of_one(self, answer: str, option: str) -> None:
        assert score(PickOne(), answer, {"Agree": 0}, AGREEMENT).details == {"found": [option]}

    def test_a_text_as_near_to_two_options_is_neither(self) -> None:
        near = ("mission sts 101 crew", "mission sts 105 crew")
        assert score(PickOne(), "mission sts 10x crew", {near[0]: 1}, near).flags == ("unparsed",)
        assert score(PickOne(), "mission sts 101 crews", {near[0]: 1}, near).value == 1

    def test_options_that_are_letters_themselves_are_meant_by_their_text(self) -> None:
        assert score(PickOne(), "D", {"D": 1}, ("C", "D", "A")).value == 1
        assert score(PickOne(), "a", {"A": 1}, ("A", "B", "C")).read_by == "letter"

    def test_the_weight_is_the_score(self) -> None:
        assert score(PickOne(), "a", {"Red": 0.3, "Blue": 1}, COLOURS).value == 0.3
        assert score(PickOne(), "c", {"Red": 0.3, "Blue": 1}, COLOURS).value == 0
        assert score(PickOne(), "b", {"Red": -1, "Blue": 7}, COLOURS).value == 1
        assert score(PickOne(), "a", {"Red": -1}, COLOURS).value == 0
        assert score(PickOne(), "the azure one", [{"value": "blue", "aliases": ["azure"]}], COLOURS).value == 1, "an alias"

    def test_a_value_that_is_no_option_is_refused(self) -> None:
        with pytest.raises(ItemError, match="not among the options; got 'Pink'; allowed: Red, Blue, Green"):
            score(PickOne(), "Red", {"Pink": 1}, COLOURS)
        with pytest.raises(ItemError, match="no options"):
            score(PickOne(), "Red", {"Pink": 1})

    @given(OPTIONS, st.data())
    def test_letter_and_text_of_an_option_are_one_answer(self, options: list[str], data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(options) - 1))
        metric = {option: (number + 1) / 10 for number, option in enumerate(options)}
        letter, text = string.ascii_uppercase[place], options[place]
        assert score(PickOne(), f"({letter})", metric, options).value == pytest.approx(metric[text])
        assert score(PickOne(), f"{text.title()}!", metric, options).details["found"] == [text]


class TestPickMany:
    @pytest.mark.parametrize(("answer", "raw"), CASES["the_weights_of_all_options_that_are_named"])
    def test_the_weights_of_all_options_that_are_named(self, answer: str, raw: float | None) -> None:
        found = score(PickMany(), answer, {"Red": 0.5, "Blue": 0.5}, COLOURS)
        assert found.details["raw"] == raw
        assert (found.value, found.status) == (raw, "unparseable" if raw is None else "ok")

    def test_it_is_a_share_of_what_the_metric_gives_at_most(self) -> None:
        assert score(PickMany(), "a, b", {"Red": 1, "Blue": 2, "Green": 1}, COLOURS).value == pytest.approx(0.75)
        assert score(PickMany(), "a", {"Red": 0}, COLOURS).status == "unscorable"

    def test_the_penalty_is_for_options_and_items_that_are_no_value(self) -> None:
        settings = ScorerSettings(penalty=0.1)
        for answer, raw in (("Red, Green", 0.4), ("a, c", 0.4), ("Red, pink, Green", 0.3), ("Red", 0.5)):
            found = score(PickMany(), answer, {"Red": 0.5, "Blue": 0.5}, COLOURS, settings)
            assert found.details["raw"] == pytest.approx(raw)

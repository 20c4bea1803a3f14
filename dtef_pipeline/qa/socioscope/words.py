"""The words of a text as values are compared with them: normalised, singular, numbers in digits."""

from __future__ import annotations

import re

from dtef_pipeline.qa.normalise import folded, without_punctuation
from dtef_pipeline.qa.reading.run_on import before_next_turn, cut_at_end
from dtef_pipeline.qa.socioscope.number_words import numbers_in_digits
from dtef_pipeline.qa.socioscope.singulars import singular
from dtef_pipeline.text.plain import without_thinking

_GROUPED_DIGITS = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:,[0-9]{3})+(?!,?[0-9])")
_WORD_OR_NUMBER = re.compile(r"(?:(?<![a-z0-9%])-)?[a-z0-9]+(?:\.[0-9][a-z0-9]*)*|%")
_PICTURES = re.compile("[\u2600-\u27bf\ufe0f\u200d\U0001f000-\U0001faff]+")
_PERCENT_WORDS = {"percent": "%"}


def words(text: str) -> list[str]:
    """The words of a text, in order.

    Numbers are compared by value: `1,319`, `1319.0` and `one thousand three hundred nineteen` are the same word. `50%` and `50 percent`
    are two words. A `-` between words only joins them: `STS-75` is `sts 75`.
    """
    return words_of_folded(folded(text))


def words_of_folded(text: str) -> list[str]:
    """The words of a text that is folded already."""
    plain = without_punctuation(without_thousands_commas(text))
    found = [_PERCENT_WORDS.get(word, word) for word in _WORD_OR_NUMBER.findall(plain)]
    return [word if is_number else singular(word) for word, is_number in numbers_in_digits(found)]


def without_thousands_commas(text: str) -> str:
    """The text with `1,319` as `1319`, and other commas as they are."""
    return _GROUPED_DIGITS.sub(lambda found: found[0].replace(",", ""), text) if "," in text else text


def answer_of(text: str | None) -> str:
    """What of a reply is read: the folded text outside its thinking up to its end, without pictures, which have names of several words."""
    reply = cut_at_end(without_thinking(text or "")).text
    before = before_next_turn(reply)
    shown = reply if before is None else before
    return folded(shown if shown.isascii() else _PICTURES.sub(" ", shown))

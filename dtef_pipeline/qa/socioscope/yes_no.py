"""Yes/No: the first word of an answer decides, if it stands in one of two lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dtef_pipeline.qa.metric import METRIC_PLACE, normalise, parse_metric
from dtef_pipeline.qa.model import OK_STATUS, ItemError, ItemScore, ScorerSettings, ScoreWritten, Written
from dtef_pipeline.qa.socioscope.lists import AMBIGUOUS, UNPARSED, make_unscorable, score_unreadable
from dtef_pipeline.qa.socioscope.words import extract_folded_answer

YES_WORDS = ("yes", "y", "yeah", "yep", "yup", "true", "correct", "affirmative")
NO_WORDS = ("no", "n", "nope", "nah", "false", "incorrect", "negative")
_FIRST_WORD = re.compile(r"[^a-z0-9]*([a-z0-9']+)")
_SECOND_WORD = re.compile(r"(?P<gap>[^a-z0-9]*(?:\b(?:and|or)\b[^a-z0-9]*)?)(?P<word>[a-z0-9']+)(?P<goes_on>[ \t]+[a-z0-9])?")
_NOT_APPLICABLE = re.compile(r"[^a-z0-9]*n ?/ ?a\b")
_CLAUSE_END = re.compile(r"[,;:.!?\n]|\s-")


class YesOrNo(NamedTuple):
    """What an answer begins with."""

    is_yes: bool | None
    """None: it says neither, or both."""
    flag: str | None
    """Why it says neither: `unparsed` or `ambiguous`."""
    end: int
    """Where the answer's word ends in the text."""


class YesNo:
    """1 where the answer agrees with what is expected, else 0."""

    name = "yes_no"
    version = 2

    def __init__(self, yes: Sequence[str] = YES_WORDS, no: Sequence[str] = NO_WORDS) -> None:
        """`yes`, `no`: the words that are read so, in small letters."""
        self._says = {**dict.fromkeys(yes, True), **dict.fromkeys(no, False)}

    def prepare_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreWritten:
        """As in `Scorer`; neither options nor settings matter."""
        expected = self.parse_expected(reference)
        if expected is None:
            return make_unscorable()
        right, wrong = ItemScore(OK_STATUS, 1.0, "first_word"), ItemScore(OK_STATUS, 0.0, "first_word")

        def score(response: Written) -> ItemScore:
            read = self.read(extract_folded_answer(response.text))
            if read.is_yes is None:
                return score_unreadable(read.flag or UNPARSED)
            return right if read.is_yes == expected else wrong

        return score

    def parse_expected(self, reference: str) -> bool | None:
        """Whether yes is expected; None: the metric is empty. Raises ItemError where it is neither."""
        values = parse_metric(reference)
        if not values:
            return None
        says = self._says.get(normalise(values[0].text)) if len(values) == 1 else None
        if says is None:
            raise ItemError("neither yes nor no is expected", where=METRIC_PLACE, arrived=reference, allowed=self._says)
        return says

    def read(self, text: str) -> YesOrNo:
        """What a folded text begins with: the first word decides, unless one that says the opposite stands beside it.

        In `Yes, no doubt` the second begins a clause of its own that goes on, and says nothing.
        """
        first = _FIRST_WORD.match(text)
        says = self._says.get(first[1].replace("'", "")) if first else None
        if first is None or says is None or _NOT_APPLICABLE.match(text):
            return YesOrNo(None, UNPARSED, 0)
        second = _SECOND_WORD.match(text, first.end())
        opposite = second is not None and self._says.get(second["word"], says) != says
        if second is not None and opposite and not (second["goes_on"] and _CLAUSE_END.search(second["gap"])):
            return YesOrNo(None, AMBIGUOUS, 0)
        return YesOrNo(says, None, first.end())

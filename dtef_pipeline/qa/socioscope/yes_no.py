"""Yes/No: the first word of an answer decides, if it is in one of two lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dtef_pipeline.qa.metric import METRIC_PLACE, normalise, parse_metric
from dtef_pipeline.qa.model import OK_STATUS, ItemError, ItemScore, ScoreResponse, ScorerSettings, WrittenResponse
from dtef_pipeline.qa.socioscope.lists import AMBIGUOUS, UNPARSED, make_unscorable, score_unreadable
from dtef_pipeline.qa.socioscope.words import extract_folded_answer

YES_WORDS = ("yes", "y", "yeah", "yep", "yup", "true", "correct", "affirmative")
NO_WORDS = ("no", "n", "nope", "nah", "false", "incorrect", "negative")
_FIRST_WORD = re.compile(r"[^a-z0-9]*([a-z0-9']+)")
_SECOND_WORD = re.compile(r"(?P<gap>[^a-z0-9]*(?:\b(?:and|or)\b[^a-z0-9]*)?)(?P<word>[a-z0-9']+)(?P<goes_on>[ \t]+[a-z0-9])?")
_NOT_APPLICABLE = re.compile(r"[^a-z0-9]*n ?/ ?a\b")
_CLAUSE_END = re.compile(r"[,;:.!?\n]|\s-")


class YesOrNo(NamedTuple):
    """The yes or no at the beginning of an answer."""

    is_yes: bool | None
    """None: neither, or both."""
    flag: str | None
    """Why it is neither: `unparsed` or `ambiguous`."""
    end: int
    """End of the yes or no in the text."""


class YesNo:
    """A scorer: 1 for the expected answer, else 0."""

    name = "yes_no"
    version = 2

    def __init__(self, yes: Sequence[str] = YES_WORDS, no: Sequence[str] = NO_WORDS) -> None:
        """`yes`, `no`: the words read as yes and as no, in lower case."""
        self._says = {**dict.fromkeys(yes, True), **dict.fromkeys(no, False)}

    def prepare_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreResponse:
        """See `Scorer`; neither options nor settings matter."""
        expected = self.parse_expected(reference)
        if expected is None:
            return make_unscorable()
        right, wrong = ItemScore(OK_STATUS, 1.0, "first_word"), ItemScore(OK_STATUS, 0.0, "first_word")

        def score(response: WrittenResponse) -> ItemScore:
            read = self.read(extract_folded_answer(response.text))
            if read.is_yes is None:
                return score_unreadable(read.flag or UNPARSED)
            return right if read.is_yes == expected else wrong

        return score

    def parse_expected(self, reference: str) -> bool | None:
        """Return whether yes is expected, or None for an empty metric. Raises ItemError for any other metric."""
        values = parse_metric(reference)
        if not values:
            return None
        says = self._says.get(normalise(values[0].text)) if len(values) == 1 else None
        if says is None:
            raise ItemError(
                "the expected answer is neither yes nor no", where=METRIC_PLACE, arrived=reference, allowed=self._says
            )
        return says

    def read(self, text: str) -> YesOrNo:
        """Read the beginning of a folded text: the first word decides, unless the opposite word follows it directly.

        In `Yes, no doubt` the second word begins its own clause and does not count.
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

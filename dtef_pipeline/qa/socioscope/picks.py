"""PickOne and PickMany: an answer chooses one or several of the given options, by letter or by text.

Letters are read only if the answer is nothing else; then the texts of options as whole words, the longest first; then the one option with
almost the same spelling. Partial similarity ratios are not used, because they make `agree` equal to `disagree`.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from dtef_pipeline.qa.metric import METRIC_PLACE, MetricValue, normalise, parse_metric
from dtef_pipeline.qa.model import OK_STATUS, ItemError, ItemScore, ScoreResponse, ScorerSettings, WrittenResponse
from dtef_pipeline.qa.socioscope.lists import (
    SEVERAL_VALUES,
    UNPARSED,
    ValueNames,
    clip_to_0_1,
    make_unscorable,
    score_unreadable,
    split_listed_words,
)
from dtef_pipeline.qa.socioscope.words import extract_folded_answer

CLOSEST_RATIO, CLOSEST_LEAD = 90, 5
"""Minimum similarity ratio (0-100) of the closest option to the answer, and its minimum lead over the next."""
_LETTERS_APART = re.compile(r"[\s,;/&]+(?:(?:and|or)[\s,;/&]+)?")
_AROUND_A_LETTER = "()[]{}.:'\"*`"


class OptionPick(NamedTuple):
    """The options that an answer chooses, in order of mention, and the rule that read it."""

    options: list[int]
    read_by: str | None
    """`letter`, `option_text` or `closest`; None: no option is chosen."""
    n_other_items: int = 0
    """Number of items in the answer that are not options."""


class Options:
    """The options of an item, ready to be found in answers."""

    def __init__(self, texts: Sequence[str], aliases: Sequence[Sequence[str]]) -> None:
        """`aliases`: other names of each option."""
        self._normalised = [normalise(text) for text in texts]
        self._names = ValueNames([MetricValue(text, 1.0, tuple(names)) for text, names in zip(texts, aliases, strict=True)])
        letters = string.ascii_lowercase[: len(texts)]
        is_other_letter = any(
            len(text) == 1 and text.isalpha() and text != letters[i : i + 1] for i, text in enumerate(self._normalised)
        )
        self._by_letter = {} if is_other_letter else {letter: place for place, letter in enumerate(letters)}
        """None if the text of an option is another option's letter, so that the answer is read as a text."""

    def pick_options(self, text: str) -> OptionPick:
        """Return the options that a folded answer chooses."""
        if letters := self._read_letters(text):
            return OptionPick(letters, "letter")
        entries = split_listed_words(text)
        hits = self._names.find_values(entries.words)
        if hits:
            return OptionPick(list(dict.fromkeys(hit.value for hit in hits)), "option_text", entries.count_items_without(hits))
        closest = self._find_closest_option(normalise(text))
        return OptionPick([], None, entries.count_items_without(())) if closest is None else OptionPick([closest], "closest")

    def _read_letters(self, text: str) -> list[int]:
        """Return the options whose letters make up the answer; empty: it contains anything else."""
        if len(text) > 40 * len(self._normalised):
            return []
        parts = [part.strip(_AROUND_A_LETTER) for part in _LETTERS_APART.split(text.strip())]
        letters = [self._by_letter.get(part) for part in parts if part]
        return list(dict.fromkeys(letter for letter in letters if letter is not None)) if None not in letters else []

    def _find_closest_option(self, text: str) -> int | None:
        """Return the option nearest in spelling to a normalised answer."""
        if not text or len(text) > 2 * max(map(len, self._normalised)):
            return None
        from rapidfuzz.fuzz import ratio

        ratios = sorted(((ratio(text, option), -place) for place, option in enumerate(self._normalised)), reverse=True)
        best, lead = ratios[0][0], ratios[0][0] - ratios[1][0] if len(ratios) > 1 else math.inf
        return -ratios[0][1] if best >= CLOSEST_RATIO and lead >= CLOSEST_LEAD else None


class _Choice(NamedTuple):
    """An item that has options and a metric."""

    options: Options
    weights: list[float | None]
    """Weight of each option; None: it is not a value of the metric."""
    texts: Sequence[str]

    @classmethod
    def build_choice(cls, values: Sequence[MetricValue], texts: Sequence[str]) -> _Choice:
        if not texts:
            raise ItemError("there are no options", where="options", allowed="a list of strings to choose from")
        by_text = {normalise(value.text): value for value in values}
        names = [normalise(text) for text in texts]
        if unknown := [value.text for name, value in by_text.items() if name not in names]:
            raise ItemError("a value is not among the options", where=METRIC_PLACE, arrived=unknown[0], allowed=texts)
        matches = [by_text.get(name) for name in names]
        options = Options(texts, [value.aliases if value else () for value in matches])
        return cls(options, [value.weight if value else None for value in matches], texts)

    def score(self, pick: OptionPick, value: float) -> ItemScore:
        return ItemScore(
            OK_STATUS, clip_to_0_1(value), pick.read_by, details={"found": [self.texts[index] for index in pick.options]}
        )


class PickOne:
    """A scorer: the weight of the chosen option, 0 for one outside the metric."""

    name = "pick_one"
    version = 3

    def prepare_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreResponse:
        """See `Scorer`; no setting matters. An answer with two options is unreadable: `multi`."""
        values = parse_metric(reference)
        if not values:
            return make_unscorable()
        choice = _Choice.build_choice(values, options)

        def score(response: WrittenResponse) -> ItemScore:
            pick = choice.options.pick_options(extract_folded_answer(response.text))
            if len(pick.options) != 1:
                return score_unreadable(SEVERAL_VALUES if pick.options else UNPARSED)
            return choice.score(pick, choice.weights[pick.options[0]] or 0.0)

        return score


class PickMany:
    """A scorer: the weights of the chosen options, as a share of the metric's maximum."""

    name = "pick_many"
    version = 3

    def prepare_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreResponse:
        """See `Scorer`. The penalty is deducted for each option outside the metric, and for each item that is not an option."""
        values, penalty = parse_metric(reference), settings.penalty
        maximum = math.fsum(max(value.weight, 0.0) for value in values)
        if not maximum:
            return make_unscorable("no value has a weight above 0" if values else "the metric is empty")
        choice = _Choice.build_choice(values, options)

        def score(response: WrittenResponse) -> ItemScore:
            pick = choice.options.pick_options(extract_folded_answer(response.text))
            if not pick.options:
                return score_unreadable(UNPARSED, raw=None)
            weights = [choice.weights[index] for index in pick.options]
            raw = math.fsum(weight or 0.0 for weight in weights) - penalty * (pick.n_other_items + weights.count(None))
            result = choice.score(pick, raw / maximum)
            return replace(result, details={"raw": raw, **result.details})

        return score

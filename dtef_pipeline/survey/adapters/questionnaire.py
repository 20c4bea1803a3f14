"""What the other files of a Global Dialogues folder name and the aggregate file lacks: it may have been cut, or renamed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from dtef_pipeline.identity import normalized
from dtef_pipeline.survey.adapters.counts import Counts
from dtef_pipeline.survey.adapters.dialogue_files import (
    AGGREGATE,
    COUNTS_FILE,
    GUIDE,
    MAPPING,
    Aggregate,
    GuideItem,
    read_counts,
    read_guide,
    read_mapping,
)
from dtef_pipeline.survey.attributes import attribute_of, clean, profile_attribute
from dtef_pipeline.survey.model import Finding
from dtef_pipeline.survey.whole import MISSING_ATTRIBUTES, MISSING_QUESTIONS

_MAY_BE_ABSENT = {"language"}
"""Published aggregates may leave these attributes out on purpose, though the guide asks for them."""


@dataclass(frozen=True)
class Questionnaire:
    """The files beside the aggregate, each empty where there is none: counts, mapping (id -> text) and discussion guide.

    `prefix` is the GD4 of `GD4_aggregate_standardized.csv`.
    """

    prefix: str
    counts: Counts
    mapping: Mapping[str, str]
    guide: Sequence[GuideItem]

    @classmethod
    def beside(cls, aggregate: Path) -> Questionnaire:
        """The files that stand beside an aggregate file."""
        prefix = aggregate.name.removesuffix(AGGREGATE)
        counts, mapping, guide = (aggregate.with_name(prefix + name) for name in (COUNTS_FILE, MAPPING, GUIDE))
        return cls(prefix, read_counts(counts), read_mapping(mapping), read_guide(guide))

    def findings(self, aggregate: Aggregate, attributes: Set[str]) -> Iterator[Finding]:
        """Questions without rows, and attributes without columns. `attributes`: those that have columns."""
        lacking = self.prefix + AGGREGATE
        if missing := self._missing_questions(aggregate):
            files = list(dict.fromkeys(file for named_by in missing.values() for file in named_by))
            *most, last = [self.prefix + file for file in files]
            naming = f"{', '.join(most)} and {last} name" if most else f"{last} names"
            message = f"{naming} questions that {lacking} lacks"
            yield Finding("error", MISSING_QUESTIONS, message, tuple(missing))
        listed = {_letters(item.text) for item in self.guide}
        if listed and (unlisted := [poll.text for poll in aggregate.polls if _letters(poll.text) not in listed]):
            message = f"{self.prefix}{GUIDE} lacks these questions, so their options stand in the order of {lacking}"
            yield Finding("warning", "no-guide-entry", message, tuple(unlisted))
        if absent := self._missing_attributes(aggregate, attributes):
            asking = self.prefix + (GUIDE if self.guide else AGGREGATE)
            message = f"{asking} asks for attributes of which no column of {lacking} could be read"
            yield Finding("error", MISSING_ATTRIBUTES, message, tuple(f"{name}: {asked}" for name, asked in absent.items()))

    def _missing_questions(self, aggregate: Aggregate) -> dict[str, list[str]]:
        """Text (or id) -> the files that name it. Open questions need no rows, and what the guide says is none is none."""
        ids, texts = {*aggregate.texts}, {_letters(text) for text in aggregate.texts.values()}
        kinds = {_letters(item.text): item for item in self.guide if item.kind}
        missing: dict[str, list[str]] = defaultdict(list)
        for file, named in ((COUNTS_FILE, self.counts.texts), (MAPPING, self.mapping)):
            for question_id, text in named.items():
                item = kinds.get(_letters(text))
                if question_id not in ids and (item is None or item.is_poll):
                    missing[text or question_id].append(file)
        for item in self.guide:
            if item.is_poll and len(item.options) > 1 and _letters(item.text) not in texts:
                missing[clean(item.text)].append(GUIDE)
        return _one_a_wording(missing)

    def _missing_attributes(self, aggregate: Aggregate, attributes: Set[str]) -> dict[str, str]:
        """Attribute -> the question that asks for it, among the guide's questions on the respondent, or the polls without a guide."""
        on_respondent = [(item.text, item.options) for item in self.guide if item.kind.startswith("onboarding")]
        if self.guide:
            asked = [(attribute_of(options), text) for text, options in on_respondent if len(options) > 1]
        else:
            asked = [(profile_attribute(poll.options, {}), poll.text) for poll in aggregate.polls if len(poll.options) > 1]
        return {name: clean(text) for name, text in asked if name is not None and name not in attributes | _MAY_BE_ABSENT}


def _letters(text: str) -> str:
    """A wording as files agree on it: without blanks, punctuation and case."""
    return re.sub(r"[\W_]+", "", normalized(clean(text)))


def _one_a_wording(missing: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Each wording once, with the files of all its spellings."""
    first: dict[str, str] = {}
    found: dict[str, list[str]] = defaultdict(list)
    for text, files in missing.items():
        found[first.setdefault(_letters(text), text)] += files
    return dict(found)

"""Respondents by question and segment column, from the counts file of Global Dialogues."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dtef_pipeline.identity import normalize_text
from dtef_pipeline.survey.attributes import canonical, classify_groups, find_candidates, make_segment_key
from dtef_pipeline.survey.completeness import MISSING_QUESTIONS
from dtef_pipeline.survey.model import Finding, Question, Segment
from dtef_pipeline.text.quantity_words import format_count

SEGMENT_COLUMN = re.compile(r"[Oo]\s?(\d+)\s?[:.–-]\s*(\S.*)")
"""A segment's column: its O-number and its value."""

DERIVED_COLUMN = re.compile(r".* - (?:Weighted Score|Rank \d+ Count)")
"""What a ranking question adds to a segment's column."""


@dataclass(frozen=True)
class SegmentColumn:
    """A segment's column, with its index and name in the aggregate file."""

    index: int
    name: str
    group: int
    segment: Segment


@dataclass(frozen=True)
class Counts:
    """Question id -> column -> respondents. A column is found by its name, or else by its value in any known spelling."""

    columns: Sequence[str] = ()
    rows: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    """Question id -> text, blank if the file has none."""

    @cached_property
    def _name_by_value(self) -> Mapping[str, str]:
        return {_make_value_key(name): name for name in self.columns}

    def column(self, name: str) -> str | None:
        """Return the counts file's name of an aggregate column, such as Turkey for Türkiye."""
        return name if name in self.columns else self._name_by_value.get(_make_value_key(name))

    def n(self, question_id: str, name: str) -> int | None:
        return self.rows.get(question_id, {}).get(self.column(name) or "")

    def largest_n(self, name: str) -> int | None:
        """Return the respondents of a segment to its largest question."""
        column = self.column(name) or ""
        return max((n for row in self.rows.values() if (n := row.get(column)) is not None), default=None)

    def share(self, name: str) -> str:
        """Return a segment's share as `684 of 1,058 respondents, 65 %`, or a blank if unknown."""
        n, everyone = self.largest_n(name), self.largest_n("All")
        return "" if n is None or not everyone else f"{n:,} of {format_count(everyone, 'respondent')}, {n / everyone:.0%}"

    def add_share(self, name: str) -> str:
        """Return the column with its share, if known."""
        return f"{name} ({share})" if (share := self.share(name)) else name

    def findings(self, questions: Sequence[Question], names: Sequence[str]) -> Iterator[Finding]:
        """Yield findings on segments and questions that the file lacks."""
        if absent := tuple(name for name in names if self.column(name) is None):
            yield Finding("error", "no-counts-column", "The counts file has no column for these segments.", absent)
        if missing := tuple(q.text for q in questions if q.id not in self.rows):
            message = "The counts file has no row for these questions, so their n would be the size of the segment"
            yield Finding("error", MISSING_QUESTIONS, message, missing)

    def find_lost_segments(self, columns: Sequence[str], keys: Collection[str]) -> dict[str, str | None]:
        """Return the segments with respondents that the aggregate's `columns` lack: column -> its attribute, if known.

        `keys` are those of the aggregate's segments. An attribute that was asked twice may have its columns once.
        """
        value_keys = {_make_value_key(name) for name in columns}
        values = {
            name: match
            for name in self.columns
            if (match := SEGMENT_COLUMN.fullmatch(name)) and not DERIVED_COLUMN.fullmatch(name)
        }
        groups: dict[int, list[str]] = defaultdict(list)
        for match in values.values():
            groups[int(match[1])].append(match[2])
        classes = classify_groups(groups)
        attributes = {name: classes[int(match[1]), match[2]] for name, match in values.items()}
        return {
            name: attribute
            for name, attribute in attributes.items()
            if self.largest_n(name)
            and _make_value_key(name) not in value_keys
            and (attribute is None or make_segment_key(attribute, values[name][2]) not in keys)
        }


def _make_value_key(name: str) -> str:
    match = SEGMENT_COLUMN.fullmatch(name)
    if match is None:
        return normalize_text(name)
    candidates = sorted(find_candidates(match[2]))
    return f"{match[1]}:{normalize_text(canonical(candidates[0], match[2]) if candidates else match[2])}"

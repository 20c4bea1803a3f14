"""Respondents by question and segment column, as the counts file of Global Dialogues states them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dtef_pipeline.identity import normalized
from dtef_pipeline.survey.attributes import candidates, canonical
from dtef_pipeline.survey.model import Finding, Question
from dtef_pipeline.text.counted import counted

SEGMENT_COLUMN = re.compile(r"[Oo]\s?(\d+)\s?[:.–-]\s*(\S.*)")
"""A segment's column: its O-number and its value."""


@dataclass(frozen=True)
class Counts:
    """Question id -> column -> respondents. A column is found by its name, or else by its value in any known spelling."""

    columns: Sequence[str] = ()
    rows: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    """Question id -> text, blank where the file has none."""

    @cached_property
    def _by_value(self) -> Mapping[str, str]:
        return {_value_key(name): name for name in self.columns}

    def column(self, name: str) -> str | None:
        """The counts file's name of an aggregate column: it may say Turkey where the aggregate says Türkiye."""
        return name if name in self.columns else self._by_value.get(_value_key(name))

    def n(self, question_id: str, name: str) -> int | None:
        return self.rows.get(question_id, {}).get(self.column(name) or "")

    def most(self, name: str) -> int | None:
        """Respondents of a segment: of its largest question."""
        column = self.column(name) or ""
        return max((n for row in self.rows.values() if (n := row.get(column)) is not None), default=None)

    def share(self, name: str) -> str:
        """`684 of 1,058 respondents, 65 %` of a segment, blank where the file does not say."""
        some, everyone = self.most(name), self.most("All")
        return "" if some is None or not everyone else f"{some:,} of {counted(everyone, 'respondent')}, {some / everyone:.0%}"

    def findings(self, questions: Sequence[Question], names: Sequence[str]) -> Iterator[Finding]:
        """What the file does not tell, though it is there."""
        if absent := tuple(name for name in names if self.column(name) is None):
            yield Finding("error", "no-counts-column", "The counts file has no column for these segments.", absent)
        if uncounted := tuple(q.text for q in questions if q.id not in self.rows):
            message = "The counts file has no row for these questions; the segment's n is used."
            yield Finding("warning", "no-counts-row", message, uncounted)


def _value_key(name: str) -> str:
    match = SEGMENT_COLUMN.fullmatch(name)
    if match is None:
        return normalized(name)
    known = sorted(candidates(match[2]))
    return f"{match[1]}:{normalized(canonical(known[0], match[2]) if known else match[2])}"

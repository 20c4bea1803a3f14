"""The content of an item file: the items, findings on rows, and answers and examples in the file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dtef_pipeline.qa.model import ItemError, QaItem
from dtef_pipeline.text.number_words import format_count

ANSWERS_CODE = "answers"
"""Code of findings that leave out an answer in the file but keep its item."""
ERROR_LEVEL, WARNING_LEVEL = "error", "warning"
"""Levels of findings: the row is left out, or it is kept with a warning."""
MAX_FINDINGS = 10_000
"""Largest number of findings kept per load; further ones are only counted."""
_MAX_VALUE_LENGTH = 80


@dataclass(frozen=True, slots=True)
class ItemFinding:
    """An error or warning on a row of an item file, or on the whole file."""

    level: str
    """`error`: the row was left out; `warning`: it was kept."""
    code: str
    """Kind of finding: `options`, `letter`, `equal_options`, `duplicate_id`, ..."""
    file: str
    line: int | None
    """First line of the row, from 1; None: the whole file, or a file without lines."""
    item_id: str | None
    found: str | None
    """The value found, shortened; None: no value."""
    allowed: str | None
    text: str
    """What is wrong, in words."""
    part: str | None = None
    """Part with the finding; None: all parts of the file or folder."""

    @property
    def problem(self) -> str:
        """The item, what is wrong, and the value found."""
        named = f"{self.item_id}: {self.text}" if self.item_id else self.text
        return named if self.found is None else f"{named}; got {self.found}"

    def __str__(self) -> str:
        """Return `file:line: item: text; got ...; allowed: ...`"""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.problem}" + (f"; allowed: {self.allowed}" if self.allowed else "")


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """An answer in the item file itself, produced elsewhere."""

    item_id: str
    number: int
    """Place among the item's answers, from 0."""
    text: str | None
    """None: there is no answer."""
    source: str | None = None
    """Source of the answer as the file names it."""
    context: tuple[Any, ...] = ()
    """Documents that were shown, in order, unchecked: usually mappings with `page_content`."""
    citations: tuple[Any, ...] = ()
    """Citations, unchecked: usually mappings with `source_index` and `quote`; `check_citations` finds faults in them."""


@dataclass(frozen=True, slots=True)
class LoadedItems:
    """The items, findings, answers and examples read from a path."""

    items: tuple[QaItem, ...] = ()
    """Items in the order of the file; for a folder, file by file in the order of their names."""
    findings: tuple[ItemFinding, ...] = ()
    examples: tuple[QaItem, ...] = ()
    """Development items in file order, which prompts show as examples but never ask."""
    answers: tuple[FileAnswer, ...] = ()

    @property
    def errors(self) -> tuple[ItemFinding, ...]:
        """The findings on rows that were left out."""
        return tuple(finding for finding in self.findings if finding.level == ERROR_LEVEL)


class RowFault(ValueError):
    """An error of an unusable row; the file's reader adds its place."""

    def __init__(self, code: str, text: str, *, found: object = None, allowed: Iterable[object] | str | None = None) -> None:
        super().__init__(text)
        self.code, self.text, self.found = code, text, found
        self.allowed = allowed if allowed is None or isinstance(allowed, str) else ", ".join(map(str, allowed))


@dataclass
class ItemLog:
    """A log of findings. `strict`: raise the first error as ItemError."""

    strict: bool = False
    _findings: list[ItemFinding] = field(default_factory=list)
    part: str | None = None
    """Part that is being read, for findings."""
    n_unlisted: int = 0
    """Number of findings beyond those kept."""

    @property
    def findings(self) -> tuple[ItemFinding, ...]:
        """The findings: all, or the first MAX_FINDINGS and the number of further ones."""
        if not self.n_unlisted:
            return tuple(self._findings)
        last = self._findings[-1]
        text = f"{format_count(self.n_unlisted, 'more finding')}, here and in files after it"
        return (*self._findings, ItemFinding(ERROR_LEVEL, "more", last.file, None, None, None, None, text))

    @property
    def total(self) -> int:
        """Number of findings so far."""
        return len(self._findings) + self.n_unlisted

    def log_error(self, fault: RowFault, file: Path, line: int | None = None, item_id: str | None = None) -> None:
        """Log a row that is left out."""
        finding = self._make_finding(ERROR_LEVEL, fault, file, line, item_id)
        if self.strict:
            raise ItemError(finding.problem, where=finding.file, line=line, allowed=fault.allowed)
        self._add(finding)

    def log_warning(self, fault: RowFault, file: Path, line: int | None = None, item_id: str | None = None) -> None:
        """Log a warning on a row that is kept."""
        self._add(self._make_finding(WARNING_LEVEL, fault, file, line, item_id))

    def _make_finding(self, level: str, fault: RowFault, file: Path, line: int | None, item_id: str | None) -> ItemFinding:
        value = None if fault.found is None else _format_shortened(fault.found)
        return ItemFinding(level, fault.code, str(file), line, item_id, value, fault.allowed, fault.text, self.part)

    def _add(self, finding: ItemFinding) -> None:
        if len(self._findings) < MAX_FINDINGS:
            self._findings.append(finding)
        else:
            self.n_unlisted += 1


def _format_shortened(value: object) -> str:
    """Format a value for messages: at most 80 characters, with control characters escaped."""
    if isinstance(value, str) and len(value) > _MAX_VALUE_LENGTH:
        return f"{value[:_MAX_VALUE_LENGTH]!r}..."
    if isinstance(value, (list, tuple, dict)) and len(value) > _MAX_VALUE_LENGTH:
        return f"{type(value).__name__} of {len(value):,}"
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= _MAX_VALUE_LENGTH + 2 else f"{text[:_MAX_VALUE_LENGTH]}..."

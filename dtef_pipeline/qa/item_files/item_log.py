"""What a file of items gives: the items, what was wrong with the others, and what else the file holds for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dtef_pipeline.qa.model import ItemError, QaItem
from dtef_pipeline.text.quantity_words import format_count

ANSWERS_CODE = "answers"
"""The kind of finding that leaves out an answer that the file holds, and keeps its item."""
ERROR_LEVEL, WARNING_LEVEL = "error", "warning"
"""What is left out, and what is kept though it surprises."""
MOST_FINDINGS = 10_000
"""Of one load: further ones are counted."""
_LONGEST_FOUND = 80


@dataclass(frozen=True, slots=True)
class ItemFinding:
    """What is wrong or surprising with a row of an item file, or with the whole file."""

    level: str
    """`error`: the row is left out; `warning`: it is kept."""
    code: str
    """One word for the kind: `options`, `letter`, `equal_options`, `duplicate_id`, ..."""
    file: str
    line: int | None
    """Line in which the row begins, from 1; None: the whole file is meant, or it has no lines."""
    item_id: str | None
    found: str | None
    """What arrived, shortened; None: nothing did."""
    allowed: str | None
    text: str
    """What is wrong, in words."""
    part: str | None = None
    """The part that it concerns; None: all that are read from the file or folder."""

    def __str__(self) -> str:
        """`file:line: item: text; got ...; allowed: ...`"""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        named = f"{place}: {self.item_id}: {self.text}" if self.item_id else f"{place}: {self.text}"
        got = "" if self.found is None else f"; got {self.found}"
        return f"{named}{got}" + (f"; allowed: {self.allowed}" if self.allowed else "")


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer that stands in the item file itself, made elsewhere."""

    item_id: str
    number: int
    """Its place among the item's answers, from 0."""
    text: str | None
    """None: nothing was answered."""
    source: str | None = None
    """What the file says of where it comes from."""
    context: tuple[Any, ...] = ()
    """The documents that were shown, in order, as the file has them: usually mappings with `page_content`."""
    citations: tuple[Any, ...] = ()
    """As the file has them: usually mappings with `source_index` and `quote`. A fault in one is for the check of citations to name."""


@dataclass(frozen=True, slots=True)
class LoadedItems:
    """What was read at a path."""

    items: tuple[QaItem, ...] = ()
    """In the order of the file; of a folder, file by file in the order of their names."""
    findings: tuple[ItemFinding, ...] = ()
    examples: tuple[QaItem, ...] = ()
    """The development items that lie beside the others, in file order: what prompts show as examples. Never asked."""
    answers: tuple[GivenAnswer, ...] = ()

    @property
    def errors(self) -> tuple[ItemFinding, ...]:
        """What was left out."""
        return tuple(finding for finding in self.findings if finding.level == ERROR_LEVEL)

    def select_examples(self, part: str) -> tuple[QaItem, ...]:
        """The examples of one part, in file order."""
        return tuple(example for example in self.examples if example.part == part)


class RowFault(ValueError):
    """Why a row is not usable: where it stands is added by whoever reads the file."""

    def __init__(self, code: str, text: str, *, found: object = None, allowed: Iterable[object] | str | None = None) -> None:
        super().__init__(text)
        self.code, self.text, self.found = code, text, found
        self.allowed = allowed if allowed is None or isinstance(allowed, str) else ", ".join(map(str, allowed))


@dataclass
class ItemLog:
    """Collects what is found. `strict`: the first error is raised as ItemError in place of being kept."""

    strict: bool = False
    found: list[ItemFinding] = field(default_factory=list)
    part: str | None = None
    """The part that is being read: what is found concerns it."""
    unlisted: int = 0
    """How many more were found than are kept."""

    @property
    def findings(self) -> tuple[ItemFinding, ...]:
        """All that was found, or the first MOST_FINDINGS and how many more there are."""
        if not self.unlisted:
            return tuple(self.found)
        last = self.found[-1]
        text = f"{format_count(self.unlisted, 'more finding')}, here and in files after it"
        return (*self.found, ItemFinding(ERROR_LEVEL, "more", last.file, None, None, None, None, text))

    @property
    def total(self) -> int:
        """How much was found so far."""
        return len(self.found) + self.unlisted

    def error(self, fault: RowFault, file: Path, line: int | None = None, item_id: str | None = None) -> None:
        """What is left out, and why."""
        if self.strict:
            text = f"{item_id}: {fault.text}" if item_id else fault.text
            value = None if fault.found is None else _Shortened(fault.found)
            raise ItemError(text, where=str(file), line=line, arrived=value, allowed=fault.allowed)
        self._add(ERROR_LEVEL, fault, file, line, item_id)

    def warning(self, fault: RowFault, file: Path, line: int | None = None, item_id: str | None = None) -> None:
        """What is kept though it surprises."""
        self._add(WARNING_LEVEL, fault, file, line, item_id)

    def _add(self, level: str, fault: RowFault, file: Path, line: int | None, item_id: str | None) -> None:
        if len(self.found) >= MOST_FINDINGS:
            self.unlisted += 1
            return
        value = None if fault.found is None else format_shortened(fault.found)
        self.found.append(ItemFinding(level, fault.code, str(file), line, item_id, value, fault.allowed, fault.text, self.part))


class _Shortened:
    """A value whose representation in a message is short."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        return format_shortened(self._value)


def format_shortened(value: object) -> str:
    """A value as messages show it: at most 80 characters, with every character that a terminal would obey escaped."""
    if isinstance(value, str) and len(value) > _LONGEST_FOUND:
        return f"{value[:_LONGEST_FOUND]!r}..."
    if isinstance(value, (list, tuple, dict)) and len(value) > _LONGEST_FOUND:
        return f"{type(value).__name__} of {len(value):,}"
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= _LONGEST_FOUND + 2 else f"{text[:_LONGEST_FOUND]}..."

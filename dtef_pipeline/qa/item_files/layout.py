"""Shared code of the layouts: turns rows into checked items with unique ids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dtef_pipeline.identity import normalize_text
from dtef_pipeline.qa.item_files.item_log import ItemLog, LoadedItems, RowFault
from dtef_pipeline.qa.item_files.rows import (
    ONE_PART,
    DuplicateKeys,
    SourceRow,
    find_split_files,
    has_invalid_text,
    is_later_shard,
    read_rows,
)
from dtef_pipeline.qa.model import ItemError, QaItem

ITEM_LETTERS = "ABCDEFGHIJ"
"""Letters of the options in prompts and references, in order."""
FEWEST_OPTIONS, MAX_OPTIONS = 2, len(ITEM_LETTERS)
EQUAL_OPTIONS, EMPTY_OPTION = "equal_options", "empty_option"
"""Flags of items: two options are equal apart from white space and case; an option has no text."""
_FLAG_TEXTS = {EQUAL_OPTIONS: "two options are equal", EMPTY_OPTION: "an option has no text"}
_NUMBER_KEYS = ("id", "index", "question_id")
_LONGEST_PART_NAME = 100


@dataclass(frozen=True, slots=True)
class ItemLayout(ABC):
    """The conversion of one file's rows to items. All methods raise RowFault for an unusable row."""

    file: Path
    suite: str
    split_prefix: str = ""
    """Prefix of the row number in the ids of examples; empty: the rows are items."""

    def part(self, row: SourceRow | None) -> str | None:
        """Return the part of a row, or without a row the part of the whole file; None: the file has several parts."""
        return ONE_PART

    @abstractmethod
    def item_id(self, row: SourceRow) -> str:
        """Return the id of the row's item, before the row is checked."""

    @abstractmethod
    def item(self, row: SourceRow, item_id: str) -> QaItem:
        """Return the item of the row."""

    def make_item(self, row: SourceRow, item_id: str, **fields: Any) -> QaItem:
        """Return an item of the row with these fields; unless they say otherwise, it is of the one part, and a cluster by itself."""
        placed = {"part": ONE_PART, "cluster": item_id, **fields}
        return QaItem(item_id=item_id, suite=self.suite, source_line=row.line, **placed)


def load_layout(
    path: Path, layout: type[ItemLayout], suite: str, prefix: str, *, strict: bool, examples: Sequence[str] = ()
) -> LoadedItems:
    """Load the items of a file or folder, and as examples those of the first of these splits that exists.

    `prefix`: of the row numbers of examples. Raises ItemError for a path that does not exist, and with `strict` for the first unusable row.
    """
    log, item_ids = ItemLog(strict), set[str]()
    files = find_split_files(require_path(path), log, examples=examples)
    items = tuple(_iterate_items_of_files([layout(file, suite) for file in files.items], log, item_ids))
    shots = tuple(_iterate_items_of_files([layout(file, suite, prefix) for file in files.examples], log, item_ids))
    return LoadedItems(items, log.findings, shots)


def _iterate_items_of_files(layouts: Iterable[ItemLayout], log: ItemLog, item_ids: set[str]) -> Iterator[QaItem]:
    """Yield the items of files, one file after the other; unusable rows are logged. Row numbers continue over the shards of a table.

    `item_ids`: ids used so far; new ones are added to it.
    """
    before, n_items = None, 0
    for layout in layouts:
        first = n_items if before and is_later_shard(layout.file, before) else 0
        n_items = yield from _iterate_items_of_file(layout, log, item_ids, first)
        before = layout.file


def _iterate_items_of_file(layout: ItemLayout, log: ItemLog, item_ids: set[str], first: int) -> Generator[QaItem, None, int]:
    """Yield the items of a file whose first row has this number; returns the number after that of its last row."""
    path, part = layout.file, layout.part(None)
    log.part = part
    questions: dict[tuple[str, ...], QaItem] = {}
    behind = first
    for source_row in read_rows(path, log):
        row = source_row._replace(number=source_row.number + first)
        behind, item_id = row.number + 1, None
        try:
            log.part = layout.part(row)
            item_id = layout.item_id(row)
            item = layout.item(row, item_id)
            reserve_id(item_id, item_ids)
        except RowFault as fault:
            log.log_error(fault, path, row.line, item_id)
        else:
            if not layout.split_prefix:
                warn_of_flags(item, path, log)
                _warn_of_repeat(item, questions, path, log)
            yield item
        log.part = part
    return behind


def reserve_id(item_id: str, item_ids: set[str]) -> None:
    """Add an id to those in use. Raises RowFault if it is in use: the first row keeps it."""
    if item_id in item_ids:
        raise RowFault("duplicate_id", "the id occurs twice; its first row is kept", found=item_id, allowed="each id once")
    item_ids.add(item_id)


def warn_of_flags(item: QaItem, path: Path, log: ItemLog) -> None:
    """Log the flags of an item's options."""
    for flag in item.flags:
        if flag in _FLAG_TEXTS:
            fault = RowFault(flag, _FLAG_TEXTS[flag], found=_find_repeated_option(item.options))
            log.log_warning(fault, path, item.source_line, item.item_id)


def _warn_of_repeat(item: QaItem, questions: dict[tuple[str, ...], QaItem], path: Path, log: ItemLog) -> None:
    """Log an item with the same text and options as an earlier one of the file. Both are kept."""
    first = questions.setdefault((normalize_text(item.text), *map(normalize_text, item.options)), item)
    if first is not item:
        place = first.item_id if first.source_line is None else f"{first.item_id} in line {first.source_line}"
        text = "an earlier row has the same question and options; both are kept, and count twice"
        log.log_warning(RowFault("repeated", text, found=place), path, item.source_line, item.item_id)


def _find_repeated_option(options: Sequence[str]) -> str:
    """Return the option without a text, else the first that equals an earlier one."""
    alike = [normalize_text(option) for option in options]
    return next(option for place, option in enumerate(options) if not alike[place] or alike[place] in alike[:place])


def require_path(path: Path) -> Path:
    """Return the path. Raises ItemError if it does not exist or cannot be read."""
    try:
        if path.is_file() or path.is_dir():
            return path
    except OSError as error:
        raise ItemError(f"cannot be read: {error.strerror}", where=str(path)) from error
    raise ItemError("no such file or folder", where=str(path))


def require_mapping(row: SourceRow, keys: Iterable[str]) -> Mapping[str, Any]:
    """Return the values of a row by their names. Raises RowFault for a row that is not a mapping, and for a name that occurs twice."""
    if not isinstance(row.values, dict):
        raise RowFault("no_object", "the row is not an object", found=row.values, allowed=f"an object with {', '.join(keys)}")
    if isinstance(row.values, DuplicateKeys):
        raise RowFault("doubled_key", "a key occurs twice", found=row.values.duplicate_key, allowed="each key once")
    return row.values


def require_text(values: Mapping[str, Any], *names: str) -> str:
    """Return the text under the first of the names that exists. Raises RowFault for a blank text or another type."""
    name = next((name for name in names if name in values), names[0])
    if name not in values:
        raise RowFault("missing", f"{name} is missing", found=sorted(map(str, values)), allowed=f"a row with {name}")
    text = values[name]
    if not isinstance(text, str) or not text.strip():
        raise RowFault("text", f"{name} is not text", found=text, allowed="a text that is not blank")
    return require_readable(text, name)


def require_readable(text: str, name: str) -> str:
    """Return the text. Raises RowFault for an unpaired surrogate or NUL in it."""
    if has_invalid_text(text):
        raise RowFault("encoding", f"{name} contains text that is not valid UTF-8", found=text, allowed="UTF-8 without NUL")
    return text


def number_row(row: SourceRow) -> str:
    """Return the row's identifier within its file or part: its `id`, `index` or `question_id`, else its place, from 0."""
    values = row.values if isinstance(row.values, dict) else {}
    name = next((name for name in _NUMBER_KEYS if values.get(name) is not None), None)
    if name is None:
        return str(row.number)
    value = values[name]
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).strip() or has_invalid_text(str(value)):
        raise RowFault("id", f"{name} is not an id", found=value, allowed="a whole number or a text")
    return str(value).strip()


def read_part_name(text: object, fallback: str) -> str:
    """Return the name of the part in a row, else the fallback. Raises RowFault for an invalid name."""
    if text is None or (isinstance(text, str) and not text.strip()):
        return fallback
    if not isinstance(text, str) or not text.strip().isprintable() or len(text) > _LONGEST_PART_NAME:
        raise RowFault("part", "the subject is not a valid name", found=text, allowed="one line of at most 100 characters")
    return text.strip()


def read_options(values: object) -> tuple[str, ...]:
    """Return the options of a row. Raises RowFault for anything but a list of 2 to 10 texts."""
    form = f"a list of strings, {FEWEST_OPTIONS} to {MAX_OPTIONS} of them"
    if not isinstance(values, (list, tuple)) or not all(isinstance(option, str) for option in values):
        raise RowFault("options", "the options are not a list of strings", found=values, allowed=form)
    if not FEWEST_OPTIONS <= len(values) <= MAX_OPTIONS:
        raise RowFault("options", "too few or too many options", found=len(values), allowed=form)
    return tuple(require_readable(option, "an option") for option in values)


def flag_options(options: Sequence[str]) -> tuple[str, ...]:
    """Return the flags of options: `empty_option`, `equal_options`."""
    alike = {normalize_text(option) for option in options}
    return (*([EMPTY_OPTION] if "" in alike else []), *([EQUAL_OPTIONS] if len(alike) < len(options) else []))


def read_option_letter(answer: object, options: int, *, digits_count: bool = False) -> str:
    """Return the letter of an answer that is a letter or a place from 0. Raises RowFault for an answer outside the options.

    `digits_count`: whether a text of digits is a place, as in tables with text cells only.
    """
    letters = ITEM_LETTERS[:options]
    if isinstance(answer, str):
        text = answer.strip().upper()
        if len(text) == 1 and text in letters:
            return text
        if digits_count and text.isascii() and text.isdigit() and len(text) < 3:
            answer = int(text)
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < options:
        return letters[answer]
    form = f"{letters[0]}-{letters[-1]}, or 0-{options - 1}"
    raise RowFault("letter", "the answer is not one of the options", found=answer, allowed=form)

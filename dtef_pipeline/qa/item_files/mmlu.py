"""Multiple choice as MMLU and MMLU-Pro are published: one CSV file per subject, or tables that name the subject in each row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dtef_pipeline.qa.item_files.item_log import ItemLog, LoadedItems, RowFault
from dtef_pipeline.qa.item_files.layout import (
    FEWEST_OPTIONS,
    ITEM_LETTERS,
    flag_options,
    iterate_items_of_files,
    number_row,
    read_option_letter,
    read_options,
    read_part_name,
    require_mapping,
    require_path,
    require_readable,
    require_text,
)
from dtef_pipeline.qa.item_files.rows import CSV_ENDING, SourceRow
from dtef_pipeline.qa.item_files.splits import ONE_PART, find_split_files, name_without_split
from dtef_pipeline.qa.model import QaItem

CHOICE_TYPE = "choice"
_BARE_CELLS = 6
"""Number of cells of a row without a header: question, four options, letter."""
_CHOICE_COLUMN = re.compile(r"choice_?([0-9])|([a-j])")
_BARE_LAYOUT = "question, A, B, C, D, letter"
_CHOICE_HEADERS = "question,A,B,C,D,answer or question,choice0,choice1,choice2,choice3,answer"
_OBJECT_KEYS = ("question", "subject", "choices", "answer")
_LIST_KEYS, _PART_KEYS = ("choices", "options"), ("subject", "category")
"""Keys of the options and of the part, in MMLU and in MMLU-Pro."""


def load_mmlu(path: Path, *, suite: str = "mmlu", strict: bool = False) -> LoadedItems:
    """Load the items of a file, or of a folder with files or the folders `test/` and `dev/`.

    A subject is a part and a cluster; an item's id is the subject and its row in the file, from 0: `college_physics/17`. The rows of `dev`
    files are the examples. Raises ItemError for a path that does not exist, and with `strict` for the first unusable row.
    """
    log, item_ids = ItemLog(strict), set[str]()
    files = find_split_files(require_path(path), log)
    items = tuple(iterate_items_of_files(files.items, lambda file: _ChoiceLayout(file, suite), log, item_ids))
    examples = tuple(
        iterate_items_of_files(
            files.examples, lambda file: _ChoiceLayout(file, suite, split_prefix="dev/"), log, item_ids, warn=False
        )
    )
    return LoadedItems(items, log.findings, examples)


@dataclass(frozen=True, slots=True)
class _ChoiceLayout:
    """The rows of one file. `of`: prefix of the row number in the ids of examples."""

    file: Path
    suite: str
    split_prefix: str = ""

    def part(self, row: SourceRow | None) -> str | None:
        if row is None:
            return name_without_split(self.file) if self._is_csv else None
        values = row.values if isinstance(row.values, dict) else {}
        name = next((values[key] for key in _PART_KEYS if values.get(key) is not None), None)
        return read_part_name(name, name_without_split(self.file))

    def item_id(self, row: SourceRow) -> str:
        return f"{self.part(row)}/{self.split_prefix}{number_row(row, row.values if isinstance(row.values, dict) else {})}"

    def item(self, row: SourceRow, item_id: str) -> QaItem:
        is_bare = isinstance(row.values, list) and self._is_csv
        values = _name_cells(row.values) if is_bare else require_mapping(row, _OBJECT_KEYS)
        question = require_text(values, "question")
        options = read_options(_read_choices(values))
        if "answer" not in values:
            raise RowFault(
                "missing", "answer is missing", found=sorted(map(str, values)), allowed=f"a row with {', '.join(_OBJECT_KEYS)}"
            )
        part, working = self.part(row) or ONE_PART, values.get("cot_content")
        return QaItem(
            item_id=item_id,
            suite=self.suite,
            part=part,
            type=CHOICE_TYPE,
            text=question,
            options=options,
            reference=read_option_letter(
                values["answer"], len(options), digits_count=self._is_csv and isinstance(row.values, dict)
            ),
            cluster=part,
            source_line=row.line,
            flags=flag_options(options),
            solution=require_readable(working, "cot_content").strip() if isinstance(working, str) else "",
        )

    @property
    def _is_csv(self) -> bool:
        return self.file.name.lower().endswith(CSV_ENDING)


def _name_cells(cells: list[str]) -> Mapping[str, Any]:
    """Map a row without a header to column names."""
    if len(cells) != _BARE_CELLS:
        raise RowFault(
            "columns",
            "too few or too many cells",
            found=f"{len(cells)}",
            allowed=f"{_BARE_CELLS}: {_BARE_LAYOUT}; or a header {_CHOICE_HEADERS}",
        )
    return {"question": cells[0], "choices": cells[1:-1], "answer": cells[-1]}


def _read_choices(values: Mapping[str, Any]) -> object:
    """Return the options, from a list, or from columns `A`... or `choice0`..., of which the last may be blank."""
    for key in _LIST_KEYS:
        if key in values:
            return values[key]
    matches = {key: match for key in values if (match := _CHOICE_COLUMN.fullmatch(str(key).lower()))}
    places = {
        int(match[1]) if match[1] else ITEM_LETTERS.index(match[2].upper()): values[key] for key, match in matches.items()
    }
    if sorted(places) != list(range(len(places))) or not places:
        raise RowFault(
            "missing", "there are no options", found=sorted(map(str, values)), allowed=f"choices, or a header {_CHOICE_HEADERS}"
        )
    options = [places[place] for place in sorted(places)]
    while len(options) > FEWEST_OPTIONS and options[-1] in (None, ""):
        options.pop()
    return options

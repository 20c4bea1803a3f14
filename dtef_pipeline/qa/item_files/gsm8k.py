"""Word problems as GSM8K is published: lines of `{question, answer}`, whose answer ends in `#### number`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from dtef_pipeline.qa.item_files.item_log import ItemLog, LoadedItems, RowFault
from dtef_pipeline.qa.item_files.layout import iterate_items_of_files, number_row, require_mapping, require_path, require_text
from dtef_pipeline.qa.item_files.rows import SourceRow
from dtef_pipeline.qa.item_files.splits import ONE_PART, find_split_files
from dtef_pipeline.qa.model import QaItem

NUMBER_TYPE = "number"
FINAL_MARK = "####"
"""Stands before the number that a solution ends in."""
_STATED_NUMBER = re.compile(r"[-\u2212]?\$?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|[-\u2212]?\$?\.\d+", re.ASCII)
_ALLOWED_ANSWER = f"working, then {FINAL_MARK} and a number, once"


def load_gsm8k(path: Path, *, suite: str = "gsm8k", strict: bool = False) -> LoadedItems:
    """The items of a file, or of a folder with a `test` file; the rows of a `train` file beside it are the examples.

    There is one part, `all`; an item is named after its line, from 0, or after the `id` or `index` that its row states: `gsm8k/17`. It is
    its own cluster. The reference is the number without commas and signs of currency, the solution the working before it. With `strict`
    the first row that is not usable raises ItemError, as does a path where nothing is.
    """
    log, item_ids = ItemLog(strict), set[str]()
    files = find_split_files(require_path(path), log, examples=("train", "dev"))
    items = tuple(iterate_items_of_files(files.items, lambda file: _NumberLayout(suite), log, item_ids))
    examples = tuple(iterate_items_of_files(files.examples, lambda file: _NumberLayout(suite, "train/"), log, item_ids))
    return LoadedItems(items, log.findings, examples)


@dataclass(frozen=True, slots=True)
class _NumberLayout:
    """The rows of one file. `of`: stands before the row's number in the ids of examples."""

    suite: str
    of: str = ""

    def part(self, row: SourceRow | None) -> str:
        return ONE_PART

    def item_id(self, row: SourceRow) -> str:
        return f"{self.suite}/{self.of}{number_row(row, row.values if isinstance(row.values, dict) else {})}"

    def item(self, row: SourceRow, item_id: str) -> QaItem:
        values = require_mapping(row, ("question", "answer"))
        working, number = _split_answer(require_text(values, "answer"))
        return QaItem(
            item_id=item_id,
            suite=self.suite,
            part=ONE_PART,
            type=NUMBER_TYPE,
            text=require_text(values, "question"),
            reference=number,
            cluster=item_id,
            source_line=row.line,
            solution=working,
        )


def _split_answer(answer: str) -> tuple[str, str]:
    """(working, number) of an answer."""
    working, mark, number = answer.partition(FINAL_MARK)
    number = number.strip()
    if not mark or FINAL_MARK in number:
        count = f"{answer.count(FINAL_MARK)} of them"
        raise RowFault("mark", f"the answer does not hold {FINAL_MARK} once", found=count, allowed=_ALLOWED_ANSWER)
    if not _STATED_NUMBER.fullmatch(number):
        raise RowFault("number", f"what follows {FINAL_MARK} is not a number", found=number, allowed=_ALLOWED_ANSWER)
    return working.strip(), number.replace(",", "").replace("$", "").replace("\u2212", "-")

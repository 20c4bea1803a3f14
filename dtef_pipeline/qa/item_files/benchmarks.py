"""Items as benchmarks are published: GSM8K (word problems), HumanEval (programs to write), MMLU and MMLU-Pro (multiple choice)."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dtef_pipeline.qa.item_files.item_log import LoadedItems, RowFault
from dtef_pipeline.qa.item_files.layout import (
    FEWEST_OPTIONS,
    ITEM_LETTERS,
    ItemLayout,
    flag_options,
    load_layout,
    number_row,
    read_option_letter,
    read_options,
    read_part_name,
    require_mapping,
    require_readable,
    require_text,
)
from dtef_pipeline.qa.item_files.rows import CSV_ENDING, ONE_PART, SourceRow, name_without_split
from dtef_pipeline.qa.model import QaItem

NUMBER_TYPE = "number"
FINAL_MARK = "####"
"""Marks the number at the end of a solution."""
_STATED_NUMBER = re.compile(r"[-\u2212]?\$?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|[-\u2212]?\$?\.\d+", re.ASCII)
_ALLOWED_ANSWER = f"working, then {FINAL_MARK} and a number, once"


def load_gsm8k(path: Path, *, suite: str = "gsm8k", strict: bool = False) -> LoadedItems:
    """Load the items of a file, or of a folder with a `test` file; the rows of a `train` file next to it are the examples.

    There is one part, `all`. An item's id is its line, from 0, or the `id` or `index` of its row: `gsm8k/17`. It is its own cluster. The
    reference is the number without commas and currency signs, the solution the working before it. Raises ItemError for a path that does not
    exist, and with `strict` for the first unusable row.
    """
    return load_layout(path, _NumberLayout, suite, "train/", strict=strict, examples=("train", "dev"))


class _NumberLayout(ItemLayout):
    def item_id(self, row: SourceRow) -> str:
        return f"{self.suite}/{self.split_prefix}{number_row(row)}"

    def item(self, row: SourceRow, item_id: str) -> QaItem:
        values = require_mapping(row, ("question", "answer"))
        working, number = _split_answer(require_text(values, "answer"))
        text = require_text(values, "question")
        return self.make_item(row, item_id, type=NUMBER_TYPE, text=text, reference=number, solution=working)


def _split_answer(answer: str) -> tuple[str, str]:
    """Return (working, number) of an answer."""
    working, mark, number = answer.partition(FINAL_MARK)
    number = number.strip()
    if not mark or FINAL_MARK in number:
        count = f"{answer.count(FINAL_MARK)} times"
        raise RowFault("mark", f"the answer does not contain {FINAL_MARK} exactly once", found=count, allowed=_ALLOWED_ANSWER)
    if not _STATED_NUMBER.fullmatch(number):
        raise RowFault("number", f"the text after {FINAL_MARK} is not a number", found=number, allowed=_ALLOWED_ANSWER)
    return working.strip(), number.replace(",", "").replace("$", "").replace("\u2212", "-")


CODE_TYPE = "code"
_TASK_KEYS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
_SOLUTION_KEY = "canonical_solution"
_LONGEST_TASK_TEXT = 200_000
"""Largest length of a program in characters; the longest published one has a hundredth of it."""
_BODY = "\n    pass\n"
_LONGEST_FUNCTION = 100


def load_humaneval(path: Path, *, suite: str = "humaneval", strict: bool = False) -> LoadedItems:
    """Load the items of a file, also gzipped, or of a folder with one.

    There is one part, `all`. An item's id is its `task_id` (names of functions occur twice), and it is its own cluster. The reference is
    JSON of prompt, entry_point, test and, if given, canonical_solution. Raises ItemError for a path that does not exist, and with `strict`
    for the first unusable row.
    """
    return load_layout(path, _CodeLayout, suite, "", strict=strict)


class _CodeLayout(ItemLayout):
    def item_id(self, row: SourceRow) -> str:
        return require_text(require_mapping(row, _TASK_KEYS), "task_id").strip()

    def item(self, row: SourceRow, item_id: str) -> QaItem:
        values = require_mapping(row, _TASK_KEYS)
        task = {key: require_text(values, key) for key in ("prompt", "entry_point", "test")}
        task["entry_point"] = task["entry_point"].strip()
        if isinstance(solution := values.get(_SOLUTION_KEY), str):
            task[_SOLUTION_KEY] = require_readable(solution, _SOLUTION_KEY)
        _check_defines(task["test"], "check", "test")
        _check_defines(task["prompt"], task["entry_point"], "prompt")
        texts = {"text": task["prompt"], "solution": task.get(_SOLUTION_KEY, "")}
        return self.make_item(row, item_id, type=CODE_TYPE, reference=json.dumps(task, ensure_ascii=False), **texts)


def _check_defines(code: str, function: str, field: str) -> None:
    """Raise RowFault unless a program, or the beginning of one, defines a function. The program is not run."""
    functions = find_defined_functions(code)
    if function not in functions:
        names, function = sorted(functions) or "no function, or not Python", function[:_LONGEST_FUNCTION]
        raise RowFault(field, f"{field} does not define {function}", found=names, allowed=f"def {function}(...)")


def find_defined_functions(code: str) -> set[str]:
    """Return the functions that a program defines at its outermost level; empty if it is not Python. The last function may lack its
    body."""
    for text in (code, code.rstrip() + _BODY):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                body = ast.parse(text).body if len(text) <= _LONGEST_TASK_TEXT else []
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return set()


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
    return load_layout(path, _ChoiceLayout, suite, "dev/", strict=strict, examples=("dev", "validation"))


class _ChoiceLayout(ItemLayout):
    def part(self, row: SourceRow | None) -> str | None:
        if row is None:
            return name_without_split(self.file) if self._is_csv else None
        values = row.values if isinstance(row.values, dict) else {}
        name = next((values[key] for key in _PART_KEYS if values.get(key) is not None), None)
        return read_part_name(name, name_without_split(self.file))

    def item_id(self, row: SourceRow) -> str:
        return f"{self.part(row)}/{self.split_prefix}{number_row(row)}"

    def item(self, row: SourceRow, item_id: str) -> QaItem:
        is_bare = isinstance(row.values, list) and self._is_csv
        values = _name_cells(row.values) if is_bare else require_mapping(row, _OBJECT_KEYS)
        question = require_text(values, "question")
        options = read_options(_read_choices(values))
        if "answer" not in values:
            form = f"a row with {', '.join(_OBJECT_KEYS)}"
            raise RowFault("missing", "answer is missing", found=sorted(map(str, values)), allowed=form)
        part, working = self.part(row) or ONE_PART, values.get("cot_content")
        is_table = self._is_csv and isinstance(row.values, dict)
        return self.make_item(
            row,
            item_id,
            part=part,
            type=CHOICE_TYPE,
            text=question,
            options=options,
            reference=read_option_letter(values["answer"], len(options), digits_count=is_table),
            cluster=part,
            flags=flag_options(options),
            solution=require_readable(working, "cot_content").strip() if isinstance(working, str) else "",
        )

    @property
    def _is_csv(self) -> bool:
        return self.file.name.lower().endswith(CSV_ENDING)


def _name_cells(cells: list[str]) -> Mapping[str, Any]:
    """Map a row without a header to column names."""
    if len(cells) != _BARE_CELLS:
        form = f"{_BARE_CELLS}: {_BARE_LAYOUT}; or a header {_CHOICE_HEADERS}"
        raise RowFault("columns", "too few or too many cells", found=f"{len(cells)}", allowed=form)
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
        form = f"choices, or a header {_CHOICE_HEADERS}"
        raise RowFault("missing", "there are no options", found=sorted(map(str, values)), allowed=form)
    options = [places[place] for place in sorted(places)]
    while len(options) > FEWEST_OPTIONS and options[-1] in (None, ""):
        options.pop()
    return options

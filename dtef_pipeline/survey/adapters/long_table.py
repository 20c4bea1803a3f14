"""Long table: a CSV, TSV or Parquet file with one row per round, question, option and segment (attribute, value).

`LONG_COLUMNS` lists the columns. With a `count` column, percentages are computed from counts, and their sum is the number of respondents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from pyarrow import ArrowException

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.identity import normalize_text
from dtef_pipeline.survey.adapters.text_files import detect_other_separator, open_table, read_csv_header
from dtef_pipeline.survey.answer_scales.non_answers import OPTION_ROLES, Role
from dtef_pipeline.survey.answer_scales.scales import KINDS
from dtef_pipeline.survey.attributes import clean, segment
from dtef_pipeline.survey.model import Answer, Finding, Question, Segment, Survey, Unreadable
from dtef_pipeline.survey.validation import (
    check_places,
    check_question,
    make_round_id,
    parse_effective_respondents,
    parse_percentage,
    parse_position,
    parse_respondents,
    parse_role,
    parse_weighted_count,
    require_columns,
)
from dtef_pipeline.text.shortening import shorten_to_line

LONG_COLUMNS = {
    "round": "the survey wave, such as GD4",
    "question": "the question's text",
    "option": "one answer option; options keep the order in which they first appear (or that of `option_order`)",
    "attribute": "the segment's attribute, such as country",
    "value": "the segment's value, such as Kenya",
    "percent": "share of the segment that chose the option, 0 to 100 (or `count`)",
    "count": "respondents of the segment who chose the option (replaces `percent`; n is their sum, or `n` for weighted counts)",
    "question_id": "optional id of the question; without it the text is the id",
    "n": "optional: respondents of the segment to this question, the same in all rows of one segment and question",
    "n_effective": "optional: effective respondents of weighted data, the same in all rows of one segment and question",
    "option_order": "optional number that puts the options in order",
    "scale": "optional: ordinal or nominal, the same in all rows of a question; blank: derived from the options",
    "role": f"optional: {', '.join(OPTION_ROLES)}, the same in all rows of an option; blank: derived from the option's text",
    "position": "optional number: the option's position on the scale, such as 1.5; blank: not on the scale",
    "battery": "optional: the question's battery (block), the same in all rows of a question; blank: derived by rule",
}
_REQUIRED_COLUMNS = ("round", "question", "option", "attribute", "value")
_TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")

Row = Mapping[str, str]


class LongTable:
    """An adapter of tables with one row per round, question, option and segment."""

    name = "long-table"
    accepts = f"a .csv, .tsv or .parquet file with columns {', '.join(_REQUIRED_COLUMNS)}, and percent or count"

    def recognises(self, path: Path) -> bool:
        """Return whether the table has one of the required columns. `read` then names those that are missing."""
        try:
            header = _read_table_header(path)
            separator = detect_other_separator(header, path)
            names = header[0].split(separator) if separator else header
            return bool({*names} & {*_REQUIRED_COLUMNS})
        except SurveyError:
            return False

    def read(self, path: Path) -> list[Survey]:
        """Return all rounds of the file, in order of appearance."""
        where = str(path)
        columns, rows = _open_rows(path)
        if not {"percent", "count"} & {*columns}:
            raise SurveyError("the column `percent` or `count` is missing", where=where, line=1, arrived=", ".join(columns))
        rounds: dict[str, _Round] = {}
        for line, row in rows:
            name = make_round_id(_require_cell(row, "round", where, line), where=where)
            rounds.setdefault(name, _Round(name, where)).add(row, line)
        if not rounds:
            raise SurveyError("the table has no rows", where=where, allowed="at least one")
        return [r.build_survey() for r in rounds.values()]


def _read_table_header(path: Path) -> list[str]:
    """Return the column names in lower case; empty if the path is not a table."""
    if not path.is_file() or path.suffix.lower() not in _TABLE_SUFFIXES:
        return []
    try:
        names = pq.read_schema(path).names if path.suffix.lower() == ".parquet" else read_csv_header(path)
        return list(map(_clean_name, names))
    except ArrowException as error:
        raise SurveyError("not a readable table", where=str(path), arrived=str(error)) from error


def _open_rows(path: Path) -> tuple[list[str], Iterator[tuple[int, Row]]]:
    """Return the column names, and (line, row) with cells as text, blank if missing. The lines of a Parquet file are its rows, from 1."""
    if path.suffix.lower() != ".parquet":
        columns, rows = open_table(path, _REQUIRED_COLUMNS, _clean_name)
        return columns, ((line, dict(zip(columns, row, strict=True))) for line, row in rows)
    columns = _read_table_header(path)
    require_columns(columns, _REQUIRED_COLUMNS, where=str(path))
    table = enumerate(pq.read_table(path).rename_columns(columns).to_pylist(), 1)
    return columns, (
        (number, {name: "" if cell is None else str(cell) for name, cell in cells.items()}) for number, cells in table
    )


def _clean_name(name: str) -> str:
    return name.strip().lower()


def _require_cell(row: Row, column: str, where: str, line: int) -> str:
    text = clean(row[column])
    if not text:
        raise SurveyError(f"blank {column}", where=where, line=line, allowed=LONG_COLUMNS[column])
    return text


class _Option(NamedTuple):
    order: float
    text: str
    role: Role | None
    position: float | None
    line: int


@dataclass
class _Question:
    text: str
    line: int
    scale: str
    battery: str
    options: dict[str, _Option] = field(default_factory=dict)  # by normalized text


class _Round:
    def __init__(self, name: str, where: str) -> None:
        self.name, self.where = name, where
        self.questions: dict[str, _Question] = {}
        self.segments: dict[str, Segment] = {}
        self.cells: dict[tuple[str, str], OptionCells] = {}

    def _make_error(
        self, problem: str, line: int, arrived: object = None, allowed: str | list[Any] | None = None
    ) -> SurveyError:
        return SurveyError(problem, where=self.where, line=line, arrived=arrived, allowed=allowed)

    def add(self, row: Row, line: int) -> None:
        """Add a row. Raises SurveyError if it contradicts an earlier one."""
        question_id = self._add_question(row, line)
        option = self._add_option(row, line, question_id)
        key = self._add_segment(row, line)
        n = parse_respondents(row.get("n"), "n", where=self.where, line=line)
        effective = parse_effective_respondents(row.get("n_effective"), "n_effective", where=self.where, line=line)
        cells = self.cells.setdefault((key, question_id), OptionCells(line, n, effective))
        if option in cells.shares:
            problem = f"segment {key}, question {question_id}, option {row['option']!r} occurs twice, first at line {cells.lines[option]}"
            raise self._make_error(problem, line=line, allowed="one row per segment, question and option")
        for column, first, now in (("n", cells.n, n), ("n_effective", cells.n_effective, effective)):
            if first != now:
                problem = f"{column} of segment {key} and question {question_id} differs from line {cells.line}"
                raise self._make_error(problem, line=line, arrived=row[column], allowed=[first])
        cells.lines[option] = line
        cells.counted = "count" in row
        cells.shares[option] = parse_weighted_count(row["count"]) if "count" in row else parse_percentage(row["percent"])

    def build_survey(self) -> Survey:
        questions = {q_id: self._build_question(q_id, q) for q_id, q in self.questions.items()}
        findings = count_findings(self.cells, weighted=self._is_weighted)
        answers = [self._build_answer(key, questions[q_id], c) for (key, q_id), c in self.cells.items()]
        return Survey(
            round=self.name,
            name=self.name,
            adapter=LongTable.name,
            path=self.where,
            questions=tuple(questions.values()),
            segments=tuple(self.segments.values()),
            answers=tuple(answers),
            findings=tuple(f for f in findings if f.items),
        )

    def _add_question(self, row: Row, line: int) -> str:
        text = _require_cell(row, "question", self.where, line)
        question_id = clean(row.get("question_id", "")) or text
        scale = normalize_text(row.get("scale", ""))
        if scale not in ("", *KINDS):
            raise self._make_error("unknown scale", line=line, arrived=row["scale"], allowed=f"{', '.join(KINDS)}, or blank")
        entry = self.questions.setdefault(question_id, _Question(text, line, scale, clean(row.get("battery", ""))))
        for column, first, now in (("scale", entry.scale, scale), ("battery", entry.battery, clean(row.get("battery", "")))):
            if first != now:
                problem = f"{column} of question {question_id} differs from line {entry.line}"
                raise self._make_error(problem, line=line, arrived=row[column], allowed=[first or "a blank"])
        if normalize_text(entry.text) != normalize_text(text):
            problem = f"question id {question_id} has another text at line {entry.line}"
            raise self._make_error(problem, line=line, arrived=text, allowed=[entry.text])
        return question_id

    def _add_option(self, row: Row, line: int, question_id: str) -> str:
        text = _require_cell(row, "option", self.where, line)
        order = parse_percentage(row.get("option_order", ""))
        if isinstance(order, Unreadable):
            raise self._make_error("option_order is not a number", line=line, arrived=order, allowed="a number, or blank")
        options = self.questions[question_id].options
        place = float(len(options)) if order is None else order
        role = parse_role(row.get("role"), where=self.where, line=line)
        position = parse_position(row.get("position"), where=self.where, line=line)
        option = options.setdefault(normalize_text(text), _Option(place, text, role, position, line))
        for column, first, now in (("role", option.role, role), ("position", option.position, position)):
            if first != now:
                problem = f"{column} of option {text!r} of question {question_id} differs from line {option.line}"
                raise self._make_error(problem, line=line, arrived=row[column], allowed=["a blank" if first is None else first])
        return normalize_text(text)

    def _add_segment(self, row: Row, line: int) -> str:
        new_segment = segment(
            {_require_cell(row, "attribute", self.where, line): _require_cell(row, "value", self.where, line)},
            None,
            where=self.where,
            line=line,
        )
        old_segment = self.segments.setdefault(new_segment.key, new_segment)
        if normalize_text(old_segment.value) != normalize_text(new_segment.value):
            problem = f"two segments have the same key {new_segment.key!r}"
            raise self._make_error(problem, line=line, arrived=new_segment.value, allowed=[old_segment.value])
        return new_segment.key

    def _build_question(self, question_id: str, draft: _Question) -> Question:
        _, options, roles, positions, lines = zip(*sorted(draft.options.values(), key=lambda option: option.order), strict=True)
        details = (draft.scale or None, draft.battery or None)
        question = Question(question_id, draft.text, options, *details, roles=roles, positions=positions)
        check_question(question, where=self.where, line=draft.line)
        check_places(question, lines, where=self.where)
        return question

    @cached_property
    def _is_weighted(self) -> bool:
        return has_weighted_counts(self.cells.values(), self.where)

    def _build_answer(self, key: str, question: Question, cells: OptionCells) -> Answer:
        """Return the answer. An option without a row gets 0, as chosen by nobody; if rows are missing, counts may sum to less than n."""
        shares = [cells.shares.get(normalize_text(option), 0.0) for option in question.options]
        total, n = cells.total, cells.n
        if total is not None:
            base = total
            is_incomplete = len(cells.shares) < max(len(question.options), 2)
            if n is not None and not self._is_weighted and (total > n or is_incomplete):
                base = n
            shares = [100 * s / base if base and isinstance(s, float) else 0.0 for s in shares]
            n = n if self._is_weighted else int(base)
        return Answer(key, question.id, tuple(shares), n, self.where, cells.fault_line, cells.n_effective)


_COUNTS_ALLOWED = (
    "whole counts of people; or weighted counts with the column `n` (respondents, unweighted) or `n_effective`; or `percent` instead of "
    "`count`"
)
_WEIGHTED = (
    "Counts are fractions or above n, so they are treated as weighted, with n as stated; correct n if they count people, or add a column "
    "n_effective"
)
_COUNTS_BELOW_N = "The counts sum to less than n; their sum is used as n"
_COUNTS_ABOVE_N = (
    "In some segments the counts of these questions sum to more than n: write weighted counts as `percent` with `n`, and leave out "
    "questions with several answers per respondent"
)


@dataclass
class OptionCells:
    """The rows of a (segment, question): option -> share or count, and option -> line."""

    line: int
    n: int | None
    n_effective: float | None
    shares: dict[str, float | Unreadable | None] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    counted: bool = False

    @property
    def fault_line(self) -> int:
        """The line of the first cell without a number, or of the first row if all have one."""
        return next((self.lines[option] for option, share in self.shares.items() if not isinstance(share, float)), self.line)

    @property
    def counts(self) -> list[float]:
        """The cells that hold a number."""
        return [s for s in self.shares.values() if isinstance(s, float)]

    @property
    def total(self) -> float | None:
        """The sum of the counts, or None if the cells are percentages or one is not a count."""
        return sum(self.counts) if self.counted and len(self.counts) == len(self.shares) else None

    @property
    def is_weighted(self) -> bool:
        """Whether the counts must be weighted: one is a fraction or exceeds n."""
        return self.counted and any(s != int(s) or (self.n is not None and s > self.n) for s in self.counts)


def has_weighted_counts(cells: Iterable[OptionCells], where: str) -> bool:
    """Return whether a round has weighted counts. Raises SurveyError if it has, and a pair does not state its number of respondents."""
    counted_cells = [cell for cell in cells if cell.counted]
    weighted = next((cell for cell in counted_cells if cell.is_weighted), None)
    if weighted is None:
        return False
    for cell in counted_cells:
        if cell.n is None and cell.n_effective is None:
            problem = "weighted counts without a number of respondents"
            example = f"{', '.join(f'{count:g}' for count in weighted.counts[:3])} at line {weighted.line}"
            raise SurveyError(problem, where=where, line=cell.line, arrived=example, allowed=_COUNTS_ALLOWED)
    return True


def count_findings(cells: Mapping[tuple[str, str], OptionCells], *, weighted: bool) -> Iterator[Finding]:
    """Yield findings on counts that do not sum to n, by question; pairs above n come first.

    `cells` maps (segment, question) to its cells.
    """
    mismatches = [
        (key, cell.total, cell.n)
        for key, cell in cells.items()
        if cell.total is not None and cell.n is not None and cell.total != cell.n
    ]
    too_many = {question_id for (_, question_id), total, n in mismatches if total > n}
    below, above = list[str](), list[str]()
    for (segment_key, question_id), total, n in sorted(mismatches, key=lambda pair: pair[1] < pair[2]):
        fault_text = f"{segment_key}, {shorten_to_line(question_id)}: the counts sum to {total:g}, n is {n}"
        (above if question_id in too_many else below).append(fault_text)
    if weighted:
        yield Finding("warning", "weighted-counts", _WEIGHTED, (*above, *below))
        return
    yield Finding("warning", "counts-below-n", _COUNTS_BELOW_N, tuple(below))
    yield Finding("warning", "counts-above-n", _COUNTS_ABOVE_N, tuple(above))

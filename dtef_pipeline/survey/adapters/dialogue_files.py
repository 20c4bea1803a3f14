"""The files of a round of Global Dialogues: single-select polls, counts of respondents, and options in the questionnaire's order."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.identity import normalized
from dtef_pipeline.survey.adapters.counts import Counts
from dtef_pipeline.survey.attributes import clean
from dtef_pipeline.survey.model import Finding
from dtef_pipeline.survey.validation import require_columns, whole_number
from dtef_pipeline.text.counted import counted

_POLL = "poll single select"
REQUIRED = ("Question ID", "Question Type", "Question", "Response")


@dataclass
class Poll:
    """The rows of one question: first line, text, options and the rows' cells."""

    id: str
    text: str
    line: int
    options: list[str]
    rows: list[list[str]]
    lines: list[int]


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of a CSV file; the line is where the row ends."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            for row in reader:
                if any(row):
                    yield reader.line_num, row
    except (UnicodeDecodeError, csv.Error) as error:
        raise SurveyError("not a CSV file in UTF-8", where=str(path), arrived=str(error)) from error


def _table(path: Path, required: Sequence[str]) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Cleaned column names and the rows below them, each as long as the header."""
    rows = _rows(path)
    _, header = next(rows, (0, []))
    if not header:
        raise SurveyError("the file is empty", where=str(path), allowed=f"columns {', '.join(required)}")
    columns = [clean(name) for name in header]
    require_columns(columns, required, where=str(path))
    return columns, _full_rows(rows, len(columns), str(path))


def _full_rows(rows: Iterator[tuple[int, list[str]]], width: int, where: str) -> Iterator[tuple[int, list[str]]]:
    for line, row in rows:
        if len(row) != width:
            allowed = f"{counted(width, 'cell')}, as in the header"
            raise SurveyError(
                "a row of another length than the header", where=where, line=line, arrived=len(row), allowed=allowed
            )
        yield line, row


def read_aggregate(path: Path) -> tuple[list[Poll], list[str], list[Finding]]:
    """The single-select polls in file order, the column names, and what was left out."""
    columns, rows = _table(path, REQUIRED)
    id_, type_, text, response = (columns.index(name) for name in REQUIRED)
    polls: dict[str, Poll] = {}
    others: dict[str, dict[str, str]] = defaultdict(dict)
    last = ""
    for line, row in rows:
        question_id = row[id_].strip()
        if normalized(row[type_]) != _POLL:
            others[clean(row[type_])][question_id] = clean(row[text])
            continue
        if not question_id:
            raise SurveyError("a row without Question ID", where=str(path), line=line, arrived=row[text][:80])
        poll = polls.setdefault(question_id, Poll(question_id, _question_text(row[text]), line, [], [], []))
        again = last != question_id and clean(row[response]) in poll.options
        if again or normalized(poll.text) != normalized(row[text]):
            problem = f"duplicate question id {question_id}: first used at line {poll.line}"
            raise SurveyError(problem, where=str(path), line=line, arrived=clean(row[text]), allowed=clean(poll.text))
        poll.options.append(clean(row[response]))
        poll.rows.append(row)
        poll.lines.append(line)
        last = question_id
    return list(polls.values()), columns, [_left_out(kind, found) for kind, found in others.items()]


def _question_text(text: str) -> str:
    """The text without stray blanks; line breaks are the author's and stay."""
    return "\n".join(clean(line) for line in text.strip().splitlines())


def _left_out(kind: str, found: Mapping[str, str]) -> Finding:
    if normalized(kind) == "ask opinion":
        return Finding("info", "open-ended-question", "Open-ended questions have no options to predict.", tuple(found.values()))
    message = f"Only single-select polls are used; these are of type {kind!r}."
    return Finding("info", "question-type", message, tuple(found.values()))


def read_counts(path: Path) -> Counts:
    """The counts file; empty when there is none."""
    if not path.is_file():
        return Counts()
    columns, rows = _table(path, ("Question ID",))
    id_ = columns.index("Question ID")
    counts: dict[str, dict[str, int | None]] = {}
    for line, row in rows:
        question_id = row[id_].strip()
        if question_id in counts:
            raise SurveyError(f"question id {question_id} twice", where=str(path), line=line, allowed="one row per question")
        counts[question_id] = {name: whole_number(cell) for name, cell in zip(columns, row, strict=True) if cell}
    return Counts(columns, counts)


def guide_orders(path: Path) -> dict[str, list[list[str]]]:
    """Normalized question text -> its normalized options, for each time the discussion guide asks it; empty without a guide."""
    if not path.is_file():
        return {}
    rows = (row for _, row in _rows(path))
    header = next((row for row in rows if "Content" in row), [])
    if not header:
        raise SurveyError("not a discussion guide", where=str(path), allowed="a row of column names with 'Content'")
    content = header.index("Content")
    options = [i for i, name in enumerate(header) if name.startswith("Poll or Category Option")]
    orders: dict[str, list[list[str]]] = defaultdict(list)
    for row in rows:
        texts = [normalized(clean(row[i])) for i in options if i < len(row) and row[i].strip()]
        if texts and content < len(row):
            orders[normalized(row[content])].append(texts)
    return orders

"""The files of a round of Global Dialogues: single-select polls, counts of respondents, and options in the questionnaire's order."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.identity import normalize_text
from dtef_pipeline.survey.adapters.long_table import Counts
from dtef_pipeline.survey.adapters.text_files import iterate_text_rows, require_separator
from dtef_pipeline.survey.attributes import clean, clean_lines
from dtef_pipeline.survey.model import Finding
from dtef_pipeline.survey.validation import parse_whole_count, require_columns
from dtef_pipeline.text.number_words import format_count

AGGREGATE = "_aggregate_standardized.csv"
COUNTS_FILE = "_segment_counts_by_question.csv"
MAPPING = "_question_id_mapping.csv"
GUIDE = "_discussion_guide.csv"

_POLL = "poll single select"
_ASKED_AS_POLL = re.compile(r"(?:poll|onboarding) single select")
_ANNOUNCES = re.compile(r"\b(?:following|below|each|next|these)\b", re.IGNORECASE)
REQUIRED = ("Question ID", "Question Type", "Question", "Response")


@dataclass
class Poll:
    """The rows of a question: first line, text, options and cells."""

    id: str
    text: str
    line: int
    options: list[str]
    rows: list[list[str]]
    lines: list[int]


@dataclass(frozen=True)
class Aggregate:
    """The single-select polls in file order, the column names, findings on omitted rows, and the other questions (id -> text)."""

    polls: list[Poll]
    columns: list[str]
    findings: list[Finding]
    others: Mapping[str, str]

    @property
    def texts(self) -> Mapping[str, str]:
        """Question id -> text of all questions."""
        return {poll.id: poll.text for poll in self.polls} | {**self.others}


@dataclass(frozen=True)
class GuideItem:
    """An entry of the discussion guide. `kind` is its type in lower case, blank if the guide has no such column."""

    kind: str
    text: str
    options: Sequence[str]

    @property
    def is_poll(self) -> bool:
        """Whether the entry is a single-select poll, which the aggregate file should contain."""
        return bool(_ASKED_AS_POLL.fullmatch(self.kind))


def _open_table(path: Path, names: Sequence[str]) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Return the cleaned column names, and an iterator over the rows, which must be as long as the header."""
    rows = iterate_text_rows(path)
    _, header = next(rows, (0, []))
    if not header:
        raise SurveyError("the file is empty", where=str(path), allowed=f"columns {', '.join(names)}")
    require_separator(header, path)
    columns = [clean(name) for name in header]
    require_columns(columns, names, where=str(path))
    return columns, _iterate_full_rows(rows, len(columns), str(path))


def _iterate_full_rows(rows: Iterator[tuple[int, list[str]]], width: int, where: str) -> Iterator[tuple[int, list[str]]]:
    for line, row in rows:
        if len(row) != width:
            requirement = f"{format_count(width, 'cell')}, as in the header"
            raise SurveyError(
                "the row and the header differ in length", where=where, line=line, arrived=len(row), allowed=requirement
            )
        yield line, row


def read_aggregate(path: Path) -> Aggregate:
    """Read the aggregate file."""
    columns, rows = _open_table(path, REQUIRED)
    id_, type_, text, response = (columns.index(name) for name in REQUIRED)
    polls: dict[str, Poll] = {}
    other_questions: dict[str, dict[str, str]] = defaultdict(dict)
    last = ""
    for line, row in rows:
        question_id = row[id_].strip()
        if normalize_text(row[type_]) != _POLL:
            other_questions[clean(row[type_])][question_id] = clean(row[text])
            continue
        if not question_id:
            raise SurveyError("a row without Question ID", where=str(path), line=line, arrived=row[text][:80])
        poll = polls.setdefault(question_id, Poll(question_id, clean_lines(row[text]), line, [], [], []))
        is_repeat = last != question_id and clean(row[response]) in poll.options
        if is_repeat or normalize_text(poll.text) != normalize_text(row[text]):
            problem = f"duplicate question id {question_id}: first used at line {poll.line}"
            raise SurveyError(problem, where=str(path), line=line, arrived=clean(row[text]), allowed=clean(poll.text))
        poll.options.append(clean(row[response]))
        poll.rows.append(row)
        poll.lines.append(line)
        last = question_id
    texts = {question_id: text for questions in other_questions.values() for question_id, text in questions.items()}
    return Aggregate(
        list(polls.values()), columns, [_report_left_out(kind, questions) for kind, questions in other_questions.items()], texts
    )


def _report_left_out(kind: str, texts: Mapping[str, str]) -> Finding:
    if normalize_text(kind) == "ask opinion":
        return Finding("info", "open-ended-question", "Open-ended questions have no options to predict.", tuple(texts.values()))
    message = f"Only single-select polls are used; these are of type {kind!r}."
    return Finding("info", "question-type", message, tuple(texts.values()))


def read_counts(path: Path) -> Counts:
    """Read the counts file. The result is empty if there is no such file."""
    if not path.is_file():
        return Counts()
    columns, rows = _open_table(path, ("Question ID",))
    id_ = columns.index("Question ID")
    counts: dict[str, dict[str, int | None]] = {}
    texts: dict[str, str] = {}
    for line, row in rows:
        question_id = row[id_].strip()
        if question_id in counts:
            raise SurveyError(
                f"question id {question_id} occurs twice", where=str(path), line=line, allowed="one row per question"
            )
        counts[question_id] = {name: parse_whole_count(cell) for name, cell in zip(columns, row, strict=True) if cell}
        texts[question_id] = clean(dict(zip(columns, row, strict=True)).get("Question Text", ""))
    return Counts(columns, counts, texts)


def read_mapping(path: Path) -> dict[str, str]:
    """Return id -> text of the questions in the mapping file; empty if the file or one of its columns is missing."""
    if not path.is_file():
        return {}
    (_, header), *rows = [*iterate_text_rows(path)] or [(0, [])]
    if not {"uuid", "question_text"} <= {*header}:
        return {}
    id_, text = header.index("uuid"), header.index("question_text")
    return {row[id_].strip(): clean(row[text]) for _, row in rows if max(id_, text) < len(row) and row[id_].strip()}


def read_guide(path: Path) -> list[GuideItem]:
    """Return the entries of the discussion guide in file order; empty without a guide."""
    if not path.is_file():
        return []
    rows = (row for _, row in iterate_text_rows(path))
    header = next((row for row in rows if "Content" in row), [])
    if not header:
        raise SurveyError("not a discussion guide", where=str(path), allowed="a row of column names with 'Content'")
    content = header.index("Content")
    options = [i for i, name in enumerate(header) if name.startswith("Poll or Category Option")]
    kind = next((i for i, name in enumerate(header) if name.lower().startswith("item type")), None)
    return [
        GuideItem(
            "" if kind is None else normalize_text(row[kind]),
            row[content],
            [clean(row[i]) for i in options if i < len(row) and row[i].strip()],
        )
        for row in rows
        if max(content, kind or 0) < len(row) and row[content].strip()
    ]


def collect_guide_orders(guide: Sequence[GuideItem]) -> dict[str, list[list[str]]]:
    """Return normalized question text -> its normalized options, for each time the discussion guide asks it."""
    orders: dict[str, list[list[str]]] = defaultdict(list)
    for item in guide:
        if item.options:
            orders[normalize_text(item.text)].append([normalize_text(option) for option in item.options])
    return orders


def collect_guide_blocks(guide: Sequence[GuideItem]) -> dict[str, str]:
    """Return normalized question text -> the introduction of its list, for polls directly below an introduction.

    An introduction is a spoken text above the polls that ends with a colon or refers to the following items. A question that occurs in
    several places is left out.
    """
    blocks: dict[str, list[str | None]] = defaultdict(list)
    introduction: str | None = None
    for item in guide:
        if item.kind == "speak":
            introduction = _extract_introduction(item.text)
        elif item.kind == _POLL:
            blocks[normalize_text(item.text)].append(introduction)
        else:
            introduction = None
    return {text: lines[0] for text, lines in blocks.items() if len(lines) == 1 and lines[0] is not None}


def _extract_introduction(text: str) -> str | None:
    """Return the last sentence of a spoken text if it announces a list, else None."""
    last = clean(re.split(r"[.!?]\s+|\n", text.strip())[-1])
    return last if last.endswith(":") or _ANNOUNCES.search(last) else None

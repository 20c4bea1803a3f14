"""Files of votes from other tools, read completely and checked: the first fault is raised with file and line, and nothing is used.

Votes are a CSV with a header: `left, right, choice`, and optionally `reviewer_id, confidence, prompt_id, pair_id`; other columns are
ignored. They may also be JSON: `{"votes": [[left, right, choice], ...]}` or `{"wins": [[winner, loser, count], ...]}`; other keys are
ignored. Responses and prompts are JSON lines.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dtef_pipeline.errors import SourceError
from dtef_pipeline.preference.votes import CHOICES, MAX_CONFIDENT, Choice
from dtef_pipeline.text.json_values import JsonFault, parse_json
from dtef_pipeline.text.well_formed import replace_surrogates

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LONGEST_VOTE_CELL = 1_000_000
"""Characters in a cell of a CSV."""
MAX_WINS = 10**12
CSV_NEEDS = ("left", "right", "choice")
OPTIONAL_CSV_COLUMNS = ("pair_id", "prompt_id", "reviewer_id", "confidence")
_OUTCOMES: Mapping[str, int] = dict(zip(CHOICES, (1, -1, 0), strict=True))
_MAX_VALUE_LENGTH = 80


class FileVote(NamedTuple):
    """One row of a CSV of votes."""

    line: int
    left: str
    right: str
    choice: Choice
    reviewer_id: str
    """Like the prompt id, empty if the row has none."""
    prompt_id: str
    confidence: int | None


@dataclass(frozen=True, slots=True)
class VoteColumns:
    """Votes as columns, one row per vote or per several equal ones; arrays of (rows,)."""

    source: str
    """The file's name in errors."""
    players: tuple[str, ...]
    """Sorted by name."""
    left: Codes
    """Places in `players`."""
    right: Codes
    outcome: Codes
    """1: the left one is better, -1: the right one, 0: a tie."""
    counts: Floats
    """Number of votes in the row."""
    reviewer_ids: tuple[str, ...] | None = None
    """None: voters unknown."""
    confidence: Floats | None = None
    """1 to 5; None if unknown."""
    prompt_ids: tuple[str, ...] | None = None
    """None if prompts are unknown."""

    @property
    def votes(self) -> int:
        return int(self.counts.sum())


def read_votes(path: Path) -> VoteColumns:
    """Return the votes of a CSV or JSON file, detected by content. Raises SourceError with the place of the first fault.

    Reviewers, prompts and confidences must be in every row of a CSV or in none.
    """
    text = _read_text_file(path)
    if text.lstrip()[:1] in {"{", "["}:
        return _parse_json_votes(str(path), text)
    rows = list(iterate_file_votes(path))
    confidences = _require_every(path, "confidence", rows, [row.confidence for row in rows])
    return vote_columns(
        str(path),
        [(row.left, row.right) for row in rows],
        np.array([_OUTCOMES[row.choice] for row in rows], dtype=np.int64),
        np.ones(len(rows)),
        reviewer_ids=_require_every(path, "reviewer_id", rows, [row.reviewer_id for row in rows]),
        confidence=None if confidences is None else np.array(confidences, dtype=np.float64),
        prompt_ids=_require_every(path, "prompt_id", rows, [row.prompt_id for row in rows]),
    )


def _parse_json_votes(where: str, text: str) -> VoteColumns:
    kind, rows = _find_json_rows(where, text)
    last = ", ".join(CHOICES) if kind == "votes" else f"a whole number from 0 to {MAX_WINS}"
    for index, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != 3:
            raise _make_json_error(where, f"{kind}[{index}] is not usable", row, f"[left, right, one of {last}]")
        if not all(isinstance(name, str) and name.strip() and name == replace_surrogates(name) for name in row[:2]):
            raise _make_json_error(where, f"{kind}[{index}]: no name of a player", row[:2], "two texts that are not empty")
        if row[0].strip() == row[1].strip():
            raise _make_json_error(where, f"{kind}[{index}]: both players are the same", row[0], "two different players")
        if not (row[2] in CHOICES if kind == "votes" else _is_count(row[2])):
            raise _make_json_error(where, f"{kind}[{index}]: the third value is not usable", row[2], last)
    sides = [(row[0].strip(), row[1].strip()) for row in rows]
    outcome = np.array([_OUTCOMES[row[2]] if kind == "votes" else 1 for row in rows], dtype=np.int64)
    times = np.array([1.0 if kind == "votes" else float(row[2]) for row in rows])
    columns = vote_columns(where, sides, outcome, times)
    mask = times > 0  # players that appear only in wins of 0 are kept
    return VoteColumns(where, columns.players, columns.left[mask], columns.right[mask], outcome[mask], times[mask])


def _find_json_rows(where: str, text: str) -> tuple[str, list[Any]]:
    """Return `votes` or `wins`, and the list under this key."""
    try:
        document = parse_json(text)
    except JsonFault as fault:
        raise SourceError(f"is not JSON ({fault})", where=where, line=fault.line, allowed="one JSON object") from None
    kinds = [name for name in ("votes", "wins") if isinstance(document, dict) and isinstance(document.get(name), list)]
    if not isinstance(document, dict) or len(kinds) != 1:
        raise _make_json_error(
            where, "has not one list of votes", document, 'an object with a list "votes" or "wins", not both'
        )
    return kinds[0], document[kinds[0]]


def _is_count(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and 0 <= value <= MAX_WINS and value == int(value)


def _make_json_error(where: str, problem: str, value: object, choices: str) -> SourceError:
    return SourceError(problem, where=where, arrived=json.dumps(value)[:_MAX_VALUE_LENGTH], allowed=choices)


def _require_every(path: Path, name: str, rows: Sequence[FileVote], values: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return a column that may be missing or empty only in all rows."""
    if not any(values):
        return None
    for row, value in zip(rows, values, strict=True):
        if not value:
            raise _make_source_error(path, row.line, f"{name} is not usable", "", "a value in every row, or in none")
    return tuple(values)


def vote_columns(where: str, sides: Sequence[tuple[str, str]], outcome: Codes, times: Floats, **fields: Any) -> VoteColumns:
    """Return columns of votes on pairs of names (left, right); `fields`: the optional fields."""
    players = tuple(sorted({name for pair in sides for name in pair}))
    place = {name: index for index, name in enumerate(players)}
    left, right = (np.array([place[pair[side]] for pair in sides], dtype=np.int64) for side in (0, 1))
    return VoteColumns(where, players, left, right, outcome, times, **fields)


def iterate_file_votes(path: Path) -> Iterator[FileVote]:
    """Yield the rows of a CSV of votes. Raises SourceError with file, line, found and allowed values."""
    confidences = [str(number) for number in range(1, MAX_CONFIDENT + 1)]
    for line, row in _iterate_csv_rows(path):
        for name in ("left", "right"):
            if not row[name]:
                raise _make_source_error(path, line, f"{name} is not usable", row[name], "the name of a player")
        if row["left"] == row["right"]:
            raise _make_source_error(path, line, "left and right are the same", row["left"], "two different players")
        if row["choice"] not in CHOICES:
            raise _make_source_error(path, line, "choice is not usable", row["choice"], CHOICES)
        confidence = row.get("confidence", "")
        if confidence and confidence not in confidences:
            raise _make_source_error(path, line, "confidence is not usable", confidence, [*confidences, "nothing"])
        choice: Choice = row["choice"]
        confidence_value = int(confidence) if confidence else None
        yield FileVote(
            line, row["left"], row["right"], choice, row.get("reviewer_id", ""), row.get("prompt_id", ""), confidence_value
        )


def _iterate_csv_rows(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield (line, cells by column) of each row that is not empty."""
    text = _read_text_file(path)
    before = csv.field_size_limit(LONGEST_VOTE_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = [name.strip() for name in next(reader, [])]
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise _make_source_error(
            path, reader.line_num, "is not CSV", str(error), "cells of a million characters at most"
        ) from error
    finally:
        csv.field_size_limit(before)
    for name in (*CSV_NEEDS, *OPTIONAL_CSV_COLUMNS):
        if head.count(name) > 1 or (name in CSV_NEEDS and name not in head):
            choices = f"one each of {', '.join(CSV_NEEDS)}; at most one each of {', '.join(OPTIONAL_CSV_COLUMNS)}"
            raise _make_source_error(
                path, 1, f"the column {name} {'is missing' if name not in head else 'occurs twice'}", ", ".join(head), choices
            )
    for line, row in rows:
        if len(row) != len(head):
            raise _make_source_error(path, line, "has another number of cells than the header", str(len(row)), str(len(head)))
        yield line, dict(zip(head, (replace_surrogates(cell.strip()) for cell in row), strict=True))


def iterate_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, object) of each line that is not blank. Raises SourceError for a line that is not a JSON object, or has a key twice."""
    for number, line in enumerate(_read_text_file(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except JsonFault as fault:
            raise _make_source_error(path, number, f"is not JSON ({fault})", line, "one object a line") from None
        if not isinstance(record, dict):
            raise _make_source_error(path, number, "is not a JSON object", line, "one object a line")
        yield number, record


def require_text(path: Path, line: int, values: Mapping[str, Any], name: str) -> str:
    """Return a text of an object, possibly empty. Raises SourceError if it is no text."""
    value = values.get(name)
    if not isinstance(value, str):
        text = "nothing" if name not in values else json.dumps(value)
        raise _make_source_error(path, line, f"no {name}", text, "a text")
    return replace_surrogates(value)


def require_id(path: Path, line: int, values: Mapping[str, Any], name: str) -> str:
    """Return an id of an object: a non-empty text, or an integer. Raises SourceError if it is neither."""
    value = values.get(name)
    if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
        raise _make_source_error(path, line, f"no {name}", json.dumps(value), "a text or a whole number")
    return replace_surrogates(str(value))


def _read_text_file(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SourceError("cannot be read", where=str(path), arrived=error.strerror, allowed="a file") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        byte = error.object[error.start : error.start + 1]
        raise SourceError("is not text", where=str(path), line=line, arrived=byte, allowed="UTF-8") from error


def _make_source_error(path: Path, line: int, problem: str, value: str, choices: Any) -> SourceError:
    text = f"{value[:_MAX_VALUE_LENGTH]}..." if len(value) > _MAX_VALUE_LENGTH else value
    return SourceError(problem, where=str(path), line=line, arrived=text, allowed=choices)

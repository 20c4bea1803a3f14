"""Files of votes that other tools wrote, read whole and checked: the first fault names its file and place, and nothing of the file is used.

- CSV with a header: `left, right, choice`, and where they are known `reviewer_id, confidence, prompt_id`; other columns are ignored.
- JSON `{"votes": [[left, right, choice], ...]}`, or `{"wins": [[winner, loser, count], ...]}`; other keys are ignored.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dtef_pipeline.errors import SourceError
from dtef_pipeline.preference.votes import CHOICES, MOST_CONFIDENT
from dtef_pipeline.text.counted import counted

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LONGEST_VOTE_CELL = 1_000_000
"""Characters in a cell of a CSV."""
MOST_WINS = 10**12
_NEEDED_COLUMNS = ("left", "right", "choice")
_PERHAPS_COLUMNS = ("reviewer_id", "confidence", "prompt_id")
_OUTCOMES = dict(zip(CHOICES, (1, -1, 0), strict=True))
_SHOWN_OF_VALUE = 80


@dataclass(frozen=True, slots=True)
class VoteColumns:
    """Votes as columns, one row per vote or per several equal ones; arrays of (rows,)."""

    where: str
    """The file, as errors name it."""
    players: tuple[str, ...]
    """In the order of their names."""
    left: Codes
    """Places in `players`."""
    right: Codes
    outcome: Codes
    """1: the left one is better, -1: the right one, 0: a tie."""
    times: Floats
    """Votes that the row stands for."""
    reviewer_ids: tuple[str, ...] | None = None
    """None: nobody says who voted."""
    confidence: Floats | None = None
    """1 to 5; None: it was not asked."""
    prompt_ids: tuple[str, ...] | None = None
    """None: nobody says what the responses answer."""

    @property
    def votes(self) -> int:
        return int(self.times.sum())


def read_votes(path: Path) -> VoteColumns:
    """The votes of a file, CSV or JSON by what it holds. Raises SourceError with the place of the first fault."""
    where = str(path)
    text = _text(path)
    return _of_json(text, where) if text.lstrip()[:1] in {"{", "["} else _of_csv(text, where)


def repeated_votes(columns: VoteColumns) -> int:
    """Votes of a reviewer on a pair that the reviewer has voted on before, on the same prompt; 0 where reviewers or prompts are not known."""
    if columns.reviewer_ids is None or columns.prompt_ids is None:
        return 0
    sides = (tuple(sorted(pair)) for pair in zip(columns.left.tolist(), columns.right.tolist(), strict=True))
    return columns.votes - len(set(zip(columns.reviewer_ids, columns.prompt_ids, sides, strict=True)))


def vote_columns(where: str, sides: Sequence[tuple[str, str]], outcome: Codes, times: Floats, **known: Any) -> VoteColumns:
    """Columns of votes on pairs of names (left, right); `known`: the fields that may be unknown."""
    players = tuple(sorted({name for pair in sides for name in pair}))
    place = {name: at for at, name in enumerate(players)}
    left, right = (np.array([place[pair[side]] for pair in sides], dtype=np.int64) for side in (0, 1))
    return VoteColumns(where, players, left, right, outcome, times, **known)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SourceError("cannot be read", where=str(path), arrived=error.strerror, allowed="a file of votes") from error
    except UnicodeDecodeError as error:
        found = error.object[error.start : error.start + 1]
        line = error.object[: error.start].count(b"\n") + 1
        raise SourceError("is no text", where=str(path), line=line, arrived=found, allowed="UTF-8") from error


def _of_csv(text: str, where: str) -> VoteColumns:
    header, lines, rows = _csv_rows(text, where)
    for name in _NEEDED_COLUMNS:
        if header.count(name) != 1:
            _refuse(where, 1, f"the column {name} stands {header.count(name)} times", header, "one each of left, right, choice")
    for name in _PERHAPS_COLUMNS:
        if header.count(name) > 1:
            _refuse(where, 1, f"the column {name} stands {header.count(name)} times", header, "one of each name, or none")
    columns = {name: [row[at].strip() for row in rows] for at, name in enumerate(header)}
    for name in ("left", "right"):
        _all(columns[name], lines, where, name, bool, "the name of a player")
    _all(columns["choice"], lines, where, "choice", _OUTCOMES.__contains__, ", ".join(CHOICES))
    sides = list(zip(columns["left"], columns["right"], strict=True))
    for pair, line in zip(sides, lines, strict=True):
        if pair[0] == pair[1]:
            _refuse(where, line, "left and right are the same", pair[0], "two different players")
    outcome = np.array([_OUTCOMES[choice] for choice in columns["choice"]], dtype=np.int64)
    return vote_columns(
        where,
        sides,
        outcome,
        np.ones(len(rows)),
        reviewer_ids=_names(columns, "reviewer_id", lines, where),
        confidence=_confidence(columns, lines, where),
        prompt_ids=_names(columns, "prompt_id", lines, where),
    )


def _csv_rows(text: str, where: str) -> tuple[list[str], list[int], list[list[str]]]:
    """(header, line of each row, rows), all rows as long as the header."""
    before = csv.field_size_limit(LONGEST_VOTE_CELL)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        header = [name.strip() for name in next(reader, [])]
        found = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        allowed = f"CSV with cells of at most {counted(LONGEST_VOTE_CELL, 'character')}"
        raise SourceError("is no CSV", where=where, line=reader.line_num, arrived=str(error), allowed=allowed) from error
    finally:
        csv.field_size_limit(before)
    for line, row in found:
        if len(row) != len(header):
            _refuse(where, line, "has another number of cells than the header", len(row), f"{len(header)}")
    return header, [line for line, _ in found], [row for _, row in found]


def _names(columns: dict[str, list[str]], name: str, lines: list[int], where: str) -> tuple[str, ...] | None:
    """A column that may be missing or empty throughout, but not here and there."""
    if not any(columns.get(name, ())):
        return None
    _all(columns[name], lines, where, name, bool, "a name in every row, or in none")
    return tuple(columns[name])


def _confidence(columns: dict[str, list[str]], lines: list[int], where: str) -> Floats | None:
    if not any(columns.get("confidence", ())):
        return None
    allowed = [str(number) for number in range(1, MOST_CONFIDENT + 1)]
    _all(
        columns["confidence"], lines, where, "confidence", allowed.__contains__, f"{', '.join(allowed)}, or empty in every row"
    )
    return np.array([float(value) for value in columns["confidence"]])


def _all(values: list[str], lines: list[int], where: str, name: str, fits: Any, allowed: str) -> None:
    for value, line in zip(values, lines, strict=True):
        if not fits(value):
            _refuse(where, line, f"{name} is not usable", value, allowed)


def _of_json(text: str, where: str) -> VoteColumns:
    try:
        document = json.loads(text, object_pairs_hook=_once)
    except _DoubledKey as error:
        _refuse(where, _line_of_second(text, str(error)), "has a key twice", str(error), "each key once in an object")
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        reason = "brackets too deep" if isinstance(error, RecursionError) else str(error)
        raise SourceError("is no JSON", where=where, line=line, arrived=reason, allowed="one JSON object") from error
    kinds = [name for name in ("votes", "wins") if isinstance(document, dict) and name in document]
    if len(kinds) != 1:
        arrived = ", ".join(document) if isinstance(document, dict) else type(document).__name__
        _refuse(where, None, "has not one list of votes", arrived, 'an object with "votes" or "wins", not both')
    rows = document[kinds[0]]
    if not isinstance(rows, list):
        _refuse(where, None, f"{kinds[0]} is no list", rows, "a list of lists")
    return _json_votes(rows, where) if kinds == ["votes"] else _json_wins(rows, where)


class _DoubledKey(Exception):
    """An object has this key twice, so that the votes under one of the two would be lost."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _DoubledKey(key)
        found[key] = value
    return found


def _line_of_second(text: str, key: str) -> int | None:
    """The line in which a key stands for the second time; None where it is not spelled alike, or stands elsewhere too."""
    found = [match.start() for match in re.finditer(f"{re.escape(json.dumps(key, ensure_ascii=False))}\\s*:", text)]
    return text.count("\n", 0, found[1]) + 1 if len(found) == 2 else None


def _json_votes(rows: list[Any], where: str) -> VoteColumns:
    for at, row in enumerate(rows):
        _check_names(row, f"votes[{at}]", where, "[left, right, choice]")
        if not isinstance(row[2], str) or row[2] not in _OUTCOMES:
            _refuse(where, None, f"votes[{at}]: the choice is not usable", row[2], ", ".join(CHOICES))
    outcome = np.array([_OUTCOMES[row[2]] for row in rows], dtype=np.int64)
    return vote_columns(where, [(row[0].strip(), row[1].strip()) for row in rows], outcome, np.ones(len(rows)))


def _json_wins(rows: list[Any], where: str) -> VoteColumns:
    for at, row in enumerate(rows):
        _check_names(row, f"wins[{at}]", where, "[winner, loser, count]")
        is_number = isinstance(row[2], (int, float)) and not isinstance(row[2], bool)
        if not is_number or not 0 <= row[2] <= MOST_WINS or row[2] != int(row[2]):
            _refuse(where, None, f"wins[{at}]: the count is not usable", row[2], f"a whole number from 0 to {MOST_WINS}")
    times = np.array([float(row[2]) for row in rows])
    sides = [(row[0].strip(), row[1].strip()) for row in rows]
    found = vote_columns(where, sides, np.ones(len(rows), dtype=np.int64), times)
    happened = times > 0
    return VoteColumns(
        where, found.players, found.left[happened], found.right[happened], found.outcome[happened], times[happened]
    )


def _check_names(row: Any, place: str, where: str, allowed: str) -> None:
    if not isinstance(row, list) or len(row) != 3:
        _refuse(where, None, f"{place} is not usable", row, allowed)
    for name in row[:2]:
        if not isinstance(name, str) or not name.strip() or not _is_text(name):
            _refuse(where, None, f"{place}: no name of a player", name, "a text that is not empty")
    if row[0].strip() == row[1].strip():
        _refuse(where, None, f"{place}: both players are the same", row[0], "two different players")


def _is_text(name: str) -> bool:
    """Half of a surrogate pair is none: no file or terminal takes it."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _refuse(where: str, line: int | None, problem: str, arrived: Any, allowed: str) -> NoReturn:
    shown = arrived if isinstance(arrived, str) else json.dumps(arrived, ensure_ascii=True, default=str)
    cut = f"{shown[:_SHOWN_OF_VALUE]}..." if len(shown) > _SHOWN_OF_VALUE else shown
    raise SourceError(problem, where=where, line=line, arrived=cut, allowed=allowed)

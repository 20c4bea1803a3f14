"""Text files of survey tools: CSV rows with their lines, and errors that locate invalid UTF-8."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.attributes import clean
from dtef_pipeline.survey.validation import require_columns
from dtef_pipeline.text.number_words import format_count


def iterate_text_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of a CSV file in UTF-8, or of a tab-separated `.tsv` file. The line is where the row ends.

    Raises SurveyError, with the line, if the file is not UTF-8 or not CSV, or if a quotation mark is not closed.
    """
    lines_of_row: list[str] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(_record(file, lines_of_row), delimiter=choose_separator(path))
            for row in reader:
                _require_closed_quote(lines_of_row, path, reader.line_num)
                lines_of_row.clear()
                if any(cell.strip() for cell in row):
                    yield reader.line_num, row
    except UnicodeDecodeError:
        raise make_utf8_error(path, "a CSV file") from None
    except csv.Error as error:
        _require_closed_quote(lines_of_row, path, reader.line_num)
        raise SurveyError("not a CSV file in UTF-8", where=str(path), line=reader.line_num, arrived=str(error)) from error


def _record(lines: Iterable[str], recorded: list[str]) -> Iterator[str]:
    for line in lines:
        recorded.append(line)
        yield line


def _require_closed_quote(lines: Sequence[str], path: Path, last: int) -> None:
    """Raise SurveyError if a row over several lines, of which `last` is the last, has an odd number of quotation marks."""
    if len(lines) > 1 and "".join(lines).count('"') % 2:
        raise SurveyError(
            "a quotation mark in this line is not closed",
            where=str(path),
            line=last - len(lines) + 1,
            allowed='two around a cell, and "" for one inside it',
        )


def open_table(
    path: Path, names: Sequence[str], clean_name: Callable[[str], str] = clean
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Return the cleaned column names, which must include `names`, and an iterator over the rows, which must be as long as the header."""
    rows = iterate_text_rows(path)
    _, header = next(rows, (0, []))
    if not header:
        raise SurveyError("the file is empty", where=str(path), allowed=f"columns {', '.join(names)}")
    require_separator(header, path)
    columns = list(map(clean_name, header))
    require_columns(columns, names, where=str(path))
    return columns, _iterate_full_rows(rows, len(columns), str(path))


def _iterate_full_rows(rows: Iterator[tuple[int, list[str]]], width: int, where: str) -> Iterator[tuple[int, list[str]]]:
    for line, row in rows:
        if len(row) != width:
            problem, requirement = "the row and the header differ in length", f"{format_count(width, 'cell')}, as in the header"
            raise SurveyError(problem, where=where, line=line, arrived=len(row), allowed=requirement)
        yield line, row


def read_csv_header(path: Path) -> list[str]:
    """Return the first row of a CSV file, even if it is not UTF-8. Raises SurveyError if it is not CSV."""
    with path.open(encoding="utf-8-sig", newline="", errors="replace") as file:
        try:
            return next(csv.reader(file, delimiter=choose_separator(path)), [])
        except csv.Error as error:
            raise SurveyError("not a readable table", where=str(path), arrived=str(error)) from error


def make_utf8_error(path: Path, kind: str) -> SurveyError:
    """Return the error of a file that is not `kind` in UTF-8, with the line and position (from 1) of its first invalid byte."""
    problem, before = f"not {kind} in UTF-8", 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                actual = f"byte 0x{line[error.start]:02x} at byte {before + error.start + 1:,} of the file"
                return SurveyError(problem, where=str(path), line=number, arrived=actual, allowed=_UTF8)
            before += len(line)
    return SurveyError(problem, where=str(path), allowed=_UTF8)


def choose_separator(path: Path) -> str:
    """Return the separator implied by the file's name: a tab for `.tsv`, else a comma."""
    return "\t" if path.suffix.lower() == ".tsv" else ","


def detect_other_separator(header: Sequence[str], path: Path) -> str | None:
    """Return the separator of the column names if it differs from the one that the file's name implies, else None."""
    separators = (sep for sep in _SEPARATORS if sep != choose_separator(path))
    return next((sep for sep in separators if len(header) == 1 and header[0].count(sep) > 1), None)


def require_separator(header: Sequence[str], path: Path) -> None:
    """Raise SurveyError if the columns are not separated by commas, or by tabs in a `.tsv` file."""
    if separator := detect_other_separator(header, path):
        expected = _SEPARATORS[choose_separator(path)]
        requirement = f"{expected} between columns, and a point in numbers such as 12.5"
        if separator == "\t":
            requirement += "; or name the file .tsv"
        problem = f"columns are separated by {_SEPARATORS[separator]}"
        raise SurveyError(problem, where=str(path), line=1, arrived=header[0][:120], allowed=requirement)


_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
_UTF8 = "UTF-8 (in a spreadsheet: save as CSV UTF-8)"

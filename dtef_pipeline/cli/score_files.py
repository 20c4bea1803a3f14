"""`dtef score`: score answers in a file by line."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import click

from dtef_pipeline.errors import DtefError
from dtef_pipeline.text.number_words import format_count


def score_file(family: str, file: Path, tasks: Path | None) -> int:
    """Score a file. Returns 1 for a malformed line of a survey's responses."""
    with click.open_file(str(file), encoding="utf-8-sig", errors="replace") as lines:
        where = "<stdin>" if str(file) == "-" else str(file)
        if family == "survey":
            return _score_responses(_require_objects(lines, where))
        _score_answers(lines, where, tasks)
    return 0


def _require_objects(lines: Iterable[str], where: str) -> Iterator[str]:
    """Yield the lines. Raises DtefError if the first one with text is not the beginning of an object: a CSV file has no good line."""
    is_first = True
    for line in lines:
        if is_first and line.strip():
            is_first = False
            if not line.lstrip().startswith("{"):
                raise DtefError(f"{where} is not JSON Lines; write one object per line, as `dtef score --help` shows")
        yield line


def _score_responses(lines: Iterator[str]) -> int:
    from dtef_pipeline.survey.scoring.score import score_lines

    n_malformed = 0
    for line in score_lines(lines):
        click.echo(line.text)
        n_malformed += line.malformed
    return 1 if n_malformed else 0


def _score_answers(file: IO[str], where: str, tasks: Path | None) -> None:
    from dtef_pipeline.cli.qa.qa_scoring import build_outside_scorers
    from dtef_pipeline.qa.scorers import describe_unknown_scorers, read_answer_lines, score_answer_lines

    stream = sys.stdout
    outside = build_outside_scorers(tasks)
    lines = read_answer_lines(file, where, outside)
    if not lines:
        click.echo(f"{where}: nothing to score", err=True)
    statuses: Counter[str] = Counter()
    for line in score_answer_lines(lines, statuses):
        stream.write(f"{line}\n")  # click.echo would flush each line
    stream.flush()
    if unknown := describe_unknown_scorers(lines, outside):
        click.echo(unknown, err=True)
    if not_run := statuses["sandbox_unavailable"]:
        click.echo(f"no sandbox: {format_count(not_run, 'program')} not run and not scored; `dtef doctor` says why", err=True)

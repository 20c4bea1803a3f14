"""The command `dtef score-answers`. The scorers are imported inside it, as in `dtef.py`."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TextIO

import click

from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.text.counted import counted


@click.command("score-answers", short_help="Score answers to questions in a file of JSON lines.")
@click.argument("file", type=click.File("r", encoding="utf-8-sig", errors="replace"))
@click.option(
    "--tasks",
    type=click.Path(exists=True, path_type=Path),
    help="File of programs to write in the layout of HumanEval, which lines of code_execution name by `task`.",
)
@reports_errors
def score_answers(file: TextIO, tasks: Path | None) -> None:
    """Score the answers in FILE, which has one JSON object per line; FILE may be - for standard input.

    \b
    In:  {"scorer": "list_one", "response": "They came by car.",
          "reference": {"car": 1, "bicycle": 0.5}}
         and, where wanted, options, synonyms, senses (first, all), penalty,
         strict, finish_reason, timeout_s, task; other keys are handed on
    Out: the same line with status, value (null unless ok), score (as published),
         how (the rule that read the answer), flags, reason, and what the scorer
         tells beside them, such as raw, binary, rationale, found

    A scorer is named by itself or by a type of questions: yes_no (Yes/No), list_one (ListOne), list_many (ListMany), pick_one (PickOne),
    pick_many (PickMany), yes_no_rationale (Yes/No with Rationale); exact_choice (a letter), numeric (a number); code_execution, with
    `task`, the name of a program in the file of --tasks, or with a reference of prompt, entry_point and test, whose status is the verdict;
    verbatim, with context and citations. An answer of a type that nothing scores has the status no_scorer, and a line at the end counts these.

    \b
    Exit code: 0 done; 2 a line is not usable: nothing was scored, and the message names it.
    """
    from dtef_pipeline.cli.outside_scorers import outside_scorers
    from dtef_pipeline.qa.score_lines import read_answer_lines, scored_answer_lines, unknown_scorers

    where = getattr(file, "name", "<stdin>")  # a pipe into this very process has none
    out = sys.stdout
    outside = outside_scorers(tasks)
    lines = read_answer_lines(file, where, outside)
    if not lines:
        click.echo(f"{where}: nothing to score", err=True)
    statuses: Counter[str] = Counter()
    for line in scored_answer_lines(lines, statuses):
        out.write(f"{line}\n")  # click.echo would send each line on its way alone
    out.flush()
    if unknown := unknown_scorers(lines, outside):
        click.echo(unknown, err=True)
    if not_run := statuses["sandbox_unavailable"]:
        click.echo(f"no sandbox: {counted(not_run, 'program')} not run, and without a score; `dtef doctor` says why", err=True)

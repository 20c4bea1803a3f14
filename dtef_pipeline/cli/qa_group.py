"""The commands below `dtef qa`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.options import of_estimate, options, starts_from, writes_a_table
from dtef_pipeline.cli.qa_anchors_group import anchors
from dtef_pipeline.cli.qa_board_group import board
from dtef_pipeline.cli.qa_options import (
    of_answering,
    of_arbiter,
    of_condition,
    of_named_part,
    of_parts,
    of_qa_budgets,
    of_qa_roll_ups,
)
from dtef_pipeline.cli.qa_socioscope_group import socioscope
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.run_options import of_asked_snapshot, refuse_estimate_of_judging

_of_files = options(
    click.argument("suite"),
    click.argument("path", type=click.Path(exists=True, path_type=Path)),
    click.option(
        "--corpus",
        type=click.Path(exists=True, path_type=Path),
        help="Documents that the questions are about: a JSON file of them, or a folder with interviews/*.csv and metadata.csv.",
    ),
    click.option(
        "--suites",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="YAML file with suites of your own, in the form of the shipped data/suites.yaml.",
    ),
)


@click.group(short_help="Ask questions with expected answers, and score replies.")
def qa() -> None:
    """Work with questions that have expected answers: MMLU, GSM8K, HumanEval, questions about interviews, and sets of your own.

    \b
        dtef qa check SUITE PATH      say what is wrong with a file of questions
        dtef qa add SUITE PATH        make it known
        dtef qa list                  list what is known
        dtef qa run --estimate        say what a run would ask and cost
        dtef qa run --model MODEL     ask models, judge and score what they answer
        dtef qa board                 show who does best
        dtef report --family qa       write the results as HTML pages
        dtef qa remove PART           take a part and its results away
    """


@qa.command(short_help="Say what files hold, and what is wrong with them.")
@_of_files
@click.option("--json", "as_json", is_flag=True, help="Write what was found as one JSON object.")
@reports_errors
def check(suite: str, path: Path, corpus: Path | None, suites: Path | None, as_json: bool) -> None:
    """Read the questions of a suite at PATH, and say what was found: a line per finding with file, line, item and what is allowed; of
    findings that differ in their rows alone the first five and how many more there are.

    SUITE is mmlu, gsm8k, humaneval, socioscope, or one of the file that --suites names. Nothing is asked, nothing is written.

    \b
    Exit code: 0 no errors; 1 a row would be left out; 2 the options need mending.
    """
    from dtef_pipeline.cli import qa_add

    sys.exit(qa_add.check(suite, path, corpus, suites, as_json))


@qa.command(short_help="Make questions known, so that they can be asked.")
@_of_files
@click.option(
    "--strict", is_flag=True, help="Add nothing where a row is not usable. [default: such rows are left out and named]"
)
@of_named_part
@reports_errors
def add(**given: Any) -> None:
    """Make the questions of a suite at PATH known to the pipeline: a partition per part (a subject, or a file). Nothing is asked.

    SUITE is mmlu, gsm8k, humaneval, socioscope, or one of the file that --suites names. Rows that are not usable are named and left out.
    Added again, a changed file takes the place of the earlier one. A file of another place does not where items would be lost: give it another
    name (--part), or say that it takes the place (--replace).

    \b
    Exit code: 0 done; 1 a part could not be read; 2 nothing was changed.
    """
    from dtef_pipeline.cli import qa_add

    sys.exit(qa_add.add(**given))


@qa.command("list", short_help="List the questions that are known, by part.")
@writes_a_table
@reports_errors
def list_parts(output: str) -> None:
    """List suites and parts: items by type, rows that were left out, examples, documents, and since when a suite is public."""
    from dtef_pipeline.cli import qa_add

    qa_add.list_parts(output)


@qa.command(short_help="Take parts and their results away.")
@click.argument("parts", metavar="PART...", nargs=-1, required=True)
@reports_errors
def remove(parts: tuple[str, ...]) -> None:
    """Take parts away: their partitions and their rows in all tables. Boards and pages follow at the next
    `dtef rollup --family qa`; where nothing is scored any more, they go at once.

    PART is SUITE/PART, or a pattern such as 'mmlu/*'. Files stay, and so do stored responses and judgements: a part that is added and run again
    finds them.

    \b
    Exit code: 0 done; 2 a name fits no part, and nothing was changed.
    """
    from dtef_pipeline.cli import qa_add

    qa_add.remove(parts)


@qa.command(short_help="Ask models, judge and score what they answer.")
@of_parts
@of_answering
@of_condition
@of_arbiter
@of_asked_snapshot
@of_qa_budgets
@starts_from("ingest", "ask", "judge")
@of_qa_roll_ups
@of_estimate
@reports_errors
def run(is_estimate: bool, output: str, **given: Any) -> None:
    """Ask models the questions of parts, have their responses judged, run and scored; then update the boards.

    Responses and judgements that are stored already are used again, and only the missing ones are asked for. When a budget is reached,
    finished work is kept; give the command again to ask for the rest. With --from judge the stored responses of the snapshot are judged and
    scored again, as with another judge or stricter scoring.

    The section `qa` of the panel file, which DTEF_PANEL names, says how answers are judged, run and scored, here as at night: few_shot_as,
    sample_rate, daily_budget, allow_unpriced, sandbox, timeout_s, strict, penalty and senses.

    With --estimate, responses that are stored are replayed, and those that a judge scores are counted with the very judgements that a run would
    send. Of what is not there yet the number is known, and the length is estimated: by the mean of earlier responses of the model, else 400
    tokens per response and 120 per judgement; less where its request has room for less. The usual cost leaves out that a judge may be asked
    once more; the highest cost does not.

    \b
    Exit code: 0 done; 1 a part failed, or a file was left out; 2 the options or the set-up need mending; 130 interrupted.
    """
    from dtef_pipeline.cli import qa_estimate, qa_run

    options = qa_run.with_switches(**given)
    if is_estimate:
        refuse_estimate_of_judging(options.first)
        qa_estimate.estimate(options, output)
    else:
        sys.exit(qa_run.run(options))


qa.add_command(board)
qa.add_command(anchors)
qa.add_command(socioscope)

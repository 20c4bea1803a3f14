"""The commands below `dtef qa`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.options import (
    anchors_asked,
    boards_by,
    budgets_with_roles,
    of_anchors_shown,
    of_asked_snapshot,
    of_estimate,
    of_served,
    options,
    refuse_estimate_of_judging,
    snapshot_or_base,
    starts_from,
    writes_a_table,
)
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.settings_options import settings_options, split_given
from dtef_pipeline.qa.result_views import QA_VIEW_BY_NAME, QA_VIEWS_SHOWN
from dtef_pipeline.qa.settings import QaSettings

_PART_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _part_name(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    if name is not None and not _PART_NAME.fullmatch(name):
        raise click.BadParameter(f"got {name!r}; allowed: up to 64 letters, digits, dots, hyphens and underscores")
    return name


of_named_part = options(
    click.option(
        "--part",
        callback=_part_name,
        metavar="NAME",
        help="Name of the part in the pipeline, for questions about interviews.  [default: the file's name, less its ending]",
    ),
    click.option(
        "--replace", is_flag=True, help="Take the place of a part that comes from another place, with all that is scored of it."
    ),
)


def documented_models(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of models, `provider:name` among them, as this project has them."""
    if not any(":" in name for name in names):
        return names
    from dtef_pipeline.cli.models import as_known

    return as_known(names)


of_run = settings_options(QaSettings, models=documented_models)
of_retrieval = settings_options(QaSettings, ("k", "retriever", "filter", "judges", "judge", "rejudge"))
of_qa_budgets = budgets_with_roles("candidate", "judge", "embedder")
of_qa_roll_ups = boards_by("qa")


@click.command(short_help="Show the judge stored answers once more.")
@anchors_asked(50, "Number of judged answers.")
@settings_options(QaSettings, ("judges", "judge"))
@of_qa_budgets
@of_anchors_shown
@writes_a_table
@reports_errors
def anchors(show: bool, output: str, **given: Any) -> None:
    """Have the judge judge the same stored answers again, night after night: whatever moves is the judge, not the models.

    Anchors are chosen once, spread over the scores, and stay. What was asked in a snapshot is not asked again in it. No model under test is
    asked.

    \b
    Exit code: 0 done; 1 it failed; 2 the options or the set-up need mending; 130 interrupted.
    """
    from dtef_pipeline.cli import anchors

    if show:
        anchors.show("qa", output)
    else:
        sys.exit(anchors.run("qa", given))


@click.command(short_help="Rank models by suite, compare them, and test the scores.", epilog=QA_VIEWS_SHOWN)
@click.option(
    "--by",
    type=click.Choice(list(QA_VIEW_BY_NAME)),
    default="overall",
    show_default=True,
    help="What to show; each choice is explained below.",
)
@click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="SUITE|PATTERN",
    help="Only this suite, such as mmlu, or those that fit; may be repeated.  [default: all]",
)
@of_served
@writes_a_table
@reports_errors
def board(**given: Any) -> None:
    """Rank models by their mean score with 95 % intervals, over the latest snapshot of each part; or compare them, or test the scores.

    What was asked in another way, or measured by something else, stands on a board of its own. Whole subjects or transcripts are what is
    independent, and at least 5 are needed; within one, and where items have none, it is items.
    """
    from dtef_pipeline.cli import qa_board

    qa_board.show(**given)


@click.command(short_help="Score answers about interviews, and check quotations.")
@click.argument("questions", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("corpus", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--model",
    "models",
    multiple=True,
    callback=documented_models,
    help="Model to ask, as `dtef qa run` takes it; may be repeated.  [default: score what the file holds]",
)
@snapshot_or_base("Label to store responses under.")
@of_retrieval
@of_named_part
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder to write to.  [default: the current one]",
)
@reports_errors
def socioscope(
    questions: Path, corpus: Path, out: Path, models: tuple[str, ...], part: str | None, replace: bool, **given: Any
) -> None:
    """Score the answers in QUESTIONS, or what models answer, and check that every quotation stands in CORPUS; write the results to a file.

    QUESTIONS is a JSON file with `qa_pairs`; CORPUS is a JSON file of documents, or a folder with interviews/*.csv and metadata.csv. The results
    are `results-TIME.json` and two bar charts by interview, of scores and of quotations found, for each model of
    their own (`results-TIME-MODEL.json`); both averages are printed. No file is replaced. A judge reads the answers of models to one kind
    of question alone: those of the type `Yes/No with Rationale` whose metric says {"judge": true}. Answers in the file are scored without one.
    Without --model nobody is asked, and of the options only --part and --out are allowed.

    \b
    Exit code: 0 done; 1 a question was left out, or asking failed; 2 the options or the set-up need mending.
    """
    from dtef_pipeline.cli import qa_run, qa_socioscope

    options = qa_run.with_panel(split_given({"models": models, **given})[0])
    sys.exit(qa_socioscope.socioscope(qa_socioscope.Documented(questions, corpus, out, part, replace), options))


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
def check(**given: Any) -> None:
    """Read the questions of a suite at PATH, and say what was found: a line per finding with file, line, item and what is allowed; of
    findings that differ in their rows alone the first five and how many more there are.

    SUITE is mmlu, gsm8k, humaneval, socioscope, or one of the file that --suites names. Nothing is asked, nothing is written.

    \b
    Exit code: 0 no errors; 1 a row would be left out; 2 the options need mending.
    """
    from dtef_pipeline.cli import qa_files

    sys.exit(qa_files.check(**given))


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
    from dtef_pipeline.cli import qa_files

    sys.exit(qa_files.add(**given))


@qa.command("list", short_help="List the questions that are known, by part.")
@writes_a_table
@reports_errors
def list_parts(output: str) -> None:
    """List suites and parts: items by type, rows that were left out, examples, documents, and since when a suite is public."""
    from dtef_pipeline.cli import qa_files

    qa_files.list_parts(output)


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
    from dtef_pipeline.cli import qa_files

    qa_files.remove(parts)


@qa.command(short_help="Ask models, judge and score what they answer.")
@of_run
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
    from dtef_pipeline.cli import qa_run

    settings, beside = split_given(given)
    options = qa_run.with_panel(settings)
    if is_estimate:
        refuse_estimate_of_judging(beside.first)
        qa_run.estimate(options, beside, output)
    else:
        sys.exit(qa_run.run(options, beside))


qa.add_command(board)
qa.add_command(anchors)
qa.add_command(socioscope)

"""The commands below `dtef qa`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from dtef_pipeline.cli.options import existing_path, flag, of_served, options, several
from dtef_pipeline.cli.verbs import FamilyWords, Verb, build_family_group, run_command
from dtef_pipeline.qa.result_views import QA_VIEWS

_PART_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _check_part_name(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    if name is not None and not _PART_NAME.fullmatch(name):
        raise click.BadParameter(f"got {name!r}; allowed: up to 64 letters, digits, dots, hyphens and underscores")
    return name


of_named_part = options(
    click.option(
        "--part",
        callback=_check_part_name,
        metavar="NAME",
        help="Name of the part in the pipeline, for questions about interviews.  [default: the file's name, less its ending]",
    ),
    flag("--replace", help="Take the place of a part that comes from another place, with all that is scored of it."),
)


def resolve_documented_models(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of models, `provider:name` among them, as this project has them."""
    if not any(":" in name for name in names):
        return names
    from dtef_pipeline.cli.models import resolve_model_names

    return resolve_model_names(names)


_QUESTION_FILES = (
    click.argument("suite"),
    click.argument("path", type=click.Path(exists=True, path_type=Path)),
    existing_path(
        "--corpus",
        help="Documents that the questions are about: a JSON file of them, or a folder with interviews/*.csv and metadata.csv.",
    ),
    existing_path(
        "--suites", kind="file", help="YAML file with suites of your own, in the form of the shipped data/suites.yaml."
    ),
)


run = run_command(
    "qa",
    "dtef_pipeline.qa.settings.QaSettings",
    Verb(
        "Ask models, judge and score what they answer.",
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
    """,
    ),
    roles=("candidate", "judge", "embedder"),
    starts=("ingest", "ask", "judge"),
    callbacks={"models": resolve_documented_models},
)


QA = FamilyWords(
    name="qa",
    short="Ask questions with expected answers, and score replies.",
    help="""Work with questions that have expected answers: MMLU, GSM8K, HumanEval, questions about interviews, and sets of your own.

    \b
        dtef qa check SUITE PATH      say what is wrong with a file of questions
        dtef qa add SUITE PATH        make it known
        dtef qa list                  list what is known
        dtef qa run --estimate        say what a run would ask and cost
        dtef qa run --model MODEL     ask models, judge and score what they answer
        dtef qa board                 show who does best
        dtef report                   write the results of all families as a site
        dtef qa remove PART           take a part and its results away
    """,
    part="part",
    pattern="SUITE/PART, or a pattern such as 'mmlu/*'",
    check=Verb(
        "Say what files hold, and what is wrong with them.",
        """Read the questions of a suite at PATH, and say what was found: a line per finding with file, line, item and what is allowed; of
    findings that differ in their rows alone the first five and how many more there are.

    SUITE is mmlu, gsm8k, humaneval, socioscope, or one of the file that --suites names. Nothing is asked, nothing is written.

    \b
    Exit code: 0 no errors; 1 a row would be left out; 2 the options need mending.
    """,
        _QUESTION_FILES,
    ),
    add=Verb(
        "Make questions known, so that they can be asked.",
        """Make the questions of a suite at PATH known to the pipeline: a partition per part (a subject, or a file). Nothing is asked.

    SUITE is mmlu, gsm8k, humaneval, socioscope, or one of the file that --suites names. Rows that are not usable are named and left out.
    Added again, a changed file takes the place of the earlier one. A file of another place does not where items would be lost: give it another
    name (--part), or say that it takes the place (--replace).

    \b
    Exit code: 0 done; 1 a part could not be read; 2 nothing was changed.
    """,
        (
            *_QUESTION_FILES,
            flag("--strict", help="Add nothing where a row is not usable. [default: such rows are left out and named]"),
            of_named_part,
        ),
    ),
    list=Verb(
        "List the questions that are known, by part.",
        "List suites and parts: items by type, rows that were left out, examples, documents, and since when a suite is public.",
    ),
    board=Verb(
        "Rank models by suite, compare them, and test the scores.",
        """Rank models by their mean score with 95 % intervals, over the latest snapshot of each part; or compare them, or test the scores.

    What was asked in another way, or measured by something else, stands on a board of its own. Whole subjects or transcripts are what is
    independent, and at least 5 are needed; within one, and where items have none, it is items.
    """,
        (
            several(
                "--suite",
                "parts",
                metavar="SUITE|PATTERN",
                help="Only this suite, such as mmlu, or those that fit",
                usual="all",
            ),
            of_served,
        ),
    ),
    run=run,
    views=QA_VIEWS,
)
qa = build_family_group(QA)

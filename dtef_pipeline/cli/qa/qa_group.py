"""The commands below `dtef qa`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from dtef_pipeline.cli.options import existing_path, flag, options, several
from dtef_pipeline.cli.verbs import FamilyWords, Verb, build_family_group, run_command
from dtef_pipeline.qa.qa_boards import QA_BOARDS

_PART_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _check_part_name(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    if name is not None and not _PART_NAME.fullmatch(name):
        raise click.BadParameter(f"got {name!r}; allowed: up to 64 letters, digits, dots, hyphens and underscores")
    return name


part_option = options(
    click.option(
        "--part",
        callback=_check_part_name,
        metavar="NAME",
        help="Name of the part in the pipeline, for questions about interviews.  [default: the file's name, less its ending]",
    ),
    flag("--replace", help="Replace a part that was added from another path."),
)


def resolve_documented_models(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return model names, including `provider:name`, in this project's spelling."""
    if not any(":" in name for name in names):
        return names
    from dtef_pipeline.cli.qa.qa_run import resolve_model_names

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
    "part",
    "dtef_pipeline.qa.settings.QaSettings",
    Verb(
        "Ask models, and judge and score their answers.",
        """Ask models the questions of suites, have answers judged and programs run, and score them; then update the boards.

    With --from judge the stored responses of the snapshot are judged and scored again, for example with another judge or stricter scoring.

    The section `qa` of the panel file, which DTEF_PANEL names, sets how answers are judged, run and scored, as in nightly runs: few_shot_as,
    sample_rate, daily_budget, allow_unpriced, sandbox, timeout_s, strict, penalty and wordnet_senses.

    --estimate replays stored responses, and counts their judgements as a run would send them. The length of missing responses is estimated: the
    mean of the model's stored responses, else 400 tokens per response and 120 per judgement, or less if the request allows less. The highest
    cost includes a second request to each judge; the usual cost does not.
    """,
    ),
    roles=("candidate", "judge", "embedder"),
    starts=("ingest", "ask", "judge"),
    callbacks={"models": resolve_documented_models},
)


QA = FamilyWords(
    name="qa",
    short="Ask questions with expected answers, and score the responses.",
    help="Work with questions that have expected answers: MMLU, GSM8K, HumanEval, questions about interviews, and sets of your own.",
    part="part",
    pattern="SUITE/PART, or a pattern such as 'mmlu/*'",
    check=Verb(
        "Check files and report their faults.",
        """Read the questions of a suite at PATH and report faults: a line per finding with file, line, item and what is allowed. If findings
    differ only in their rows, the first five are listed and the others counted.

    SUITE is mmlu, gsm8k, humaneval, socioscope, or one of the file that --suites names. Makes no calls and writes nothing.
    """,
        _QUESTION_FILES,
    ),
    add=Verb(
        "Add questions to the pipeline.",
        """Add the questions of a suite at PATH to the pipeline: a partition per part (a subject, or a file). Makes no calls.

    SUITE is mmlu, gsm8k, humaneval, socioscope, or one of the file that --suites names. Rows that are not usable are listed and left out.
    Added again, a changed file replaces the earlier one. If a part was added from another path with other contents, give it another name
    (--part), or replace the earlier one (--replace).
    """,
        (
            *_QUESTION_FILES,
            flag("--strict", help="Add nothing if a row is not usable.  [default: leave such rows out and list them]"),
            part_option,
        ),
    ),
    list=Verb(
        "List the questions that are known, by part.",
        "List suites and parts: items by type, rows that were left out, examples, documents, and since when a suite is public.",
    ),
    board=Verb(
        "Rank models by suite, compare them, and test the scores.",
        """Rank models by their mean score with 95 % intervals, over the latest snapshot of each part; or compare them, or test the scores.

    Each condition and each metric has a board of its own. Intervals go by whole subjects or transcripts, of which at least 5 are needed;
    within one subject, and for items without one, they go by items.
    """,
        (
            several(
                "--suite",
                "parts",
                metavar="SUITE|PATTERN",
                help="Only this suite, such as mmlu, or those that fit",
                usual="all",
            ),
        ),
    ),
    run=run,
    boards=QA_BOARDS,
)
qa = build_family_group(QA)

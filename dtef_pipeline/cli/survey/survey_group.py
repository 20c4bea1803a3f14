"""The commands of surveys, which need no family name. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

from pathlib import Path

import click

from dtef_pipeline.cli.options import choice, flag, metric_option, rounds_option, several, targets_option, whole_number
from dtef_pipeline.cli.verbs import FamilyWords, Verb, build_family_group, run_command
from dtef_pipeline.survey.boards.survey_boards import BOARDS

_A_SURVEY = (
    click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)),
    click.option(
        "--round",
        "round_id",
        help="Id to store the round under; of a long table, the round to read.  [default: the folder's name, the survey's id in the "
        "file, or all rounds of the table]",
    ),
    whole_number(
        "--min-n", floor=1, help="Minimum number of respondents of a segment and of each distribution.  [default: 10]"
    ),
    click.option(
        "--design-effect",
        type=click.FloatRange(min=1, max=50),
        help="Design effect of a weighted or clustered survey: sample size divided by the effective sample size.  "
        "[default: that of the last ingest of the round, else 1]",
    ),
    flag(
        "--allow-missing-questions",
        help="Read the folder even if questions or options are missing from one of its files, which may be truncated.",
    ),
    flag(
        "--allow-missing-attributes", help="Leave out attributes of the guide or the counts file that have no segment column."
    ),
    flag("--replace", help="Store the round even if it now has fewer segments, questions or pairs than the stored version."),
)


def _convert_to_upper(context: click.Context, parameter: click.Parameter, rounds: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.upper() for name in rounds)


def _split_levels(context: click.Context, parameter: click.Parameter, levels: tuple[str, ...]) -> tuple[str, ...]:
    """Split levels given together, such as 0,5."""
    return tuple(level for text in levels for level in text.replace(",", " ").split())


run = run_command(
    "survey",
    "partition",
    "dtef_pipeline.survey.settings.SurveySettings",
    Verb(
        "Ask models about a round and score their predictions.",
        """Ask models about a round, score their predictions and look for drift; then update the roll-ups.

    Roll-ups are the tables over all rounds, such as the leaderboard, and the report. A new --snapshot requests all again. A budget counts from
    zero at each start. `dtef explain survey` explains the columns of the board.

    With --estimate the tokens of prompts are estimated on the high side. For responses there are two numbers: the usual length (the mean of
    stored responses, if any) and the maximum that the models' max_tokens allow. If the price of a model is not known, its cost is `unknown`.
    """,
        (
            several(
                "--limit", "limits", metavar="MODEL=N", help="Maximum number of prompts sent to this model in each condition"
            ),
            several("--max-tokens", metavar="[MODEL=]N", help="Maximum number of tokens in the run or for a model"),
        ),
    ),
    ["candidate"],
    ["ingest", "ask"],
    {"rounds": _convert_to_upper, "context_levels": _split_levels},
    " 4 a model returned no response at all;",
)
SURVEY = FamilyWords(
    name="survey",
    short="Predict what groups of people answered in surveys.",
    help="Work with survey rounds. A verb without a family is one of these: `dtef run` is `dtef survey run`.",
    part="round",
    pattern="an id, such as GD4, or a pattern such as 'GD*'",
    check=Verb(
        "Check survey rounds and report what they contain.",
        """Read survey rounds as `dtef add` does, and report segments, questions, quarantine with its reasons, scales and batteries.

    Each PATH is a Global Dialogues folder, a DTEFSurveyData JSON file, or a long table (CSV or Parquet). Nothing is stored.
    """,
        _A_SURVEY,
    ),
    add=Verb(
        "Read survey rounds: what each segment answered.",
        """Read survey rounds and store what each segment answered to each question (the table `survey_responses`).

    Each PATH is a Global Dialogues folder, a DTEFSurveyData JSON file, or a long table (CSV or Parquet). All are checked before any is stored.
    """,
        _A_SURVEY,
    ),
    list=Verb(
        "List the rounds that are known.", "List rounds with their segments, questions, pairs, quarantine and source files."
    ),
    board=Verb(
        "Rank models by their mean score, overall or in groups.",
        """Rank models by their mean score with 95 % intervals, overall or within groups; or test the ranking.

    --by conditions compares every condition with the reference condition, on the pairs that a model has in both:

    \b
    better, worse  the difference is more than chance (t test clustered by battery, p < .05 by Holm's method over all rows)
    equivalent     the difference is less than 0.01 either way (its 90 % interval lies within ±0.01)
    undecided      none of these
    """,
        (
            rounds_option,
            several("--context", "context_levels", help="Only this number of context questions"),
            click.option(
                "--condition",
                help="Only this condition, spelled in full, such as distribution/attribute-label; with --by conditions the "
                "one that others are compared with.",
            ),
            metric_option,
            targets_option,
            choice(
                "--cells",
                choices=["own", "shared"],
                default="own",
                help="Scores that a model's mean is taken over: all its own, or only those of questions and segments that all models share.",
            ),
            click.option(
                "--non-answers",
                is_flag=True,
                default=None,
                help="Include segments of people who gave no answer, such as party:refused.",
            ),
            click.option("--snapshot", help="Only this snapshot.  [default: the latest response to each prompt]"),
            click.option(
                "--intervals/--no-intervals",
                default=None,
                help="Whether boards have intervals and ranges of ranks; without them a large board is faster.  [default: intervals]",
            ),
            whole_number(
                "--seed",
                floor=0,
                help="Seed of the simulated respondents behind the sampling error in intervals.  [default: that of the stored tables]",
            ),
            whole_number("--top", floor=0, help="Only the first N rows; 0: all.  [default: 60 with --by question, else all]"),
        ),
    ),
    run=run,
    boards=BOARDS,
)
survey = build_family_group(SURVEY)

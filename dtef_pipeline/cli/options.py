"""Options that several `dtef` commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from dtef_pipeline.survey.blueprint.options import FLAGS, Flag
from dtef_pipeline.survey.boards.published import BY_NAME

OUTPUT_FORMATS = click.Choice(["table", "json", "csv"])


def options(*options: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Several options as one decorator, in this order in the help."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def _of_condition(flag: Flag) -> Callable[..., Any]:
    if flag.kind is bool:
        return click.option(flag.spelled, flag.field, is_flag=True, help=flag.help)
    return click.option(flag.spelled, flag.field, type=flag.kind, metavar=flag.metavar, help=flag.help)


of_rounds = click.option(
    "--round",
    "rounds",
    type=str.upper,
    metavar="ROUND",
    multiple=True,
    help="Only this round; may be repeated.  [default: all]",
)


selects_what_is_asked = options(
    click.option("--round", "rounds", type=str.upper, metavar="ROUND", multiple=True, help="Round to run; may be repeated."),
    click.option("--segment", "segments", multiple=True, help="Only this segment, such as country:kenya; may be repeated."),
    click.option(
        "--model",
        "models",
        multiple=True,
        help="Model name, collection or litellm string, with settings if need be: gpt-4.1-mini@temperature=0.7,max_tokens=512; may be repeated."
        "  [default: baselines]",
    ),
    click.option(
        "--context", "contexts", multiple=True, help="Context questions shown: 0, 5, 10, all; may be repeated.  [default: 0]"
    ),
    click.option("--questions", type=click.IntRange(min=1), help="Only the survey's first N questions."),
    click.option("--draws", type=click.IntRange(min=1), help="Repeated samples of each prompt.  [default: 1]"),
    click.option("--snapshot", default="base", show_default=True, help="Label of this evaluation pass: base, or a date."),
    click.option(
        "--limit",
        "limits",
        multiple=True,
        metavar="MODEL=N",
        help="Ask this model at most N prompts of the run in each condition.",
    ),
    click.option(
        "--condition",
        "conditions",
        multiple=True,
        help="How questions are asked, in short: shift/narrative+cot; may be repeated. Or one condition by the options that follow."
        "  [default: distribution/attribute-label]",
    ),
    *map(_of_condition, FLAGS),
    click.option(
        "--max-cost-usd",
        multiple=True,
        metavar="[MODEL=]USD",
        help="Most the run, or a model of it, may spend; may be repeated.",
    ),
    click.option("--max-calls", multiple=True, metavar="[MODEL=]N", help="Most calls the run, or a model of it, may make."),
    click.option("--max-tokens", multiple=True, metavar="[MODEL=]N", help="Most tokens the run, or a model of it, may use."),
    click.option(
        "--experiment",
        metavar="NAME|FILE",
        help="Run a comparison: its conditions, models, context levels, questions and draws.",
    ),
)


chooses_a_board = options(
    click.option(
        "--by",
        type=click.Choice(list(BY_NAME)),
        default="overall",
        show_default=True,
        help="What to break down by, or to test.",
    ),
    click.option("--context", "context_level", help="Only this context level."),
    click.option("--condition", help="Only this condition, spelled in full, such as distribution/attribute-label."),
    click.option("--metric", default="js", show_default=True, help="js, cosine, emd, emd_normalized, tv, mae or top_hit."),
    click.option("--targets", default="clean", show_default=True, help="clean, or all: with questions that define a segment."),
    click.option(
        "--cells", default="own", show_default=True, help="own, or shared: only cells that every model has a score for."
    ),
    click.option("--snapshot", help="Only this snapshot.  [default: the latest answer to each cell]"),
    click.option(
        "--resamples", type=click.IntRange(min=0), help="Bootstrap resamples behind the intervals; 0: none.  [default: 2000]"
    ),
    click.option("--seed", type=click.IntRange(min=0), help="Seed of all that is drawn.  [default: the one of the tables]"),
    click.option(
        "--top", type=click.IntRange(min=0), help="Only the first N rows; 0: all.  [default: 60 of questions, else all]"
    ),
)

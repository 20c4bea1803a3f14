"""Options that several `dtef` commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import click

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.result_views import QA_VIEW_BY_NAME, QA_VIEWS_SHOWN
from dtef_pipeline.rubric.board_views import BOARD_VIEW_BY_NAME, BOARD_VIEWS_SHOWN
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.blueprint.options import CONDITION_WORDS, FORMATS, TASKS
from dtef_pipeline.survey.boards.published import BY_NAME, PUBLISHED

VIEWS_SHOWN = "\n".join(["\b", "What --by shows:", *(f"  {view.name:<13}  {view.shows}" for view in PUBLISHED)])
"""To follow the options of a command that takes `--by`."""
VIEWS_OF_FAMILIES = "\n\n".join(
    [
        VIEWS_SHOWN,
        BOARD_VIEWS_SHOWN.replace("--by shows", "--by shows with --family rubric"),
        QA_VIEWS_SHOWN.replace("--by shows", "--by shows with --family qa"),
    ]
)
"""The same of a command that takes `--family` too."""


WIDE_META = "dtef.wide"
"""Where the context of a command keeps whether `--wide` was given."""


SHOW_BOARDS = ("leaderboard", "experiment", "drift", "costs", "run")
"""Commands whose tables have columns to be explained."""


class ExplainsColumns(click.Command):
    """A command whose help ends with what the columns of its table mean."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if self.name not in SHOW_BOARDS:
            return
        from dtef_pipeline.cli.columns import explained

        for heading, columns in explained(self.name):
            with formatter.section(heading):
                formatter.write_dl(list(columns.items()))


class Commands(click.Group):
    """A group whose commands explain their columns."""

    command_class = ExplainsColumns


def options(*options: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Several options as one decorator, in this order in the help."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


USUAL_FAMILY = "survey"
"""What commands are about that take `--family`, when it is not given."""


class OfFamily(click.Choice[str]):
    """What an option may be, by the family that `--family` names."""

    def __init__(self, **of_family: Sequence[str]) -> None:
        super().__init__(list(dict.fromkeys(choice for choices in of_family.values() for choice in choices)))
        self.of_family = of_family

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        family = ctx.params.get("family") if ctx else None
        own = self.of_family.get(family or USUAL_FAMILY, ())
        if value in self.choices and value not in own:
            self.fail(f"{value!r} with --family {family}: allowed: {', '.join(own)}.", param, ctx)
        return super().convert(value, param, ctx)


ADDED_UP_BY = click.Choice(
    [
        *("family", "role", "model", "variant", "snapshot"),
        *("round", "segment", "condition"),
        "blueprint",
        *("suite", "part", "evaluator"),
        *("league", "scenario", "persona"),
    ]
)
"""What costs are added up by: names of every family, then those of each."""


def _known_family(context: click.Context, parameter: click.Parameter, family: str | None, *, more: Sequence[str]) -> str | None:
    if family is None or context.resilient_parsing:
        return family
    from dtef_pipeline.families import FAMILIES

    names = [*(one.name for one in FAMILIES), *more]
    if family not in names:
        raise click.BadParameter(f"{family!r}: allowed: {', '.join(names)}.", context, parameter)
    return family


def of_family(
    default: str | None = USUAL_FAMILY, help: str = "Family of evaluations to read.", more: Sequence[str] = ()
) -> Callable[..., Any]:
    """The option `--family`; no default: all families. `more`: what else it may be."""
    return click.option(
        "--family",
        default=default,
        show_default=default is not None,
        metavar="|".join(["survey", "rubric", "qa", "games", *more]),
        is_eager=True,
        callback=partial(_known_family, more=more),
        help=help,
    )


def reads_families(*taken: str, more: Sequence[str] = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--family` for a command that is written for the usual family.

    What it does for another one is the function of its name in `families.py`, which gets the options `taken`; all others are refused.
    `more`: names beside those of the families.
    """

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def wrapped(*, family: str, **given: Any) -> Any:
            if family == USUAL_FAMILY:
                return command(**given)
            _refuse_others(taken, family)
            from dtef_pipeline.cli import families

            sys.exit(getattr(families, command.__name__)(family, **{name: given[name] for name in taken}))

        with_option: Callable[..., Any] = of_family(more=more)(wrapped)
        return with_option

    return decorated


def _refuse_others(taken: Sequence[str], family: str) -> None:
    from dtef_pipeline.errors import ConfigError

    context = click.get_current_context()
    options = {one.name: one.opts[0] for one in context.command.params if one.expose_value and one.name != "family"}
    allowed = ", ".join(spelled for name, spelled in options.items() if name in taken) or "no other option"
    for name, spelled in options.items():
        source = context.get_parameter_source(name or "")
        if name not in taken and source is click.core.ParameterSource.COMMANDLINE:
            raise ConfigError(f"{spelled} with --family {family}: allowed with it: {allowed}")


of_rounds = click.option(
    "--round",
    "rounds",
    type=str.upper,
    metavar="ROUND",
    multiple=True,
    help="Only this round; may be repeated.  [default: all]",
)


of_metric = click.option(
    "--metric",
    default="js",
    show_default=True,
    metavar="js|cosine|emd|emd_normalized|tv|mae|top_hit",
    help="Metric that counts as the score.",
)


of_targets = click.option(
    "--targets",
    default="clean",
    show_default=True,
    type=click.Choice(["clean", "all"]),
    help="Questions that count; clean leaves out a question that defines the segment, such as that of age for an age group.",
)


of_format = click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="Form of the output: a table to read in the terminal, or JSON or CSV for other programs.",
)


def _keep_wide(context: click.Context, _: click.Parameter, is_wide: bool) -> None:
    context.meta[WIDE_META] = is_wide


of_wide = click.option(
    "--wide",
    is_flag=True,
    expose_value=False,
    callback=_keep_wide,
    help="Show all columns of a table, not only the most important eight.",
)


writes_a_table = options(of_format, of_wide)


of_estimate = options(
    click.option(
        "--estimate",
        "is_estimate",
        is_flag=True,
        help="Print what the run would ask and cost, as --format and --wide say. Asks no model and writes nothing.",
    ),
    writes_a_table,
)


def starts_from(*stages: str) -> Callable[..., Any]:
    """`--from` of a run: the stage that it begins with, of `stages` in their order; usually `ask`."""
    return click.option(
        "--from",
        "first",
        type=click.Choice(stages),
        default="ask",
        show_default=True,
        help=f"Stage to begin with: {', '.join(f'{name} {_STAGES_TO_BEGIN_WITH[name]}' for name in stages)}.",
    )


_STAGES_TO_BEGIN_WITH = {
    "ingest": "reads the files again first",
    "ask": "asks what is missing",
    "judge": "judges and scores stored responses again and asks no model under test",
}


of_served = click.option(
    "--served", is_flag=True, help="A row of its own for each model that the provider served under one name in one snapshot."
)

chooses_a_board = options(
    click.option(
        "--by",
        type=OfFamily(survey=list(BY_NAME), rubric=list(BOARD_VIEW_BY_NAME), qa=list(QA_VIEW_BY_NAME), games=["overall"]),
        default="overall",
        show_default=True,
        help="What to show; each choice is explained below.",
    ),
    click.option("--context", "context_levels", multiple=True, help="Only this number of context questions; may be repeated."),
    click.option(
        "--condition", help="Only this condition (way of asking), spelled in full, such as distribution/attribute-label."
    ),
    of_metric,
    of_targets,
    click.option(
        "--cells",
        type=click.Choice(["own", "shared"]),
        default="own",
        show_default=True,
        help="Scores that a model's mean is taken over: all its own, or only those of questions and segments that all models share.",
    ),
    click.option(
        "--non-answers", is_flag=True, default=None, help="Also segments of people who gave no answer, such as party:refused."
    ),
    click.option("--snapshot", help="Only this snapshot.  [default: the latest response to each prompt]"),
    of_served,
    click.option(
        "--intervals/--no-intervals",
        default=None,
        help="Whether boards have intervals, ranges of ranks and tiers; without them a large board is faster.  [default: intervals]",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        help="Seed of the samples of answers that intervals allow for.  [default: that of the stored tables]",
    ),
    click.option(
        "--top", type=click.IntRange(min=0), help="Only the first N rows; 0: all.  [default: 60 with --by question, else all]"
    ),
)


Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def models_to_ask(which: str, callback: Callable[..., Any] | None = None) -> Option:
    """`--model`. `which`: what a model may be besides one that `dtef models` lists, and who is asked without the option."""
    told = f"Model to ask: a model or collection that `dtef models` lists, {which}"
    return click.option("--model", "models", multiple=True, callback=callback, help=told)


def draws_of(item: str) -> Option:
    """`--draws`. `item`: what is asked."""
    told = f"Number of times each {item} is asked."
    return click.option("--draws", type=click.IntRange(min=1), default=1, show_default=True, help=told)


def snapshot_or_base(told: str) -> Option:
    """`--snapshot` of a command that always is about one."""
    return click.option("--snapshot", default="base", show_default=True, help=told)


NEW_LABEL = "Label to store the responses under, such as base, night-2 or 2026-01-31; a new label asks everything afresh"
of_asked_snapshot = snapshot_or_base(f"{NEW_LABEL}.")


def budgets_with_roles(*roles: str) -> Option:
    """`--max-cost-usd` and `--max-calls` of a run in which models have these roles."""
    return options(
        click.option(
            "--max-cost-usd",
            multiple=True,
            metavar="[ROLE=|MODEL=]USD",
            help=f"US dollars that the run may cost at most, or a role in it ({', '.join(roles)}), or a model; may be repeated.",
        ),
        click.option(
            "--max-calls",
            multiple=True,
            metavar="[ROLE=|MODEL=]N",
            help="Calls that the run, or this role or model in it, may make at most; may be repeated.",
        ),
    )


def refuse_estimate_of_judging(first: str) -> None:
    """Raises ConfigError for an estimate of a run that begins with judging: an estimate is of the whole run, less what is stored."""
    if first == "judge":
        raise ConfigError(
            "--estimate with --from judge: allowed with --from ask or --from ingest, which count what is stored as nothing"
        )


def boards_by(family: str) -> Option:
    """`--no-roll-ups` of a run of the family."""
    told = f"Do not update boards now; `dtef rollup --family {family}` or the next run does."
    return click.option("--no-roll-ups", is_flag=True, help=told)


def anchors_asked(number: int, told: str) -> Option:
    """`--snapshot`, `--n` and `--seed` of a command that has anchors judged again. `number`: how many, usually; `told`: what they are."""
    return options(
        snapshot_or_base("Label of the night, such as 2026-01-31; a new label asks afresh."),
        click.option("--n", type=click.IntRange(min=1), default=number, show_default=True, help=told),
        click.option(
            "--seed", type=click.IntRange(min=0), default=SEED, show_default=True, help="Seed of the choice of new anchors."
        ),
    )


of_anchors_shown = click.option("--show", is_flag=True, help="Ask nobody; show what the nights so far say of each judge.")


reads_a_survey = options(
    click.option(
        "--round", "round_id", help="Id to store the round under.  [default: the folder's name, or the survey's id in the file]"
    ),
    click.option(
        "--min-n",
        type=click.IntRange(min=1),
        help="Fewest respondents that a distribution must have to be used.  [default: 10]",
    ),
    click.option(
        "--design-effect",
        type=click.FloatRange(min=1, max=50),
        help="How many of the respondents are worth one drawn at random, where the survey is weighted or sampled in clusters.  "
        "[default: as stated when the round was ingested before, else 1]",
    ),
    click.option(
        "--allow-missing-questions",
        is_flag=True,
        help="Go on though questions or options are missing in one file of the folder or another: it may have been cut.",
    ),
    click.option(
        "--allow-missing-attributes",
        is_flag=True,
        help="Go on without attributes that the guide or the counts file has and no segment column.",
    ),
    click.option(
        "--replace",
        is_flag=True,
        help="Let a round lose segments, questions or pairs that an earlier reading of it had.",
    ),
)


selects_what_is_asked = options(
    click.option("--round", "rounds", type=str.upper, metavar="ROUND", multiple=True, help="Round to run; may be repeated."),
    click.option("--segment", "segments", multiple=True, help="Only this segment, such as country:kenya; may be repeated."),
    models_to_ask(
        "or a model string of LiteLLM. Settings follow an @, as in gpt-4.1-mini@temperature=0.7,max_tokens=512. May be repeated.  "
        "[default: baselines]"
    ),
    click.option(
        "--context",
        "contexts",
        multiple=True,
        help="Number of context questions: other questions, shown with the group's answers; or all. May be repeated.  [default: 0]",
    ),
    click.option(
        "--questions",
        type=click.IntRange(min=1),
        help="Ask only N questions of each round, drawn over its batteries.  [default: all]",
    ),
    click.option(
        "--sample-segments",
        type=click.IntRange(min=1),
        help="Ask each question of only S segments of the round, drawn over its attributes.  [default: all]",
    ),
    click.option("--draws", type=click.IntRange(min=1), help="Number of times each prompt is asked.  [default: 1]"),
    snapshot_or_base(f"{NEW_LABEL}, and one that begins with a date counts as that date."),
    click.option(
        "--limit",
        "limits",
        multiple=True,
        metavar="MODEL=N",
        help="Ask this model at most N prompts in each condition; may be repeated.",
    ),
    click.option(
        "--condition",
        "conditions",
        multiple=True,
        metavar="TASK[/FORMAT][+WORD...]",
        help=f"Way of asking, such as shift/narrative+cot or batch=3+tokens=8000: a task ({', '.join(TASKS)}), a format of context questions "
        f"({', '.join(FORMATS)}) and words ({', '.join(CONDITION_WORDS)}); may be repeated.  [default: distribution/attribute-label]",
    ),
    click.option(
        "--max-cost-usd",
        multiple=True,
        metavar="[MODEL=]USD",
        help="US dollars that the run, or this model in it, may cost at most; may be repeated.",
    ),
    click.option(
        "--max-calls",
        multiple=True,
        metavar="[MODEL=]N",
        help="Calls that the run, or this model in it, may make at most; may be repeated.",
    ),
    click.option(
        "--max-tokens",
        multiple=True,
        metavar="[MODEL=]N",
        help="Tokens that the run, or this model in it, may use at most; may be repeated.",
    ),
    click.option(
        "--experiment",
        metavar="NAME|FILE",
        help="Experiment to run: it sets conditions, models, numbers of context questions, questions and draws.",
    ),
)

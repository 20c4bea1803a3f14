"""Options that several commands of surveys share."""

from __future__ import annotations

import click

from dtef_pipeline.cli.options import options
from dtef_pipeline.cli.run_options import NEW_LABEL, models_to_ask, snapshot_or_base
from dtef_pipeline.survey.blueprint.options import CONDITION_WORDS, FORMATS, TASKS

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

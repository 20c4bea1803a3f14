"""Options that several `dtef qa` commands share."""

from __future__ import annotations

import re
from pathlib import Path

import click

from dtef_pipeline.cli.options import options
from dtef_pipeline.cli.run_options import boards_by, budgets_with_roles, draws_of, models_to_ask

_PART_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _part_name(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    if name is not None and not _PART_NAME.fullmatch(name):
        raise click.BadParameter(f"got {name!r}; allowed: up to 64 letters, digits, dots, hyphens and underscores")
    return name


of_parts = options(
    click.option(
        "--suite",
        "suites",
        multiple=True,
        metavar="SUITE|PATTERN",
        help="Only parts of this suite; may be repeated.  [default: all]",
    ),
    click.option(
        "--part",
        "parts",
        multiple=True,
        metavar="PART|SUITE/PART|PATTERN",
        help="Only this part, or those that fit, as in 'high_school_*' or 'mmlu/*'; may be repeated.  [default: all]",
    ),
)
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
    from dtef_pipeline.cli.documented_models import as_known

    return as_known(names)


of_answering = options(
    models_to_ask(
        "a model string of LiteLLM, or `provider:name`; may be repeated.  [default: none; what is stored is scored]",
        documented_models,
    ),
    draws_of("item"),
    click.option(
        "--limit", type=click.IntRange(min=1), help="Ask at most so many items of each part, spread over it.  [default: all]"
    ),
)
of_filter = click.option(
    "--filter",
    "filter",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only documents whose metadata has this value, as in PROJECT=US-002 or YEAR=2024; may be repeated. One that leaves no document is "
    "refused.  [default: all]",
)
of_condition = options(
    click.option(
        "--template",
        type=click.Choice(["letters", "parens", "cot"]),
        default="letters",
        show_default=True,
        help="How options are shown: `A. text`, `(A) text`, or as letters with the request to think first.",
    ),
    click.option(
        "--few-shot",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Number of development items of the subject to show first, with their answers.",
    ),
    click.option(
        "--order",
        type=click.Choice(["file", "rotated-1", "rotated-2", "rotated-3"]),
        default="file",
        show_default=True,
        help="Order of the options: the file's, or rotated by so many places; what is answered is mapped back.",
    ),
    click.option(
        "--retriever",
        type=click.Choice(["bm25", "embedding", "hybrid", "remote"]),
        default="bm25",
        show_default=True,
        help="How the chunks of transcripts are found that go with an item; remote: by the server of DTEF_SOCIOSCOPE_URL.",
    ),
    click.option(
        "--k", type=click.IntRange(min=1), default=10, show_default=True, help="Number of chunks of transcripts to show."
    ),
    of_filter,
)
_of_judges_file = click.option(
    "--judges",
    "judges_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML file with the block `arbiter`: model, evaluators, sample_rate, daily_budget.  [default: the shipped data/judges.yaml]",
)
_JUDGE_HELP = "Judge in place of the file's: `none` has nothing judged."
of_judge = options(_of_judges_file, click.option("--judge", "judge", metavar="MODEL", help=_JUDGE_HELP))
of_arbiter = options(
    _of_judges_file,
    click.option(
        "--judge",
        "judge",
        metavar="MODEL",
        help=f"{_JUDGE_HELP} All stored responses of the parts that it has not judged yet are judged, whoever gave them: not only those that "
        "are asked for now.",
    ),
    click.option("--rejudge", metavar="LABEL", help="Have everything judged afresh, stored under this label."),
)
of_qa_budgets = budgets_with_roles("candidate", "judge", "embedder")
of_qa_roll_ups = boards_by("qa")

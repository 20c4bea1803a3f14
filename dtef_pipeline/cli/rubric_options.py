"""Options that several `dtef rubric` commands share."""

from __future__ import annotations

from pathlib import Path

import click

from dtef_pipeline.cli.options import options
from dtef_pipeline.cli.run_options import boards_by, budgets_with_roles, draws_of, models_to_ask, snapshot_or_base
from dtef_pipeline.judging.classes import CLASS_SCALES, USUAL_SCALE

of_models_dir = click.option(
    "--models-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of the collections of models that blueprints name: a JSON or YAML list per file, named as the collection (CORE.json).",
)
of_root = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder that the ids of blueprints are counted from: ROOT/safety/a.yml is safety__a.  [default: PATH, or the folder of a file]",
)
of_blueprints = click.option(
    "--blueprint",
    "blueprints",
    multiple=True,
    metavar="ID|PATTERN",
    help="Only this blueprint, or those that fit, as in 'compass__*'; may be repeated.  [default: all]",
)
of_judged_snapshot = snapshot_or_base("Label of the stored responses that are to be judged.")
of_stored_snapshot = click.option(
    "--snapshot", help="Label of the run that is meant.  [default: the latest run of the blueprint]"
)
of_candidates = options(
    models_to_ask("or a model string of LiteLLM; may be repeated.  [default: the models that each blueprint names]"),
    draws_of("prompt"),
)
of_scale = click.option(
    "--scale",
    type=click.Choice([str(size) for size in CLASS_SCALES]),
    default=str(USUAL_SCALE),
    callback=lambda _context, _option, size: int(size),
    show_default=True,
    help="Number of classes that judges choose from: 10 are upstream's, to compare with results that were made on them.",
)
of_judges = options(
    click.option(
        "--judge",
        "judges",
        multiple=True,
        metavar="APPROACH=MODEL",
        help="Judge, by what it is shown (standard, prompt-aware or holistic) and its model (of `dtef models`, or a model string of LiteLLM); "
        "may be repeated.  [default: those that the "
        "blueprint names, else standard and prompt-aware with the models of the collection `judges`]",
    ),
    click.option(
        "--judge-draws",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Number of times each judge judges each criterion.",
    ),
    of_scale,
    click.option("--no-own-judge", is_flag=True, help="Leave out judgements of a model by a judge of its own maker."),
    click.option("--with-labels", is_flag=True, help="Let people's labels overrule the judges where there are any."),
)
of_policy = options(
    click.option(
        "--embedder",
        metavar="MODEL",
        help="Model that embeds texts for similarity: one of `dtef models`, or a model string of LiteLLM.  [default: local/minilm-l6-int8]",
    ),
    click.option(
        "--beta", type=click.FloatRange(0, 1), default=0.35, show_default=True, help="Weight of similarity in the hybrid score."
    ),
    click.option(
        "--or-paths",
        type=click.Choice(["document", "two_group"]),
        default="document",
        show_default=True,
        help="How alternative paths count: as one point of weight 1, or as much as all required points.",
    ),
    click.option(
        "--should-not-paths",
        type=click.Choice(["worst", "max"]),
        default="worst",
        show_default=True,
        help="Which alternative path of should_not counts: the one that is met most, or least.",
    ),
)
of_budgets = budgets_with_roles("candidate", "judge", "embedder", "analyst")
of_analysts = click.option(
    "--analyst",
    "analysts",
    multiple=True,
    metavar="MODEL",
    help="Model that sums up each blueprint and grades its models: a model or collection that `dtef models` lists, or a model string of "
    "LiteLLM; may be repeated. Where none is named, a stored summary stays if its report would be the same now, and goes otherwise.  "
    "[default: the collection `analyst`; else none does]",
)
of_extraction = click.option(
    "--extract-points",
    is_flag=True,
    help="Have an analyst list the key points of each ideal answer whose prompt has no criteria, and judge by them. The files are read again.",
)
of_roll_ups = boards_by("dtef rubric rollup")
of_champions = click.option(
    "--consistent-champions",
    "consistency",
    is_flag=True,
    help="Only let a model be champion that has a grade of 5 or more in 80 % of the latest 5 blueprints that it is graded in.",
)

"""Options that several `dtef rubric` commands share."""

from __future__ import annotations

from pathlib import Path

import click

from dtef_pipeline.cli.options import options
from dtef_pipeline.cli.run_options import boards_by, budgets_with_roles, draws_of, models_to_ask

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
of_stored_snapshot = click.option(
    "--snapshot", help="Label of the run that is meant.  [default: the latest run of the blueprint]"
)
of_candidates = options(
    models_to_ask("or a model string of LiteLLM; may be repeated.  [default: the models that each blueprint names]"),
    draws_of("prompt"),
)
of_judges = click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="APPROACH=MODEL",
    help="Judge, by what it is shown (standard, prompt-aware or holistic) and its model (of `dtef models`, or a model string of LiteLLM); "
    "may be repeated.  [default: those that the "
    "blueprint names, else standard and prompt-aware with the models of the collection `judges`]",
)
of_budgets = budgets_with_roles("candidate", "judge", "embedder", "analyst")
of_roll_ups = boards_by("rubric")

"""The commands below `dtef rubric`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.error_reports import reports_errors
from dtef_pipeline.cli.options import choice, existing_path, flag, refuse_others, several, writes_a_table
from dtef_pipeline.cli.verbs import FamilyWords, Verb, build_family_group, run_command
from dtef_pipeline.rubric.rubric_boards import RUBRIC_BOARDS

models_dir_option = existing_path(
    "--models-dir",
    kind="folder",
    help="Folder of the collections of models that blueprints name: a JSON or YAML list per file, named as the collection (CORE.json).",
)
root_option = existing_path(
    "--root",
    kind="folder",
    help="Folder that the ids of blueprints are counted from: ROOT/safety/a.yml is safety__a.  [default: PATH, or the folder of a file]",
)
blueprints_option = several(
    "--blueprint", "parts", metavar="ID|PATTERN", help="Only this blueprint, or those that fit, as in 'compass__*'", usual="all"
)


@click.command(short_help="Show responses and judgements, or compare two runs.")
@click.argument("blueprint")
@click.argument("prompt", required=False)
@several("--model", "models", help="Only this model", usual="all")
@click.option("--snapshot", help="Snapshot of the run.  [default: the latest run of the blueprint]")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the run's whole result to this JSON file.")
@click.option("--before", metavar="A", help="Compare two runs: the snapshot that counts as the earlier one.")
@click.option("--after", metavar="B", help="Compare two runs: the snapshot that counts as the later one.")
@choice(
    "--by",
    choices=["model", "prompt"],
    default="model",
    help="Of two runs: rows of --json and --csv, one per model or one per prompt.",
)
@choice("--fail-on", choices=["regression"], help="Exit with code 3 if a model is worse in B than in A.")
@writes_a_table
@reports_errors
def show(
    blueprint: str,
    before: str | None,
    after: str | None,
    by: str,
    fail_on: str | None,
    **given: Any,
) -> None:
    """Show the scores of a blueprint: a row per prompt, a column per model, means over temperatures, system prompts and draws.

    With PROMPT, show the prompt, each response to it, and for each criterion the score, the judges' classes and their reasons.

    With --before and --after, compare two runs: pairs are what one variant of a model answered to one prompt in both. A difference
    is B minus A, its 95 % interval resamples whole prompts, and p is adjusted over the models (Holm). The verdict is regression or improvement
    if the adjusted p is below .05, else equivalent if the 90 % interval lies within 0.01 of 0, else undecided. The prompts that changed most are
    listed last. With few prompts even a large fall may be chance: --fail-on warns of the models for which this holds.

    \b
    With --out the file has
    metadata            what was run: blueprint, snapshot, hashes, judges, models, times
    prompts             what was asked, with all criteria
    responses           what models wrote, by prompt
    similarityMatrices  for every pair of responses, and for each response and the ideal answer
    coverage            by prompt and response each criterion (pointAssessments) with every judgement (individualJudgements)
    scores              of each prompt, each variant of a model and each model
    executiveSummary    what analysts wrote; null if no analyst was asked
    What could not be scored is null, with a reason.

    \b
    Exit code: 0 done; 2 an option is wrong; 3 a model is worse, with --fail-on regression.
    """
    from dtef_pipeline.cli.rubric import rubric_show

    if before is None and after is None:
        refuse_others(("models", "snapshot", "out"), "one run")
        rubric_show.show(blueprint, **given)
        return
    names = ("before", "after", "by", "fail_on")
    refuse_others(names, "two runs")
    if given["prompt"] is not None:
        raise click.UsageError(
            "PROMPT does not work with --before or --after; --by prompt shows the prompts that changed most."
        )
    sys.exit(rubric_show.compare(blueprint, before, after, by, fail_on, given["output"]))


run = run_command(
    "rubric",
    "blueprint",
    "dtef_pipeline.rubric.settings.RubricSettings",
    Verb(
        "Ask models, have their responses judged, and score them.",
        """Ask models the prompts of blueprints, have their responses judged and embedded, and score them; then update the boards.

    With --from judge the stored responses of the snapshot are judged and scored again, for example with other judges or weights; blueprints
    without responses in it are listed and left unchanged.

    The section `rubric` of the panel file, which DTEF_PANEL names, sets how responses are judged and scored, as in nightly runs: judge_draws,
    scale, no_own_judge, with_labels, analysts, extract_points, embedder, beta, or_paths, should_not_paths and consistent_champions.

    --estimate replays stored responses turn by turn, and counts the judgements of complete ones as a run would send them. The length of missing
    responses is estimated: the mean of the model's stored responses, else 400 tokens a turn and 120 per judgement. An ideal answer without
    extracted key points counts as 6 points. The report to an analyst is built as in a run, with placeholders for missing responses. The highest
    cost includes a second request to each judge and analyst; the usual cost does not.
    """,
    ),
    roles=("candidate", "judge", "embedder", "analyst"),
    starts=("ingest", "ask", "judge"),
)


_BOARDS_OVER_BLUEPRINTS = ", ".join(entry.name for entry in RUBRIC_BOARDS if not entry.filters_partitions)
_BLUEPRINT_FILES = (
    click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)),
    models_dir_option,
    root_option,
)
RUBRIC = FamilyWords(
    name="rubric",
    short="Judge what models write, by written criteria.",
    help="Work with blueprints: YAML files with prompts, and with the criteria that responses to them are judged by.",
    part="blueprint",
    pattern="an id, or a pattern such as 'compass__*'",
    removal_note="People's labels and anchors stay too.",
    check=Verb(
        "Check blueprints and report their faults.",
        """Read blueprints and report faults: a line per finding with file, line, place and correction.

    PATH is a YAML or JSON file, or a folder with such files at any depth. Makes no calls and writes nothing.

    \b
    error       the file is not run
    unscorable  the file runs, and the criterion stays unscored
    warning     the file runs, and may not say what its author means
    info        worth knowing
    """,
        _BLUEPRINT_FILES,
    ),
    add=Verb(
        "Add blueprints, so that they can be run.",
        """Add blueprints to the pipeline: a partition each, with its prompts and criteria as tables. Makes no calls.

    PATH is a YAML or JSON file, or a folder with such files at any depth. Added again, a changed file replaces the earlier one. A file with
    errors is listed and not added; its earlier version stays. Blueprints whose file was deleted or renamed are listed too, and stay until
    `dtef rubric remove` removes them.
    """,
        (
            *_BLUEPRINT_FILES,
            flag("--skip-broken", help="Leave out the parts of a file that have errors, and add the rest."),
        ),
    ),
    list=Verb(
        "List the blueprints that are known.",
        "List blueprints with their prompts, criteria, faults, snapshots with scores, and source files.",
    ),
    board=Verb(
        "Rank models over blueprints, compare them, and test the judges.",
        f"""Rank models by their mean hybrid score with 95 % intervals, over the latest run of each blueprint; or test how robust the scores are.

    With --by comparisons, intervals need at least 5 blueprints, or 5 prompts if --blueprint names one blueprint.
    --blueprint is not allowed with boards over all blueprints: {_BOARDS_OVER_BLUEPRINTS}.
    """,
        (blueprints_option,),
    ),
    run=run,
    boards=RUBRIC_BOARDS,
    extra_commands=(show,),
)
rubric = build_family_group(RUBRIC)

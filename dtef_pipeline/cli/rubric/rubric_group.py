"""The commands below `dtef rubric`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.error_reports import reports_errors
from dtef_pipeline.cli.options import choice, existing_path, flag, refuse_others, several, whole_number, writes_a_table
from dtef_pipeline.cli.verbs import FamilyWords, Verb, build_family_group, run_command
from dtef_pipeline.rubric.board_views import BOARD_VIEWS

of_models_dir = existing_path(
    "--models-dir",
    kind="folder",
    help="Folder of the collections of models that blueprints name: a JSON or YAML list per file, named as the collection (CORE.json).",
)
of_root = existing_path(
    "--root",
    kind="folder",
    help="Folder that the ids of blueprints are counted from: ROOT/safety/a.yml is safety__a.  [default: PATH, or the folder of a file]",
)
of_blueprints = several(
    "--blueprint", "parts", metavar="ID|PATTERN", help="Only this blueprint, or those that fit, as in 'compass__*'", usual="all"
)


@click.command(short_help="Show what models wrote and what judges said, or compare two runs.")
@click.argument("blueprint")
@click.argument("prompt", required=False)
@several("--model", "models", help="Only this model", usual="all")
@click.option("--snapshot", help="Label of the run that is meant.  [default: the latest run of the blueprint]")
@choice(
    "--score",
    among=["hybrid", "coverage", "similarity"],
    default="hybrid",
    help="Score that the table of prompts and models shows.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the run's whole result to this JSON file.")
@click.option("--before", metavar="A", help="Compare two runs: the snapshot that counts as the earlier one.")
@click.option("--after", metavar="B", help="Compare two runs: the snapshot that counts as the later one.")
@click.option(
    "--drift",
    metavar="MODEL",
    help="In place of --before and --after, the two runs that the drift rule compares for this model: its lowest and highest.",
)
@choice(
    "--by",
    among=["model", "prompt"],
    default="model",
    help="Of two runs, what --json and --csv write: a row per model, or a row per prompt.",
)
@whole_number(
    "--top", least=0, default=10, help="Of two runs, the number of prompts to show, those that moved most first; 0: all."
)
@choice("--fail-on", among=["regression"], help="End with exit code 3 where a model is worse in B than in A: for scripts.")
@writes_a_table
@reports_errors
def show(
    blueprint: str,
    before: str | None,
    after: str | None,
    drift: str | None,
    by: str,
    top: int,
    fail_on: str | None,
    **given: Any,
) -> None:
    """Show the scores of a blueprint: a row per prompt, a column per model, means over temperatures, system prompts and draws.

    With PROMPT, show what is asked, each response to it, and of each criterion the score, the judges' classes and their reasons.

    With --before and --after, or --drift, compare two runs: pairs are what one variant of a model answered to one prompt in both. A difference
    is B less A, its 95 % interval draws whole prompts anew, and p is adjusted over the models (Holm). A verdict is regression or improvement
    where the adjusted p is below .05, else equivalent where the 90 % interval lies within 0.01 of 0, else undecided. Beneath stand the prompts
    that moved most. With few prompts no fall, however large, is more than chance: of which models that holds is a warning with --fail-on.

    \b
    With --out the file has
    metadata            what was run: blueprint, snapshot, hashes, judges, models, times
    prompts             what was asked, with all criteria
    responses           what models wrote, by prompt
    similarityMatrices  of each two responses to a prompt, and of each to the ideal answer
    coverage            by prompt and response each criterion (pointAssessments) with every judgement (individualJudgements)
    scores              of each prompt, each variant of a model and each model
    executiveSummary    what analysts said; null where nobody was asked
    What could not be scored is null, with a reason beside it.

    \b
    Exit code: 0 done; 2 the options need mending; 3 a model is worse, with --fail-on regression.
    """
    from dtef_pipeline.cli.rubric import rubric_show

    if before is None and after is None and drift is None:
        refuse_others(("models", "snapshot", "score", "out"), "one run")
        rubric_show.show(blueprint, **given)
        return
    compared = ("before", "after", "drift", "by", "top", "fail_on")
    refuse_others(compared, "two runs")
    if given["prompt"] is not None:
        raise click.UsageError(
            "PROMPT: allowed without --before, --after and --drift; --by prompt shows the prompts that moved most."
        )
    sys.exit(rubric_show.compare(blueprint, before, after, drift, by, top, fail_on, given["output"]))


run = run_command(
    "rubric",
    "dtef_pipeline.rubric.settings.RubricSettings",
    Verb(
        "Ask models, have their responses judged, and score them.",
        """Ask models the prompts of blueprints, have their responses judged and embedded, and score them; then update the boards.

    Responses and judgements that are stored already are used again, and only the missing ones are asked for. When a budget is reached,
    finished work is kept; give the command again to ask for the rest. With --from judge the stored responses of the snapshot are judged and
    scored again, as with other judges or other weights; blueprints without responses in it are named and left as they are.

    The section `rubric` of the panel file, which DTEF_PANEL names, says how responses are judged and scored, here as at night: judge_draws,
    scale, no_own_judge, with_labels, analysts, extract_points, embedder, beta, or_paths, should_not_paths and consistent_champions.

    With --estimate, responses that are stored are followed turn by turn, and the judgements of those that are whole are the very requests that
    a run would send. Of what is not there yet the number is known, and the length is estimated: by the mean of earlier responses of the model,
    else 400 tokens a turn and 120 per judgement. An ideal answer whose key points are yet to be extracted is taken to have 6. The report to an
    analyst is put together as in a run, with stand-ins for responses that are yet to be had. Where all responses and scores are known it is
    the very report that is sent. The usual cost leaves out that a judge or an analyst may be asked once more; the highest cost does not.

    \b
    Exit code: 0 done; 1 a blueprint failed, or a file was left out; 2 the options or the set-up need mending; 130 interrupted.
    """,
    ),
    roles=("candidate", "judge", "embedder", "analyst"),
    starts=("ingest", "ask", "judge"),
)


_BLUEPRINT_FILES = (
    click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)),
    of_models_dir,
    of_root,
)
RUBRIC = FamilyWords(
    name="rubric",
    short="Judge what models write by criteria in YAML files.",
    help="""Work with blueprints: YAML files with prompts, and with the criteria that responses to them are judged by.

    \b
        dtef rubric check PATH        say what is wrong with blueprints
        dtef rubric add PATH          make them known
        dtef rubric list              list those that are known
        dtef rubric run --estimate    say what a run would ask and cost
        dtef rubric run               ask models, have their responses judged, score them
        dtef rubric board             show who does best
        dtef report                   write the results of all families as a site
        dtef rubric show BLUEPRINT    show what models wrote and what judges said; compare two runs
        dtef rubric remove BLUEPRINT  take a blueprint and its results away
    """,
    part="blueprint",
    pattern="an id, or a pattern such as 'compass__*'",
    stays="People's labels and anchors stay too.",
    check=Verb(
        "Say what blueprints hold, and what is wrong with them.",
        """Read blueprints, and say what was found: a line per finding with file, line, place and what to write in its place.

    PATH is a YAML or JSON file, or a folder with such files at any depth. Nothing is asked, nothing is written.

    \b
    error       the file is not run
    unscorable  the file runs, and the criterion stays unscored
    warning     the file runs, and may not say what its author means
    info        worth knowing

    \b
    Exit code: 0 no errors; 1 a file has an error; 2 the options need mending.
    """,
        _BLUEPRINT_FILES,
    ),
    add=Verb(
        "Make blueprints known, so that they can be run.",
        """Make blueprints known to the pipeline: a partition each, with its prompts and criteria as tables. Nothing is asked.

    PATH is a YAML or JSON file, or a folder with such files at any depth. Added again, a changed file takes the place of the earlier one. A
    file with errors is named in a line of its own and not added; what was known of it before stays. Known blueprints whose file was deleted or
    renamed are named too, and stay until `dtef rubric remove` takes them away.

    \b
    Exit code: 0 done; 1 a file has errors, and all others were added; 2 nothing was changed.
    """,
        (
            *_BLUEPRINT_FILES,
            flag("--skip-broken", help="Leave out the parts of a file that have errors, and take the rest."),
        ),
    ),
    list=Verb(
        "List the blueprints that are known.",
        "List blueprints: prompts, criteria, what is wrong with them, snapshots with scores, and the file that each comes from.",
    ),
    board=Verb(
        "Rank models over blueprints, compare them, and test the judges.",
        f"""Rank models by their mean hybrid score with 95 % intervals, over the latest run of each blueprint; or test what the scores rest on.

    With --by compare whole blueprints are what is independent, and at least 5 are needed; of one blueprint that --blueprint names, prompts.
    Not with --blueprint, as their rows are over all blueprints: {", ".join(one.name for one in BOARD_VIEWS if not one.of_partitions)}.
    """,
        (of_blueprints,),
    ),
    run=run,
    views=BOARD_VIEWS,
    more=(show,),
)
rubric = build_family_group(RUBRIC)

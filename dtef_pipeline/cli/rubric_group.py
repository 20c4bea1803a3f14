"""The commands below `dtef rubric`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.options import (
    anchors_asked,
    boards_by,
    budgets_with_roles,
    of_anchors_shown,
    of_asked_snapshot,
    of_estimate,
    refuse_estimate_of_judging,
    starts_from,
    writes_a_table,
)
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.settings_options import settings_options, split_given
from dtef_pipeline.rubric.board_views import BOARD_VIEW_BY_NAME, BOARD_VIEWS_SHOWN
from dtef_pipeline.rubric.settings import RubricSettings

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
of_budgets = budgets_with_roles("candidate", "judge", "embedder", "analyst")
of_roll_ups = boards_by("rubric")


@click.command(short_help="Show what models wrote, and what judges said of it.")
@click.argument("blueprint")
@click.argument("prompt", required=False)
@click.option("--model", "models", multiple=True, help="Only this model; may be repeated.  [default: all]")
@of_stored_snapshot
@click.option(
    "--score",
    type=click.Choice(["hybrid", "coverage", "similarity"]),
    default="hybrid",
    show_default=True,
    help="Score that the table of prompts and models shows.",
)
@writes_a_table
@reports_errors
def show(**given: Any) -> None:
    """Show the scores of a blueprint: a row per prompt, a column per model, means over temperatures, system prompts and draws.

    With PROMPT, show what is asked, each response to it, and of each criterion the score, the judges' classes and their reasons.
    """
    from dtef_pipeline.cli import rubric_show

    rubric_show.show(**given)


@click.command(short_help="Write a run's whole result as one JSON file.")
@click.argument("blueprint")
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="File to write.")
@of_stored_snapshot
@reports_errors
def export(**given: Any) -> None:
    """Write a run's whole result as one JSON file.

    \b
    metadata            what was run: blueprint, snapshot, hashes, judges, models, times
    prompts             what was asked, with all criteria
    responses           what models wrote, by prompt
    similarityMatrices  of each two responses to a prompt, and of each to the ideal answer
    coverage            by prompt and response each criterion (pointAssessments) with every judgement (individualJudgements)
    scores              of each prompt, each variant of a model and each model
    executiveSummary    what analysts said; null where nobody was asked

    What could not be scored is null, with a reason beside it.
    """
    from dtef_pipeline.cli import rubric_show

    rubric_show.export(**given)


@click.command(short_help="Compare two runs of a blueprint, model by model.")
@click.argument("blueprint")
@click.argument("before", metavar="[A]", required=False)
@click.argument("after", metavar="[B]", required=False)
@click.option(
    "--drift",
    metavar="MODEL",
    help="In place of A and B, take the two runs that the drift rule compares for this model: its lowest and highest, the earlier one first.",
)
@click.option(
    "--by",
    type=click.Choice(["model", "prompt"]),
    default="model",
    show_default=True,
    help="What --format json and csv write: a row per model, or a row per prompt.",
)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Number of prompts to show, those that moved most first; 0: all.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["regression"]),
    help="End with exit code 3 where a model is worse in B than in A: for scripts.",
)
@writes_a_table
@reports_errors
def compare(**given: Any) -> None:
    """Compare two runs of a blueprint: how models did in the snapshot B with how they did in A.

    Pairs are what one variant of a model answered to one prompt in both. A difference is B less A, its 95 % interval draws whole prompts anew,
    and p is adjusted over the models (Holm). A verdict is regression or improvement where the adjusted p is below .05, else equivalent where the
    90 % interval lies within 0.01 of 0, else undecided. Beneath stand the prompts that moved most. With few prompts no fall, however large, is
    more than chance: of which models that holds is a warning with --fail-on.

    \b
    Exit code: 0 done; 2 the options need mending; 3 a model is worse, with --fail-on regression.
    """
    from dtef_pipeline.cli import rubric_show

    sys.exit(rubric_show.compare(**given))


@click.group(short_help="Have people label a few prompts.")
def labels() -> None:
    """Have people say how far criteria are met in a few drawn prompts, and correct scores by what they say.

    \b
        dtef rubric labels sample --out sheet.csv   draw prompts and write a sheet to fill in
        dtef rubric labels import sheet.csv         read the filled-in sheet
        dtef rollup --family rubric                 correct the boards
        dtef rubric board --by corrected            show them
    """


@labels.command(short_help="Draw prompts and write a sheet to be filled in.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="CSV file to write; one that is there is kept.",
)
@click.option(
    "--prompts", "n_prompts", type=click.IntRange(min=1), default=40, show_default=True, help="Number of prompts to draw."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=7, show_default=True, help="Seed of the draw; another one draws others."
)
@click.option(
    "--blueprint",
    "blueprints",
    multiple=True,
    metavar="ID|PATTERN",
    help="Only this blueprint, or those that fit, as in 'compass__*'; may be repeated.  [default: all but those with the tag test]",
)
@click.option("--snapshot", help="Only responses of this snapshot.  [default: the latest of each blueprint]")
@click.option(
    "--per-model", type=click.IntRange(min=1), help="Number of responses of each model in each prompt.  [default: all]"
)
@click.option(
    "--show-names",
    is_flag=True,
    help="Leave the names of models, makers and providers in the responses, where they may say who wrote them.",
)
@reports_errors
def sample(**given: Any) -> None:
    """Draw prompts by known chances, and write a sheet of their responses and criteria for people to fill in.

    The sheet names no model and no verdict. Where a response itself has a name that may say who wrote it, [model], [company] or
    [provider] stands in its place, and the column `hidden` counts them. What has a label already is not on it again. The draw is kept
    in the warehouse, so that the sheet can be read by `dtef rubric labels import`. A draw with another seed adds to the earlier ones.
    """
    from dtef_pipeline.cli import rubric_labels

    rubric_labels.sample(rubric_labels.SampleOptions(**given))


@labels.command("import", short_help="Read a filled-in sheet.")
@click.argument("sheet", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--author", help="Name of the person who filled in the rows whose column author is empty.")
@reports_errors
def import_(sheet: Path, author: str | None) -> None:
    """Read what people wrote into a sheet: a class per row, and a reason where they like; rows without a class are passed over.

    \b
    Classes: UNMET, PARTIALLY_MET, MODERATELY_MET, MAJORLY_MET, EXACTLY_MET

    Nothing is kept of a sheet with a faulty row. A later label of the same person overrules the earlier one, which stays on record. A sheet
    that is imported again changes nothing.
    """
    from dtef_pipeline.cli import rubric_labels

    rubric_labels.import_sheet(sheet, author)


@labels.command("show", short_help="Show what is labelled, and how often judges say the same.")
@writes_a_table
@reports_errors
def show_labels(output: str) -> None:
    """Show draws and labels, how often each judge says what people say, and how many labels make an interval of +-0.03.

    JSON and CSV hold the second: a row per judge and class that people chose.
    """
    from dtef_pipeline.cli import rubric_labels

    rubric_labels.show(output)


@click.command(short_help="Show judges stored responses again, to see whether they have moved.")
@anchors_asked(200, "Number of anchors, each of which is a response and a criterion.")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="APPROACH=MODEL",
    help="Judge to be watched; may be repeated.  [default: those that the blueprint names, else those of the collection `judges`]",
)
@click.option(
    "--max-cost-usd", multiple=True, metavar="[MODEL=]USD", help="US dollars that this may cost at most; may be repeated."
)
@click.option("--max-calls", multiple=True, metavar="[MODEL=]N", help="Calls that this may make at most; may be repeated.")
@of_anchors_shown
@writes_a_table
@reports_errors
def anchors(show: bool, output: str, **given: Any) -> None:
    """Have judges judge the same stored responses again, night after night: whatever moves is the judge, not the models.

    Anchors are chosen once and stay. What was asked in a snapshot is not asked again in it. No model under test is asked.

    \b
    Exit code: 0 done; 1 it failed; 2 the options or the set-up need mending; 130 interrupted.
    """
    from dtef_pipeline.cli import anchors

    if show:
        anchors.show("rubric", output)
    else:
        sys.exit(anchors.run("rubric", given))


@click.group(short_help="Judge what models write by criteria in YAML files.")
def rubric() -> None:
    """Work with blueprints: YAML files with prompts, and with the criteria that responses to them are judged by.

    \b
        dtef rubric check PATH        say what is wrong with blueprints
        dtef rubric add PATH          make them known
        dtef rubric run --estimate    say what a run would ask and cost
        dtef rubric run               ask models, have their responses judged, score them
        dtef rubric board             show who does best
        dtef report --family rubric   write the results as HTML pages
        dtef rubric show BLUEPRINT    show what models wrote and what judges said
        dtef rubric remove BLUEPRINT  take a blueprint and its results away
    """


@rubric.command(short_help="Say what blueprints hold, and what is wrong with them.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@of_models_dir
@of_root
@click.option("--json", "as_json", is_flag=True, help="Write what each file holds and what was found as one JSON object.")
@reports_errors
def check(**given: Any) -> None:
    """Read blueprints, and say what was found: a line per finding with file, line, place and what to write in its place.

    PATH is a YAML or JSON file, or a folder with such files at any depth. Nothing is asked, nothing is written.

    \b
    error       the file is not run
    unscorable  the file runs, and the criterion stays unscored
    warning     the file runs, and may not say what its author means
    info        worth knowing

    \b
    Exit code: 0 no errors; 1 a file has an error; 2 the options need mending.
    """
    from dtef_pipeline.cli import rubric_check

    sys.exit(rubric_check.check(**given))


@rubric.command(short_help="Make blueprints known, so that they can be run.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@of_models_dir
@of_root
@click.option("--skip-broken", is_flag=True, help="Leave out the parts of a file that have errors, and take the rest.")
@reports_errors
def add(**given: Any) -> None:
    """Make blueprints known to the pipeline: a partition each, with its prompts and criteria as tables. Nothing is asked.

    PATH is a YAML or JSON file, or a folder with such files at any depth. Added again, a changed file takes the place of the earlier one. A
    file with errors is named in a line of its own and not added; what was known of it before stays. Known blueprints whose file was deleted or
    renamed are named too, and stay until `dtef rubric remove` takes them away.

    \b
    Exit code: 0 done; 1 a file has errors, and all others were added; 2 nothing was changed.
    """
    from dtef_pipeline.cli import rubric_files

    sys.exit(rubric_files.add(**given))


@rubric.command(short_help="Take blueprints and their results away.")
@click.argument("blueprints", metavar="BLUEPRINT...", nargs=-1, required=True)
@reports_errors
def remove(blueprints: tuple[str, ...]) -> None:
    """Take blueprints away: their partitions and their rows in all tables. Boards and pages follow at the next `dtef rollup --family rubric`.

    BLUEPRINT is an id, or a pattern such as 'compass__*'. Files stay, and so does all that was paid for: a blueprint that is added and run
    again finds its stored responses, verdicts and summaries. People's labels and anchors stay too.

    \b
    Exit code: 0 done; 2 a name fits no blueprint, and nothing was changed.
    """
    from dtef_pipeline.cli import rubric_files

    rubric_files.remove(blueprints)


@rubric.command(short_help="Ask models, have their responses judged, and score them.")
@settings_options(RubricSettings)
@of_asked_snapshot
@of_budgets
@starts_from("ingest", "ask", "judge")
@of_roll_ups
@of_estimate
@reports_errors
def run(is_estimate: bool, output: str, **given: Any) -> None:
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
    """
    from dtef_pipeline.cli import rubric_run

    settings, beside = split_given(given)
    options = rubric_run.with_panel(settings)
    if is_estimate:
        refuse_estimate_of_judging(beside.first)
        rubric_run.estimate(options, beside, output)
    else:
        sys.exit(rubric_run.run(options, beside))


@rubric.command(short_help="Rank models over blueprints, compare them, and test the judges.", epilog=BOARD_VIEWS_SHOWN)
@click.option(
    "--by",
    type=click.Choice(list(BOARD_VIEW_BY_NAME)),
    default="overall",
    show_default=True,
    help="What to show; each choice is explained below.",
)
@of_blueprints
@writes_a_table
@reports_errors
def board(by: str, blueprints: tuple[str, ...], output: str) -> None:
    """Rank models by their mean hybrid score with 95 % intervals, over the latest run of each blueprint; or test what the scores rest on.

    With --by comparisons whole blueprints are what is independent, and at least 5 are needed; of one blueprint that --blueprint names, prompts.
    """
    from dtef_pipeline.cli import rubric_board

    rubric_board.show(by, blueprints, output)


rubric.add_command(show)
rubric.add_command(export)
rubric.add_command(compare)
rubric.add_command(labels)
rubric.add_command(anchors)

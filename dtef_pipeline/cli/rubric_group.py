"""The commands below `dtef rubric`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.options import writes_a_table
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.rubric_compare_group import compare
from dtef_pipeline.cli.rubric_estimate_group import estimate
from dtef_pipeline.cli.rubric_export_group import export
from dtef_pipeline.cli.rubric_labels_group import anchors, labels
from dtef_pipeline.cli.rubric_options import (
    of_analysts,
    of_blueprints,
    of_budgets,
    of_candidates,
    of_champions,
    of_extraction,
    of_judged_snapshot,
    of_judges,
    of_models_dir,
    of_policy,
    of_roll_ups,
    of_root,
)
from dtef_pipeline.cli.rubric_show_group import show
from dtef_pipeline.cli.run_options import of_asked_snapshot
from dtef_pipeline.rubric.board_views import BOARD_VIEW_BY_NAME, BOARD_VIEWS_SHOWN

of_one_snapshot = click.option(
    "--snapshot", help="Only the runs of this snapshot.  [default: the latest run of each blueprint that has a score]"
)


@click.group(short_help="Judge what models write by criteria in YAML files.")
def rubric() -> None:
    """Work with blueprints: YAML files with prompts, and with the criteria that responses to them are judged by.

    \b
        dtef rubric check PATH        say what is wrong with blueprints
        dtef rubric add PATH          make them known
        dtef rubric estimate          say what a run would ask and cost
        dtef rubric run               ask models, have their responses judged, score them
        dtef rubric board             show who does best
        dtef rubric report            write the results as HTML pages
        dtef rubric show BLUEPRINT    show what models wrote and what judges said
        dtef rubric remove BLUEPRINT  take a blueprint and its results away
    """


@rubric.command(short_help="Say what blueprints hold, and what is wrong with them.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@of_models_dir
@of_root
@click.option("--json", "as_json", is_flag=True, help="Write what each file holds and what was found as one JSON object.")
@reports_errors
def check(paths: tuple[Path, ...], models_dir: Path | None, root: Path | None, as_json: bool) -> None:
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

    sys.exit(rubric_check.check(paths, models_dir, root, as_json))


@rubric.command(short_help="Make blueprints known, so that they can be run.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@of_models_dir
@of_root
@click.option("--skip-broken", is_flag=True, help="Leave out the parts of a file that have errors, and take the rest.")
@reports_errors
def add(paths: tuple[Path, ...], models_dir: Path | None, root: Path | None, skip_broken: bool) -> None:
    """Make blueprints known to the pipeline: a partition each, with its prompts and criteria as tables. Nothing is asked.

    PATH is a YAML or JSON file, or a folder with such files at any depth. Added again, a changed file takes the place of the earlier one. A
    file with errors is named in a line of its own and not added; what was known of it before stays. Known blueprints whose file was deleted or
    renamed are named too, and stay until `dtef rubric remove` takes them away.

    \b
    Exit code: 0 done; 1 a file has errors, and all others were added; 2 nothing was changed.
    """
    from dtef_pipeline.cli import rubric_add

    sys.exit(rubric_add.add(paths, models_dir, root, skip_broken))


@rubric.command(short_help="Take blueprints and their results away.")
@click.argument("blueprints", metavar="BLUEPRINT...", nargs=-1, required=True)
@reports_errors
def remove(blueprints: tuple[str, ...]) -> None:
    """Take blueprints away: their partitions and their rows in all tables. Boards and pages follow at the next `dtef rubric rollup`.

    BLUEPRINT is an id, or a pattern such as 'compass__*'. Files stay, and so does all that was paid for: a blueprint that is added and run
    again finds its stored responses, verdicts and summaries. People's labels and anchors stay too.

    \b
    Exit code: 0 done; 2 a name fits no blueprint, and nothing was changed.
    """
    from dtef_pipeline.cli import rubric_remove

    rubric_remove.remove(blueprints)


@rubric.command(short_help="Ask models, have their responses judged, and score them.")
@of_blueprints
@of_candidates
@of_judges
@of_analysts
@of_extraction
@of_policy
@of_asked_snapshot
@of_budgets
@click.option("--ingest", is_flag=True, help="Read the files again first.")
@of_roll_ups
@of_champions
@reports_errors
def run(**given: Any) -> None:
    """Ask models the prompts of blueprints, have their responses judged and embedded, and score them; then update the boards.

    Responses and judgements that are stored already are used again, and only the missing ones are asked for. When a budget is reached,
    finished work is kept; give the command again to ask for the rest.

    \b
    Exit code: 0 done; 1 a blueprint failed, or a file was left out; 2 the options or the set-up need mending; 130 interrupted.
    """
    from dtef_pipeline.cli import rubric_run

    sys.exit(rubric_run.run(rubric_run.RubricOptions(**given)))


@rubric.command(short_help="Judge and score stored responses; no model under test is asked.")
@of_blueprints
@of_judges
@of_analysts
@of_extraction
@of_policy
@of_judged_snapshot
@of_budgets
@of_roll_ups
@of_champions
@reports_errors
def judge(**given: Any) -> None:
    """Judge and score the responses of a snapshot again, as with other judges or other weights. No model under test is asked.

    Blueprints without responses in it are named and left as they are.

    \b
    Exit code: 0 done; 1 a blueprint failed, or a file was left out; 2 the options or the set-up need mending; 130 interrupted.
    """
    from dtef_pipeline.cli import rubric_run

    sys.exit(rubric_run.run(rubric_run.RubricOptions(**given), only_judging=True))


@rubric.command(short_help="Update the boards over all blueprints.")
@of_champions
@reports_errors
def rollup(consistency: bool) -> None:
    """Update the tables over all blueprints. `dtef rubric run` does so too, unless `--no-roll-ups` is given. No model is asked.

    \b
    Exit code: 0 done; 1 a roll-up failed, or a file was left out; 2 nothing is scored yet.
    """
    from dtef_pipeline.cli import rubric_run

    sys.exit(rubric_run.rollup(consistency=consistency))


@rubric.command(short_help="Rank models over blueprints, compare them, and test the judges.", epilog=BOARD_VIEWS_SHOWN)
@click.option(
    "--by",
    type=click.Choice(list(BOARD_VIEW_BY_NAME)),
    default="overall",
    show_default=True,
    help="What to show; each choice is explained below.",
)
@of_blueprints
@of_champions
@writes_a_table
@reports_errors
def board(by: str, blueprints: tuple[str, ...], consistency: bool, output: str) -> None:
    """Rank models by their mean hybrid score with 95 % intervals, over the latest run of each blueprint; or test what the scores rest on.

    With --by compare whole blueprints are what is independent, and at least 5 are needed; of one blueprint that --blueprint names, prompts.
    """
    from dtef_pipeline.cli import rubric_board

    rubric_board.show(by, blueprints, output, consistency=consistency)


@rubric.command(short_help="Write the results as HTML pages.")
@click.option(
    "--out",
    default="rubric_report",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to.",
)
@of_one_snapshot
@reports_errors
def report(out: Path, snapshot: str | None) -> None:
    """Write the results as HTML pages that need no network: a board with a slider for the weight of similarity, and a page per blueprint.

    Pages that an earlier report wrote into the folder, and that do not belong to this one, are removed; other files are not touched, and where
    one of them has the name of a page it is left, with an error.
    """
    from dtef_pipeline.cli import rubric_read

    rubric_read.report(out, snapshot)


rubric.add_command(estimate)
rubric.add_command(show)
rubric.add_command(export)
rubric.add_command(compare)
rubric.add_command(labels)
rubric.add_command(anchors)

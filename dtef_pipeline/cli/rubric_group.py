"""The commands below `dtef rubric`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.options import of_estimate, starts_from, writes_a_table
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.rubric_compare_group import compare
from dtef_pipeline.cli.rubric_export_group import export
from dtef_pipeline.cli.rubric_labels_group import anchors, labels
from dtef_pipeline.cli.rubric_options import (
    of_blueprints,
    of_budgets,
    of_candidates,
    of_judges,
    of_models_dir,
    of_roll_ups,
    of_root,
)
from dtef_pipeline.cli.rubric_show_group import show
from dtef_pipeline.cli.run_options import of_asked_snapshot, refuse_estimate_of_judging
from dtef_pipeline.rubric.board_views import BOARD_VIEW_BY_NAME, BOARD_VIEWS_SHOWN


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
    """Take blueprints away: their partitions and their rows in all tables. Boards and pages follow at the next `dtef rollup --family rubric`.

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
    from dtef_pipeline.cli import rubric_estimate, rubric_run

    options = rubric_run.with_switches(**given)
    if is_estimate:
        refuse_estimate_of_judging(options.first)
        rubric_estimate.estimate(options, output)
    else:
        sys.exit(rubric_run.run(options))


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

    With --by compare whole blueprints are what is independent, and at least 5 are needed; of one blueprint that --blueprint names, prompts.
    """
    from dtef_pipeline.cli import rubric_board

    rubric_board.show(by, blueprints, output)


rubric.add_command(show)
rubric.add_command(export)
rubric.add_command(compare)
rubric.add_command(labels)
rubric.add_command(anchors)

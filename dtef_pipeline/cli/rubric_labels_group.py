"""The commands below `dtef rubric labels`, and `dtef rubric anchors`; what they do is in `rubric_labels.py` and `rubric_anchors.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.options import writes_a_table
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.run_options import anchors_asked, of_anchors_shown


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


@labels.command(short_help="Show what is labelled, and how often judges say the same.")
@writes_a_table
@reports_errors
def show(output: str) -> None:
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
    from dtef_pipeline.cli import rubric_anchors

    if show:
        rubric_anchors.show(output)
    else:
        sys.exit(rubric_anchors.run(rubric_anchors.with_scale(**given)))

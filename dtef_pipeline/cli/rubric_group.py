"""The commands below `dtef rubric`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dtef_pipeline.cli.reported import reports_errors


@click.group(short_help="Blueprints in YAML whose responses are judged by criteria.")
def rubric() -> None:
    """Work with blueprints: YAML files with prompts, and with the criteria that responses to them are judged by."""


@rubric.command(short_help="Say what blueprints hold, and what is wrong with them.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--models-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of the collections of models that blueprints name: a JSON or YAML list per file, named as the collection (CORE.json).",
)
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder that the ids of blueprints are counted from: ROOT/safety/a.yml is safety__a.  [default: PATH, or the folder of a file]",
)
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

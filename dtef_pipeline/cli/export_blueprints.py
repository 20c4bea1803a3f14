"""The command `dtef export-blueprints`. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

from pathlib import Path

import click

from dtef_pipeline.cli.reported import reports_errors


@click.command("export-blueprints", short_help="Write the prompts of a round as YAML files.")
@click.option("--round", "round_id", type=str.upper, metavar="ROUND", required=True, help="Round whose prompts are written.")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to; one YAML file per segment.",
)
@click.option(
    "--context",
    "contexts",
    multiple=True,
    help="Only prompts with this number of context questions; may be repeated.  [default: all]",
)
@click.option(
    "--condition", "conditions", multiple=True, help="Only prompts of this condition; may be repeated.  [default: all]"
)
@reports_errors
def export_blueprints(round_id: str, out: Path, contexts: tuple[str, ...], conditions: tuple[str, ...]) -> None:
    """Write the prompts of a round (its blueprints) as YAML files in the style of weval."""
    from dtef_pipeline.cli import read

    read.export_blueprints(round_id, out, contexts, conditions)

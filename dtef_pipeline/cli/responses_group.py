"""The commands below `dtef responses`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

from pathlib import Path

import click

from dtef_pipeline.cli.options import of_family, writes_a_table
from dtef_pipeline.cli.reported import reports_errors


@click.group(short_help="Show, export or import the responses of models.")
def responses() -> None:
    """Look into the response store, where every response of a model is kept, and move responses between machines."""


@responses.command(short_help="List what the response store holds.")
@of_family(None, "Only what this family of evaluations asked, by its tables.  [default: all in the store]")
@writes_a_table
@reports_errors
def show(output: str, family: str | None) -> None:
    """List what the response store holds: responses, tokens and cost of each model and snapshot."""
    from dtef_pipeline.cli import responses

    responses.show(output, family)


@responses.command("export", short_help="Write responses to a file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--model", "models", multiple=True, metavar="NAME", help="Only this model; may be repeated.")
@click.option("--snapshot", "snapshots", multiple=True, metavar="LABEL", help="Only this snapshot; may be repeated.")
@reports_errors
def export_responses(file: Path, models: tuple[str, ...], snapshots: tuple[str, ...]) -> None:
    """Write raw responses to FILE: Parquet or JSON lines, by its suffix (.parquet, .jsonl, .jsonl.gz)."""
    from dtef_pipeline.cli import responses

    responses.export_file(file, models, snapshots)


@responses.command("import", short_help="Add the responses of a file to the store.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@reports_errors
def import_responses(file: Path) -> None:
    """Add the responses of FILE to the response store. Those it has already stay as they are. If a row is faulty, nothing is added."""
    from dtef_pipeline.cli import responses

    responses.import_file(file)

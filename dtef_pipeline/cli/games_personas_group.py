"""The commands below `dtef games personas` and `dtef games scenarios`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dtef_pipeline.cli.reported import reports_errors


@click.group(short_help="Take personas in and out as a file.")
def personas() -> None:
    """Take personas in and out as a file of JSON lines. Personas are what models are told to be while they play.

    They are files: the shipped ones, and those in the folder that DTEF_PERSONAS names.
    """


@personas.command(short_help="Write all personas to a file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@reports_errors
def export(file: Path) -> None:
    """Write every version of every persona to FILE, one JSON object a line; FILE.gz is compressed. Equal personas give equal bytes."""
    from dtef_pipeline.cli import games_personas

    games_personas.export_personas(file)


@personas.command("import", short_help="Take in the personas of a file.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@reports_errors
def take_in(file: Path) -> None:
    """Write the personas of FILE, as `dtef games personas export` writes it, into the folder that DTEF_PERSONAS names.

    A version that is there already with the same content is skipped. Where a line has a fault, or a version is there with another content,
    nothing is taken in.
    """
    from dtef_pipeline.cli import games_personas

    sys.exit(games_personas.import_personas(file))


@click.group(short_help="Take scenarios in and out as a file.")
def scenarios() -> None:
    """Take scenarios in and out as a file of JSON lines: the manifests, without the engines that play them.

    They are files, the shipped ones and those in the folder that DTEF_SCENARIOS names, and what was made over HTTP.
    """


@scenarios.command("export", short_help="Write all scenarios to a file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@reports_errors
def export_scenarios(file: Path) -> None:
    """Write every version of every scenario to FILE, one JSON object a line; FILE.gz is compressed. Equal scenarios give equal bytes."""
    from dtef_pipeline.cli import games_personas

    games_personas.export_scenarios(file)


@scenarios.command("import", short_help="Take in the scenarios of a file.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--by", "who", metavar="NAME", help="Who does this, for the record.  [default: the user of this computer]")
@reports_errors
def import_scenarios(file: Path, who: str | None) -> None:
    """Add the scenarios of FILE, as `dtef games scenarios export` writes it, to the response store, as those made over HTTP.

    A version that is there already with the same content is skipped, and takes a status of FILE that is a later one. Where a line has a fault, a
    version is there with another content, or an engine cannot play a scenario, nothing is taken in.
    """
    from dtef_pipeline.cli import games_personas

    games_personas.import_scenarios(file, who)

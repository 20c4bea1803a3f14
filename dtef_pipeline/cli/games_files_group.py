"""`dtef games export` and `import`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from dtef_pipeline.cli.reported import reports_errors

_what = click.argument("what", type=click.Choice(["personas", "scenarios"]))
What = Literal["personas", "scenarios"]


@click.command("export", short_help="Write all personas or scenarios to a file.")
@_what
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@reports_errors
def export_games(what: What, file: Path) -> None:
    """Write every version of every persona or scenario to FILE, one JSON object a line; FILE.gz is compressed. Equal ones give equal bytes.

    Personas are what models are told to be while they play. Of scenarios these are the manifests, without the engines that play them. Both are
    files, the shipped ones and those in the folders that DTEF_PERSONAS and DTEF_SCENARIOS name, and what was made over HTTP.
    """
    from dtef_pipeline.cli import games_files

    if what == "personas":
        games_files.export_personas(file)
    else:
        games_files.export_scenarios(file)


@click.command("import", short_help="Take in the personas or scenarios of a file.")
@_what
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--by", "who", metavar="NAME", help="Who does this, for the record; of scenarios.  [default: the user of this computer]"
)
@reports_errors
def import_games(what: What, file: Path, who: str | None) -> None:
    """Take in what `dtef games export` wrote to FILE: personas into the folder that DTEF_PERSONAS names, scenarios into the response store, as
    those made over HTTP.

    A version that is there already with the same content is skipped; one of a scenario takes a status of FILE that is a later one. Where a line
    has a fault, a version is there with another content, or an engine cannot play a scenario, nothing is taken in.
    """
    from dtef_pipeline.cli import games_files

    if what == "personas":
        if who is not None:
            raise click.UsageError("--by: allowed with scenarios.")
        sys.exit(games_files.import_personas(file))
    games_files.import_scenarios(file, who)

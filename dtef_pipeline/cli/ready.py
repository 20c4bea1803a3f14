"""The home of Dagster, made ready before a command starts something."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from resources.settings import Settings, shipped


@contextmanager
def dagster_instance() -> Iterator[Any]:
    """The instance of DAGSTER_HOME (made on first use from the shipped template): the one the UI shows."""
    prepare_home()
    import dagster as dg

    with dg.DagsterInstance.get() as instance:
        yield instance


def prepare_home() -> Path:
    home = Settings.from_environment().dagster_home
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "dagster.yaml").exists():
        shutil.copyfile(shipped("dagster.yaml"), home / "dagster.yaml")
    elif "run_launcher:" not in (home / "dagster.yaml").read_text(encoding="utf-8"):
        click.echo(
            f"warning: {home / 'dagster.yaml'} is of an earlier version: killed workers are not noticed; "
            f"put this in its place: {shipped('dagster.yaml')}",
            err=True,
        )
    os.environ["DAGSTER_HOME"] = str(home)
    # Materializations are written this many at a time.
    os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", "50")
    return home

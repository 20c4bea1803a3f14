"""`dtef drift` of the families that are watched over whole models: verdicts on the scores as they are now, by the settings of the panel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import click
import pyarrow as pa

from assets.stage.panel_drift import judges_in, panel_drift, scored_in
from dtef_pipeline.cli.accepted_drift import options_since
from dtef_pipeline.cli.boards import render_drift
from dtef_pipeline.cli.drift_exit import NOTHING_COMPARED, exit_code
from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.families import FAMILIES
from dtef_pipeline.report.names import Names
from dtef_pipeline.report.terminal import render
from dtef_pipeline.survey.boards.meanings import DRIFT
from dtef_pipeline.tables import description
from resources.gateway.progress import waiting
from resources.settings import Settings
from resources.warehouse import Warehouse

_SENT = ["told", "night_told"]
"""Columns on what was sent, which only the stored table knows."""


@dataclass(frozen=True, slots=True)
class WatchedFamily:
    """What a family brings to `dtef drift`."""

    name: str
    names: Names
    checks: Callable[[Warehouse, WatchOptions], pa.Table]
    """Makes the verdicts on models, as its roll-up does."""
    beside: Callable[[Warehouse, WatchOptions, Sequence[Mapping[str, Any]]], Iterable[str]]
    """The lines that stand below these rows."""
    run: str
    """The command that asks: `dtef qa run`."""


@reads_tables
def drift_of_models(
    warehouse: Warehouse, watched: WatchedFamily, since: Sequence[str], fail_on: str | None, output: str
) -> int:
    """As `exit_code`; NOTHING_COMPARED when `fail_on` is asked for and there is no series."""
    subject = watched.names.subject
    options = _options(warehouse, watched, since)
    with waiting("comparing snapshots"):
        checks = watched.checks(warehouse, options).drop_columns(_SENT)
    rows = checks.to_pylist()
    if not rows or (options.since and all(row["latest_snapshot"] is None for row in rows)):
        dates = f" since {' or '.join(sorted(set(options.since.values())))}" if options.since else ""
        problem = f"no snapshot of a language model{dates}"
        if not fail_on:
            raise WarehouseError(problem)
        say(f"error: {problem}", err=True)
        return NOTHING_COMPARED
    if output != "table":
        click.echo(render(checks.to_pandas(), output))
        return exit_code(rows, fail_on, subject)
    told = {name: description(subject.models.field(name)) for name in subject.keys.asked}
    click.echo(render_drift(checks, watched.names, {**DRIFT, **told}))
    if all(row["verdict"] is None for row in rows):
        say(f"\n{_ask_again(watched.run)}")
    for line in watched.beside(warehouse, options, rows):
        say(line)
    return exit_code(rows, fail_on, subject)


def _options(warehouse: Warehouse, watched: WatchedFamily, since: Sequence[str]) -> WatchOptions:
    """Raises WarehouseError where nothing is scored."""
    (family,) = (one for one in FAMILIES if one.name == watched.name)
    if not warehouse.values(family.scored, family.space.first):
        raise WarehouseError(f"no {family.scored} in {warehouse.root} yet: `{watched.run} --snapshot LABEL` asks and scores")
    settings = Settings.from_environment()
    options = panel_drift(settings, warehouse).options
    return options_since(options, since, partial(scored_in, warehouse, family), partial(judges_in, warehouse, family))


def _ask_again(run: str) -> str:
    return (
        f"To have something to compare, ask the same again: the same `{run}` on another day, with that day as --snapshot (such as 2026-01-31). "
        "Only responses at temperature 0 are compared."
    )

"""The runs of a plugged family, and their estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from assets.engine.panel import family_panel
from dtef_pipeline.cli.family_run import AfterRun, Chosen, FamilyRun, GivenRun, Steps
from dtef_pipeline.cli.plugged.plugged_files import stored_parts
from dtef_pipeline.cli.started_runs import StagesRun, unanswered_lines
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.record import Family
from dtef_pipeline.family.run_settings import command_settings
from dtef_pipeline.family.stage import Stage
from dtef_pipeline.text.nearest import fitting
from resources.settings import Settings
from resources.warehouse import Warehouse


def _settings(family: Family, given: Mapping[str, Any]) -> Any:
    """The settings that options give, with what the panel file alone says."""
    panel = family_panel(Settings.from_environment(), family.name, family.settings)
    return command_settings(family.settings, given, panel)


def plugged_run(family: Family) -> FamilyRun:
    """The record of its runs."""
    return FamilyRun(
        family.name,
        family.part,
        partial(_stages, family),
        partial(_settings, family),
        partial(_choose, family),
        steps=_steps,
        after=partial(_after, family),
        sized_by=(family.responses, "response"),
    )


def _stages(family: Family) -> Sequence[Stage]:
    from assets.engine.part_files import all_stages

    return all_stages(family)


def _choose(family: Family, given: GivenRun) -> Chosen:
    known = stored_parts(given.warehouse, family)
    if not known:
        raise ConfigError(f"no {family.part} in {given.warehouse.root} yet: `dtef {family.name} add PATH` adds some")
    models = given.options.models
    specs = given.models.resolve(models) if models else ()
    return Chosen(fitting(known, given.options.parts, "--part"), {spec.name for spec in specs}, specs)


def _steps(given: GivenRun, keys: Sequence[str], stages: Sequence[Stage]) -> Steps:
    """All stages; the first, which loads the files, where the run begins with it."""
    return [(one, keys) for one in (stages if given.beside.first == "ingest" else stages[1:])]


def _after(family: Family, given: GivenRun, keys: Sequence[str], _: StagesRun) -> AfterRun:
    return AfterRun(unanswered_lines(_calls(given.warehouse, family, keys, given.options.snapshot)))


def _calls(warehouse: Warehouse, family: Family, keys: Sequence[str], snapshot: str) -> Iterator[tuple[str, str, str | None]]:
    """Of each response its model, state and error."""
    for key in keys:
        at = {**family.space.levels(key), "snapshot": snapshot}
        rows = warehouse.read_or_empty(family.responses, columns=["model", "call_status", "error"], **at)
        yield from zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True)

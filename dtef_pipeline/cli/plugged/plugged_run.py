"""`dtef NAME run` of a plugged family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assets.engine.panel import family_panel
from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.cli.opened_warehouse import open_warehouse
from dtef_pipeline.cli.plugged.plugged_files import stored_parts
from dtef_pipeline.cli.role_budgets import with_budgets
from dtef_pipeline.cli.started_runs import (
    check_home_path,
    end_run,
    refuse_unaskable,
    require_imported,
    start_stages,
    unanswered_lines,
)
from dtef_pipeline.cli.takes_settings import RunFlags
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.family.record import Family
from dtef_pipeline.family.run_settings import PartSettings, command_settings, run_config
from dtef_pipeline.text.nearest import fitting
from resources.known_models import known_models
from resources.settings import Settings
from resources.warehouse import Warehouse


def with_panel(family: Family, given: Mapping[str, Any]) -> Any:
    """The settings that options give, with what the panel file alone says."""
    panel = family_panel(Settings.from_environment(), family.name, family.settings)
    return command_settings(family.settings, given, panel)


def chosen_parts(warehouse: Warehouse, family: Family, patterns: Sequence[str]) -> list[str]:
    """The partitions that fit any of the patterns; all without one. Raises ConfigError for a pattern that fits none."""
    known = stored_parts(warehouse, family)
    if not known:
        raise ConfigError(f"no {family.part} in {warehouse.root} yet: `dtef {family.name} add PATH` adds some")
    return fitting(known, patterns, "--part")


def run(family: Family, options: PartSettings, beside: RunFlags) -> int:
    """The exit code: 1 where a partition failed or a file was left out."""
    settings = Settings.from_environment()
    check_home_path(settings)
    require_safe(options.snapshot)
    warehouse, models = open_warehouse(), known_models(settings, COMPUTED_MODELS)
    keys = chosen_parts(warehouse, family, options.parts)
    specs = models.resolve(options.models) if options.models else ()
    require_imported(specs, options.snapshot, settings)
    options = with_budgets(options, beside.max_cost_usd, beside.max_calls, {spec.name for spec in specs}, models)
    refuse_unaskable(specs, options.snapshot, settings, options.max_cost_usd)
    stages = {one.name: one.settings for one in family.stages()}
    names = [*([family.ingested] if beside.first == "ingest" else []), *stages]
    with start_stages(family.name, keys, options.snapshot) as running:
        running.materialize(names, keys, run_config(options, stages))
        if not beside.no_roll_ups:
            running.roll_up(warehouse)
    running.report(warehouse, family.part)
    for line in unanswered_lines(_calls(warehouse, family, keys, options.snapshot)):
        say(line, err=True)
    return end_run(warehouse, running.outcome)


def _calls(warehouse: Warehouse, family: Family, keys: Sequence[str], snapshot: str) -> Iterator[tuple[str, str, str | None]]:
    """Of each response its model, state and error."""
    for key in keys:
        at = {**family.space.levels(key), "snapshot": snapshot}
        rows = warehouse.read_or_empty(family.responses, columns=["model", "call_status", "error"], **at)
        yield from zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True)


def estimate(family: Family, options: PartSettings, beside: RunFlags, output: str) -> None:
    """Print what the run would ask and cost."""
    raise ConfigError("--estimate: not there yet")

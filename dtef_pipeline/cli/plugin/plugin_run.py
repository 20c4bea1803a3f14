"""The runs of a plugin family, and their estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from assets.engine.settings_config import family_panel
from dtef_pipeline.cli.family_run import Chosen, FamilyRun, GivenRun, Steps, choose_all
from dtef_pipeline.family.record import Family
from dtef_pipeline.family.run_settings import command_settings
from dtef_pipeline.family.stage import Stage
from dtef_pipeline.text.nearest import fitting
from resources.settings import Settings


def _settings(family: Family, given: Mapping[str, Any]) -> Any:
    """The settings that options give, with what the panel file alone says."""
    panel = family_panel(Settings.from_environment(), family.name, family.settings)
    return command_settings(family.settings, given, panel)


def plugin_run(family: Family) -> FamilyRun:
    """The record of its runs."""
    return FamilyRun(
        family.name,
        family.part,
        partial(_stages, family),
        partial(_settings, family),
        _choose,
        steps=_steps,
        sized_by=(family.responses, "response"),
        status="call_status",
    )


def _stages(family: Family) -> Sequence[Stage]:
    from assets.engine.part_files import all_stages

    return all_stages(family)


def _choose(given: GivenRun) -> Chosen:
    """The partitions that fit the patterns of the settings. Raises ConfigError for a pattern that fits none."""
    every = choose_all(given)
    return every._replace(keys=fitting(every.keys, given.options.parts, "--part"))


def _steps(given: GivenRun, keys: Sequence[str], stages: Sequence[Stage]) -> Steps:
    """All stages; the first, which loads the files, where the run begins with it."""
    return [(one, keys) for one in (stages if given.beside.first == "ingest" else stages[1:])]

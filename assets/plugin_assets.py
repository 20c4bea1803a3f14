"""The Dagster definitions of all families or of one: commands run a single family, without importing the others."""

import warnings
from importlib import import_module
from pkgutil import iter_modules

import dagster as dg

from dtef_pipeline.families import FAMILIES, PLUGIN_FAMILIES

# Single-run backfills make a round one run. Dagster warns at import, for every asset with one, that they are beta.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

EVERY_FAMILY = ("survey", "rubric", "qa", "games", "preference", *(record.name for record in PLUGIN_FAMILIES))


def load_definitions(*families: str) -> dg.Definitions:
    """Return the assets, checks, jobs, schedules and sensors of these families, with resources and executor."""
    # Repeated here, since filters may have been reset after this module was imported.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        warnings.simplefilter("ignore", dg.PreviewWarning)
        from assets.engine import site_report
        from assets.engine.family_assets import assemble
        from assets.stage.resources import Store

        assembled = [record for record in FAMILIES if record.is_assembled and record.name in families]
        modules = [
            import_module(f"assets.{family}.{module.name}")
            for family in families
            if family not in {record.name for record in assembled}
            for module in iter_modules(import_module(f"assets.{family}").__path__)
        ]
        # One process for all stages: a stage takes seconds, less than starting a process.
        shared = dg.Definitions(resources={"store": Store()}, executor=dg.in_process_executor)
        return dg.Definitions.merge(
            shared, dg.load_definitions_from_modules([*modules, site_report]), *(assemble(record) for record in assembled)
        )

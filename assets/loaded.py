"""The assets that Dagster loads, of all families or of one: a command starts runs of one, and does not wait for the others' modules."""

import warnings
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import dagster as dg

# Single-run backfills make a round one run. Dagster warns that they are beta at every asset that has one, when the asset is imported.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

EVERY_FAMILY = ("survey", "rubric", "qa", "games", "preference")


def assets_of(*families: str) -> dict[str, Any]:
    """What `dg.Definitions` takes of these families, and what their assets run with."""
    # Here once more, as filters may have been put back since this module was imported.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        from assets.stage.resources import Store

        modules = [
            import_module(f"assets.{family}.{module.name}")
            for family in families
            for module in iter_modules(import_module(f"assets.{family}").__path__)
        ]
        return {
            "assets": dg.load_assets_from_modules(modules, include_specs=True),
            "asset_checks": dg.load_asset_checks_from_modules(modules),
            "resources": {"store": Store()},
            # One process per run: a stage is seconds of work, starting a process for it would cost more.
            "executor": dg.in_process_executor,
        }

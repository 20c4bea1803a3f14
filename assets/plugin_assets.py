"""The assets that Dagster loads, of all families or of one: commands run a single family, without importing the others."""

import warnings
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import dagster as dg

from dtef_pipeline.families import FAMILIES, FAMILY_BY_NAME, PLUGIN_FAMILIES

if TYPE_CHECKING:
    from assets.engine.family_assets import FamilyAssets

# Single-run backfills make a round one run. Dagster warns at import, for every asset with one, that they are beta.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

EVERY_FAMILY = ("survey", "rubric", "qa", "games", "preference", *(record.name for record in PLUGIN_FAMILIES))
_ASSEMBLED = {record.name for record in FAMILIES if record.is_assembled}


@cache
def load_family_assets(family: str) -> "FamilyAssets":
    """Return the Dagster definitions of a plugin family."""
    from assets.engine.family_assets import assemble

    return assemble(FAMILY_BY_NAME[family])


def collect_plugin_assets(*families: str) -> dict[str, Any]:
    """Return the arguments of `dg.Definitions` for these families, including resources and executor."""
    # Repeated here, since filters may have been reset after this module was imported.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        from assets.engine import site_report
        from assets.stage.resources import Store

        plugin = [load_family_assets(family) for family in families if family in _ASSEMBLED]
        modules = [
            import_module(f"assets.{family}.{module.name}")
            for family in families
            if family not in _ASSEMBLED
            for module in iter_modules(import_module(f"assets.{family}").__path__)
        ]
        return {
            "assets": [
                *dg.load_assets_from_modules([*modules, site_report], include_specs=True),
                *(asset for item in plugin for asset in item.assets),
            ],
            "asset_checks": [*dg.load_asset_checks_from_modules(modules), *(check for item in plugin for check in item.checks)],
            "resources": {"store": Store()},
            # One process for all stages: a stage takes seconds, less than starting a process.
            "executor": dg.in_process_executor,
        }

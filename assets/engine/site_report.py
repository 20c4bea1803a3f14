"""The report: one site over all families, made after all other assets."""

from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from typing import Any

import dagster as dg

from assets.engine.roll_up_names import FAMILY_ROLL_UPS, PREFERENCE_ROLL_UP_NAMES, REPORT
from assets.stage.partitions import roll_up
from assets.stage.resources import Store
from dtef_pipeline.families import FAMILIES
from dtef_pipeline.site.family_content import FamilySite
from dtef_pipeline.sites import family_site
from resources.settings import Settings
from resources.site_writer import find_site_folder, write_site
from resources.warehouse import Warehouse


def collect_site_documents(warehouse: Warehouse, settings: Settings) -> list[FamilySite]:
    """Return the sites of families with documents, from `build_documented_site` of `assets.FAMILY.site_documents`."""
    shown = [family for family in FAMILIES if not family.is_assembled and warehouse.tables([family_site(family).scored])]
    modules = [f"assets.{family.name}.site_documents" for family in shown]
    return [import_module(module).build_documented_site(settings) for module in modules if find_spec(module)]


_INPUTS = sorted({*PREFERENCE_ROLL_UP_NAMES, *chain.from_iterable(FAMILY_ROLL_UPS.values())} - {REPORT})


@dg.asset(name=REPORT, deps=[dg.AssetKey(name) for name in _INPUTS], **roll_up(code_version="1", kinds={"html"}))
def report(store: Store) -> dg.MaterializeResult[Any]:
    """One static site for researchers over all families: findings, leaderboards, models side by side, drift, data, method.

    It is stored in the folder `report` of the warehouse, where obsolete pages are removed; `dtef report` writes it elsewhere.
    """
    result = write_site(store.warehouse, collect_site_documents(store.warehouse, store.settings))
    return dg.MaterializeResult(
        metadata={
            "path": dg.MetadataValue.path(f"{find_site_folder(store.warehouse)}/index.html"),
            "files": len(result.sizes),
            "bytes": sum(result.sizes.values()),
            "removed": len(result.removed),
        }
    )

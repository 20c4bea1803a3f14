"""Pages of the site that need documents of the installation in addition to tables, such as the rules of a scenario."""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

from dtef_pipeline.families import FAMILIES
from dtef_pipeline.family.record import Family
from dtef_pipeline.site.family_view import FamilySite
from dtef_pipeline.sites import family_site
from resources.settings import Settings
from resources.warehouse import Warehouse


def collect_site_documents(warehouse: Warehouse, settings: Settings) -> list[FamilySite]:
    """Return the sites of families with documents, from `build_documented_site` of `assets.FAMILY.site_documents`."""
    return list(_find_sites(warehouse, settings))


def _find_sites(warehouse: Warehouse, settings: Settings) -> Iterator[FamilySite]:
    for family in FAMILIES:
        module = f"assets.{family.name}.site_documents"
        # Looked up last, since this imports the package.
        if not family.is_assembled and _is_shown(warehouse, family) and find_spec(module):
            yield import_module(module).build_documented_site(settings)


def _is_shown(warehouse: Warehouse, family: Family) -> bool:
    return bool(warehouse.tables([family_site(family).scored]))

"""The families' sections of the site, and the whole site of a warehouse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version

import duckdb

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.families import FAMILIES, SHARED_TABLES
from dtef_pipeline.family.item_site import item_site
from dtef_pipeline.family.record import Family
from dtef_pipeline.preference.pairing import OTHER_TOOLS
from dtef_pipeline.site.build import build_site_files
from dtef_pipeline.site.family_content import FamilySite
from dtef_pipeline.site.preference_page import PREFERENCE_READ


def load_family_sites(instead: Iterable[FamilySite] = ()) -> list[FamilySite]:
    """Return the site section of each family.

    `instead`: sections that need more than tables, such as games with the rules of their scenarios.
    """
    sites = {site.family: site for site in instead}
    return [sites.get(family.name) or family_site(family) for family in FAMILIES]


def family_site(family: Family) -> FamilySite:
    """Return the site section of a family; a family with rooms of its own defines `FAMILY_SITE` in its room `site`."""
    if family.is_assembled:
        return item_site(family)
    site: FamilySite = getattr(import_module(f"dtef_pipeline.{family.name}.site.family_site"), f"{family.name.upper()}_SITE")
    return site


def list_results_tables() -> set[str]:
    """List the tables of which at least one must have rows for a site."""
    return {"preference_scores"} | {site.scored for site in load_family_sites()}


def list_site_tables() -> set[str]:
    """List every table that the site reads."""
    tables = {table for site in load_family_sites() for table in site.tables}
    metrics = {
        table for family in FAMILIES if family.pair_source for metric in family.pair_source.metrics for table in metric.tables
    }
    return tables | metrics | {*SHARED_TABLES, *PREFERENCE_READ}


def make_site(connection: duckdb.DuckDBPyConnection, instead: Iterable[FamilySite] = ()) -> Iterator[tuple[str, str]]:
    """Yield every file of the site as path and text. `instead`: see `load_family_sites`."""
    metrics = {family.name: family.pair_source.metrics if family.pair_source else () for family in FAMILIES}
    stamp = f"Made on {datetime.now(UTC):%Y-%m-%d at %H:%M} UTC by dtef-pipeline {version('dtef-pipeline')}{_describe_data(connection)}."
    return build_site_files(connection, load_family_sites(instead), {**metrics, OTHER_TOOLS: ()}, stamp)


def _describe_data(connection: duckdb.DuckDBPyConnection) -> str:
    """Describe the newest snapshot of each family; empty if no model was called."""
    if not has_table(connection, "costs"):
        return ""
    rows = connection.execute("SELECT family, max(snapshot) FROM costs GROUP BY family ORDER BY family").fetchall()
    newest = {family: snapshot for family, snapshot in rows if snapshot}
    if len(set(newest.values())) < 2:
        return "".join(f" of the snapshot {snapshot}" for snapshot in set(newest.values()))
    titles = {site.family: site.title for site in load_family_sites()}
    return f" of the snapshots {', '.join(f'{snapshot} ({titles[family]})' for family, snapshot in newest.items())}"

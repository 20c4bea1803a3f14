"""The families' places on the site, and the whole site of a warehouse."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import duckdb

from dtef_pipeline.families import FAMILIES, SHARED_TABLES
from dtef_pipeline.family.item_site import item_site
from dtef_pipeline.preference.paired_csv import ELSEWHERE
from dtef_pipeline.site.build import site_files
from dtef_pipeline.site.family_view import FamilySite
from dtef_pipeline.site.preference_page import PREFERENCE_READ


def family_sites() -> list[FamilySite]:
    """The place of each family; those with rooms of their own bring it in `FAMILY.site.family_site`."""
    return [
        item_site(one) if one.is_assembled else import_module(f"dtef_pipeline.{one.name}.site.family_site").SITE
        for one in FAMILIES
    ]


def site_tables() -> set[str]:
    """Every table that the site reads."""
    own = {table for one in family_sites() for table in one.tables}
    metrics = {table for one in FAMILIES if one.paired for metric in one.paired.metrics for table in metric.tables}
    return own | metrics | {*SHARED_TABLES, *PREFERENCE_READ}


def make_site(connection: duckdb.DuckDBPyConnection, made: str) -> Iterator[tuple[str, str]]:
    """Every file of the site: path and text. `made`: when, by which version and of which data."""
    metrics = {one.name: one.paired.metrics if one.paired else () for one in FAMILIES}
    return site_files(connection, family_sites(), {**metrics, ELSEWHERE: ()}, made)

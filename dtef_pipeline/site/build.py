"""The whole site: every page and file, built from the tables of a warehouse."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb

from dtef_pipeline.preference.paired_source import MetricSource
from dtef_pipeline.site.content import DataFile, Link, Page
from dtef_pipeline.site.contents import SiteContents, choose_shown_sites
from dtef_pipeline.site.data_page import build_method_page, data_page
from dtef_pipeline.site.drift_page import drift_page
from dtef_pipeline.site.family_content import FamilySite
from dtef_pipeline.site.front import build_front_page
from dtef_pipeline.site.leaderboard import build_leaderboard_page
from dtef_pipeline.site.model_pages import model_pages
from dtef_pipeline.site.preference_page import PREFERENCE_PAGE, FamilyNames, has_votes, preference_page
from dtef_pipeline.site.rendering import render_data, render_page, static_files
from dtef_pipeline.site.two_models import compare_pages

Files = Iterable[tuple[str, str]]
"""(path from the root of the site, text) of each file."""


def build_site_files(
    connection: duckdb.DuckDBPyConnection,
    families: Sequence[FamilySite],
    metrics: Mapping[str, Sequence[MetricSource]],
    stamp: str,
    kept_names: Collection[str] = (),
) -> Iterator[tuple[str, str]]:
    """Yield every file of the site except the details of the families `kept_names`, which already exist.

    `metrics`: by family, the metrics that votes are compared with; `stamp`: time, version and source.
    """
    contents = SiteContents(connection, families)
    names = {
        family.name: FamilyNames(family.site.title, family.part_title, family.site.metric_words) for family in contents.families
    }
    votes = preference_page(connection, metrics, names)
    navigation = [*contents.navigation, *([Link("Preference", PREFERENCE_PAGE)] if votes else [])]
    shared: dict[str, Any] = {"navigation": navigation, "made": stamp, "model_paths": contents.model_paths}
    yield from static_files()
    for page in _iterate_contents(contents, votes, kept_names):
        yield (page.path, render_data(page)) if isinstance(page, DataFile) else (page.path, render_page(page, shared))


def navigation_names(connection: duckdb.DuckDBPyConnection, families: Sequence[FamilySite]) -> list[str]:
    """Return the names in the navigation of every page: the families shown, and whether there are votes."""
    names = [site.family for site in choose_shown_sites(connection, families)]
    return [*names, *(["preference"] if has_votes(connection) else [])]


def _iterate_contents(contents: SiteContents, votes: Page | None, kept_names: Collection[str]) -> Iterator[Page | DataFile]:
    yield build_front_page(contents)
    for family in contents.families:
        yield build_leaderboard_page(family)
        if family.name not in kept_names:
            yield from family.content.pages()
    yield from model_pages(contents)
    yield from compare_pages(contents)
    yield drift_page(contents)
    yield data_page(contents)
    yield build_method_page(contents)
    if votes:
        yield votes

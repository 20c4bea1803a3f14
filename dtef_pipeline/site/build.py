"""The whole site: every page and file, made of the tables of a warehouse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb

from dtef_pipeline.preference.paired_source import MetricSource
from dtef_pipeline.site.content import DataFile, Link, Page
from dtef_pipeline.site.contents import SiteContents
from dtef_pipeline.site.data_page import data_page, method_page
from dtef_pipeline.site.drift_page import drift_page
from dtef_pipeline.site.family_view import FamilySite
from dtef_pipeline.site.front import front_page
from dtef_pipeline.site.leaderboard import leaderboard_page
from dtef_pipeline.site.model_pages import model_pages
from dtef_pipeline.site.preference_page import PREFERENCE_PAGE, preference_page
from dtef_pipeline.site.rendering import render_data, render_page, static_files
from dtef_pipeline.site.two_models import compare_pages

Files = Iterable[tuple[str, str]]
"""(path from the root of the site, text) of each file."""


def site_files(
    connection: duckdb.DuckDBPyConnection,
    families: Sequence[FamilySite],
    metrics: Mapping[str, Sequence[MetricSource]],
    made: str,
) -> Iterator[tuple[str, str]]:
    """Every file of the site. `metrics`: by family, what votes are compared with; `made`: when, by which version and of what."""
    contents = SiteContents(connection, families)
    votes = preference_page(connection, metrics)
    navigation = [*contents.navigation, *([Link("Preference", PREFERENCE_PAGE)] if votes else [])]
    shared: dict[str, Any] = {"navigation": navigation, "made": made}
    yield from static_files()
    for one in _contents_of(contents, votes):
        yield (one.path, render_data(one)) if isinstance(one, DataFile) else (one.path, render_page(one, shared))


def _contents_of(contents: SiteContents, votes: Page | None) -> Iterator[Page | DataFile]:
    yield front_page(contents)
    for family in contents.families:
        yield leaderboard_page(contents, family)
        yield from family.view.pages()
    yield from model_pages(contents)
    yield from compare_pages(contents)
    yield drift_page(contents)
    yield data_page(contents)
    yield method_page(contents)
    if votes:
        yield votes

"""The whole site: every page and file, built from the tables of a warehouse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import duckdb

from dtef_pipeline.preference.pairing import MetricSource
from dtef_pipeline.site.content import DataFile, Link, Page
from dtef_pipeline.site.contents import SiteContents
from dtef_pipeline.site.data_page import build_method_page, data_page
from dtef_pipeline.site.drift_page import drift_page
from dtef_pipeline.site.family_content import FamilySite
from dtef_pipeline.site.front import build_front_page
from dtef_pipeline.site.leaderboard import build_leaderboard_page
from dtef_pipeline.site.model_pages import model_pages
from dtef_pipeline.site.preference_page import PREFERENCE_PAGE, preference_page
from dtef_pipeline.site.rendering import render_data, render_page, static_files
from dtef_pipeline.site.two_models import compare_pages


def build_site_files(
    connection: duckdb.DuckDBPyConnection,
    families: Sequence[FamilySite],
    metrics: Mapping[str, Sequence[MetricSource]],
    stamp: str,
) -> Iterator[tuple[str, str]]:
    """Yield the path from the root of the site and the text of every file.

    `metrics`: by family, the metrics that votes are compared with; `stamp`: time, version and source.
    """
    contents = SiteContents(connection, families)
    votes = preference_page(contents, metrics)
    navigation = [*contents.navigation, *([Link("Preference", PREFERENCE_PAGE)] if votes else [])]
    shared: dict[str, Any] = {"navigation": navigation, "made": stamp, "model_paths": contents.model_paths}
    yield from static_files()
    for page in chain(_iterate_contents(contents), filter(None, [votes])):
        yield (page.path, render_data(page)) if isinstance(page, DataFile) else (page.path, render_page(page, shared))


def _iterate_contents(contents: SiteContents) -> Iterator[Page | DataFile]:
    yield build_front_page(contents)
    for family in contents.families:
        yield build_leaderboard_page(family)
        yield from family.content.pages()
    yield from model_pages(contents)
    yield from compare_pages(contents)
    yield drift_page(contents)
    yield data_page(contents)
    yield build_method_page(contents)

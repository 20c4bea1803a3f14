"""The page on drift of one family."""

from __future__ import annotations

import duckdb

from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.site.contents import SiteContents
from dtef_pipeline.site.drift_page import drift_page
from dtef_pipeline.site.family_content import FamilyContent, FamilySite
from dtef_pipeline.site.rendering import render_page
from tests.made.read_page import ReadPage


def shown_drift(connection: duckdb.DuckDBPyConnection, subject: Subject) -> str:
    """The text of the page. `connection` has the tables of drift."""
    site = FamilySite(subject.family, "Family", (), "drift", lambda _: FamilyContent("", []), subject)
    page = drift_page(SiteContents(connection, [site]))
    return ReadPage(render_page(page, {"navigation": [], "made": ""})).text

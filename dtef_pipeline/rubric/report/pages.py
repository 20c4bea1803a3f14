"""The pages of the rubric family: an index with the leaderboard, and a page per blueprint. Self-contained files, no network."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from dtef_pipeline.report.page_files import INDEX_PAGE, page_names
from dtef_pipeline.report.preference_chapter import preference_chapters
from dtef_pipeline.report.stored_rows import StoredRows
from dtef_pipeline.rubric.report.blueprint_page import blueprint_pages
from dtef_pipeline.rubric.report.index_page import index_page
from dtef_pipeline.rubric.results.blueprint_run import model_scores, read_run, shown_runs, snapshots_in_order
from dtef_pipeline.rubric.rubric_paired import RUBRIC_PAIRED

MOST_PROMPT_BYTES = 6_000_000
"""Of the prompts on one page, roughly; where a blueprint's have more, each prompt has a page of its own."""


def rubric_pages(
    connection: duckdb.DuckDBPyConnection,
    snapshot: str | None = None,
    *,
    most_bytes: int = MOST_PROMPT_BYTES,
) -> Iterator[tuple[str, str]]:
    """(file name, HTML) of each page, `index.html` first, one at a time. Equal tables give equal pages.

    `connection` has views named as the family's tables; a part whose table is missing says what makes it. Blueprints are shown by their
    latest run with a score; `snapshot`: by that run alone, and the leaderboard is of it. A blueprint
    whose prompts would take more than `most_bytes` has a page for each of them besides, named after its own.
    """
    rows = StoredRows(connection)
    order = snapshots_in_order(rows)
    scores = model_scores(rows, snapshot)
    runs = shown_runs(rows, scores, order, snapshot)
    pages = page_names(_blueprints(rows, runs))
    voted = preference_chapters(connection, "rubric", RUBRIC_PAIRED.metrics)
    yield INDEX_PAGE, index_page(rows, scores, order, runs, pages, further=voted)
    for blueprint, page in pages.items():
        yield from blueprint_pages(rows, read_run(rows, blueprint, runs.get(blueprint)), page, most_bytes)


def _blueprints(rows: StoredRows, runs: dict[str, str]) -> list[str]:
    """All that were read or run, by id."""
    read = rows.rows("rubric_blueprints", ("blueprint",), {})
    return sorted({*(str(row["blueprint"]) for row in read), *runs})
